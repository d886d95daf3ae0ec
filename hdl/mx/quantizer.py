# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The block quantiser: it converts blocks of values to codes of a narrow format and a scale for each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.conversion import conversion_cores
from hdl.cores.conversion_align import Align, Unpack
from hdl.cores.conversion_finish import FinishConversion
from hdl.mx.block import divider, measured, scale_finder, scale_ranks
from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan
from hdl.mx.number_scaling import Quotient
from hdl.mx.parameters import MxParameters
from hdl.mx.plan import SCALE_WIDTH
from hdl.mx.scaling import largest_of, levels_of
from hdl.parameters import built_from, documented
from hdl.pipeline import rank
from hdl.queue import Queue

__all__ = ["MxQuantizer", "element_beat_layout", "value_beat_layout"]


def value_beat_layout(parameters: MxParameters) -> data.StructLayout:
    """Return the input of the unit, least significant first.

    ``values``
        Codes of the source format, the first one in the lowest bits.
    ``random``
        A random number for each value (NUMERICS section 10). Absent unless `rounding` is ``stochastic``.
    ``tensor_exponent``
        Only for NVFP4: the scale of the tensor is 2 to this signed power. The one of a block's last beat is used.
    """
    fields: dict[str, Any] = {"values": data.ArrayLayout(parameters.source.width, parameters.lanes)}
    if parameters.plan.is_stochastic:
        fields["random"] = data.ArrayLayout(parameters.random_bits, parameters.lanes)
    if isinstance(parameters.plan, NumberPlan):
        fields["tensor_exponent"] = TENSOR_EXPONENT
    return data.StructLayout(fields)


def element_beat_layout(parameters: MxParameters) -> data.StructLayout:
    """Return the output of the unit, least significant first.

    ``codes``
        Codes of the element format, in the order of the values.
    ``scale``
        The block's scale, a code of ``float8_e8m0fnu``, the same in all beats of a block; 255 is NaN. For NVFP4, a code
        of ``float8_e4m3fn``; 127 is NaN.
    ``last``
        The last beat of a block.
    """
    codes = data.ArrayLayout(parameters.plan.element.width, parameters.lanes)
    return data.StructLayout({"codes": codes, "scale": SCALE_WIDTH, "last": 1})


#: Ranks in front of the queue of values, and behind it.
_INTO = ("entered", "unpacked", "aligned", "wide")
_OUT_OF = ("left", "divided", "scaled", "aligned_scaled", "result")
#: A beat in a rank of the tree of comparisons; 0 where there is none.
_COMPARED = data.StructLayout({"is_beat": 1, "is_first": 1, "is_last": 1})


@documented(MxParameters)
class MxQuantizer(wiring.Component):
    """Quantise values in blocks that share a scale (OCP microscaling, as `golden.mx.quantize`).

    Scales follow its recipe ``ocp_floor``, or ``triton_nvfp4`` for NVFP4. The scale of an NVFP4 tensor is a power of
    two, which comes with the values.

    From the reset on, every `block` values in ``block / lanes`` beats are a block; pad a short block with zeros. A beat
    enters and a beat leaves in every cycle: while a block leaves, the next one enters. The beats of a block leave one
    after the other; the first one leaves `latency` cycles after the last has entered. While a result is not accepted,
    values enter until the queue of values is full, which holds two blocks or more.

    Attributes
    ----------
    latency : int
        Cycles from the last values of a block to its first codes.
    beats : int
        Beats of a block.
    i : stream of struct, in
        `hdl.mx.quantizer.value_beat_layout`: `lanes` values, and their random numbers if `rounding` is ``stochastic``.
    o : stream of struct, out
        `hdl.mx.quantizer.element_beat_layout`: as many codes, the block's scale, and whether the beat is its last.
    values, blocks : Queue
        State that proofs refer to: beats of values that wait for their scale, and scales of the complete blocks.
    has_room : Signal
        State that proofs refer to: whether the queue of values has a place for a beat that enters.
    entering, leaving : Signal
        State that proofs refer to: beats of the block that have entered the queue of values, and that have left it.
    compared : list of Signal
        State that proofs refer to: the beats in the ranks of the tree that finds the largest value of a beat.
    is_complete : Signal
        State that proofs refer to: whether the largest of a whole block is known.
    scale_follows : list of Signal
        State that proofs refer to: whether the scale of a complete block comes in so many cycles less one, the most
        first.
    on_their_way : list of Signal
        State that proofs refer to, once elaborated: whether each rank in front of the queue of values has a beat.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If one is out of range.
    """

    @built_from(MxParameters)
    def __init__(self, parameters: MxParameters) -> None:
        self.build(parameters)

    def build(self, parameters: MxParameters) -> None:
        """Create the ports and the queues; called by subclasses with another class of parameters."""
        self.plan = plan = parameters.plan
        self.compared = [Signal(_COMPARED, name=f"compared_{level}") for level in range(levels_of(self.lanes))]
        self.is_complete = Signal()
        self.scale_follows = [Signal(name=f"scale_follows_{cycles}") for cycles in range(scale_ranks(plan), 0, -1)]
        # Cycles of a block's last beat in the queue before the block leaves: until its scale is in the other queue.
        waiting = len(self.compared) + len(self.scale_follows) + 2
        self.beats, self.latency = parameters.beats, len(_INTO) + waiting + len(_OUT_OF)
        # A block, the beats that enter until it begins to leave, and two more, so that it never waits for room between.
        depth = 1 << (self.beats + waiting + 1).bit_length()
        self.values = Queue(data.ArrayLayout(plan.value_layout, self.lanes), depth)
        self.blocks = Queue(plan.scaling_layout, depth // self.beats)
        self.has_room = Signal(init=1)
        self.entering, self.leaving = Signal(range(self.beats)), Signal(range(self.beats))
        super().__init__(
            {
                "i": In(stream.Signature(value_beat_layout(parameters))),
                "o": Out(stream.Signature(element_beat_layout(parameters))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.values, m.submodules.blocks = self.values, self.blocks
        enters, codes = self._enter(m)
        self._measure(m, enters, codes)
        self._leave(m)
        return m

    def _enter(self, m: Module) -> tuple[Value, list[Any]]:
        """Convert values to the wide format and queue them; return whether a beat enters the queue, and its codes."""
        # Known a cycle ahead, when one more beat may enter.
        m.d.sync += self.has_room.eq(self.values.level < self.values.depth - 1)
        moves = Signal()
        self.on_their_way = []
        valid: Any = self.i.valid
        for name in _INTO:
            valid = rank(m, f"{name}_valid", valid, moves, reset=True)
            self.on_their_way.append(valid)
        m.d.comb += [moves.eq(self.has_room | ~valid), self.i.ready.eq(moves)]
        codes = []
        for lane, kept in enumerate(self.values.w_data):
            m.submodules[f"unpack_{lane}"] = unpack = Unpack(self.plan.first, has_rank=True)
            m.submodules[f"align_{lane}"] = align = Align(self.plan.first)
            m.submodules[f"to_odd_{lane}"] = finish = FinishConversion(self.plan.first)
            m.d.comb += [
                unpack.code.eq(self.i.payload.values[lane]),
                unpack.moves.eq(moves),
                align.i.eq(rank(m, f"unpacked_{lane}", unpack.o, moves)),
                finish.i.eq(rank(m, f"aligned_{lane}", align.o, moves)),
            ]
            code = finish.o.bits
            if isinstance(self.plan, NumberPlan):
                sign = _along(m, _INTO[:-1], f"sign_{lane}", self.i.payload.values[lane][-1], moves)
                code = self.plan.kept(m, f"below_{lane}", code, sign)
            codes.append(rank(m, f"wide_{lane}", code, moves))
            m.d.comb += kept.code.eq(codes[-1])
            if self.plan.is_stochastic:
                m.d.comb += kept.random.eq(_along(m, _INTO, f"random_{lane}", self.i.payload.random[lane], moves))
        if isinstance(self.plan, NumberPlan):
            self._exponent = _along(m, _INTO, "exponent", self.i.payload.tensor_exponent, moves)
        enters = valid & self.has_room
        m.d.comb += self.values.w_en.eq(enters)
        return enters, codes

    def _measure(self, m: Module, enters: Value, codes: list[Any]) -> None:
        """Find the largest exponent field, or magnitude, of each block, and queue the block's scale."""
        of_beat = largest_of(m, "larger", [measured(self.plan, code) for code in codes], domain="sync")
        is_first, is_last = self._count(m, self.entering, enters)
        entered: Any = Cat(enters, enters & is_first, enters & is_last)
        for compared in self.compared:
            m.d.sync += compared.eq(entered)
            entered = compared
        m.d.sync += self.is_complete.eq(entered.is_last)
        largest = Signal(len(of_beat), reset_less=True)
        with m.If(entered.is_beat & (entered.is_first | (of_beat > largest))):
            m.d.sync += largest.eq(of_beat)
        m.submodules.scale = scale = scale_finder(self.plan, has_ranks=True)
        if isinstance(self.plan, NumberPlan):
            exponent = self._exponent
            for cycle in range(len(self.compared) + 1):
                later = Signal(TENSOR_EXPONENT, name=f"exponent_{cycle}", reset_less=True)
                m.d.sync += later.eq(exponent)
                exponent = later
            m.d.comb += scale.tensor_exponent.eq(exponent)
        has_scale = self.is_complete
        for follows in self.scale_follows:
            m.d.sync += follows.eq(has_scale)
            has_scale = follows
        m.d.comb += [scale.largest.eq(largest), self.blocks.w_data.eq(scale.o), self.blocks.w_en.eq(has_scale)]

    def _leave(self, m: Module) -> None:
        """Divide each value by its scale, and round it to an element."""
        moves = ~self.o.valid | self.o.ready
        leaves = moves & self.blocks.r_rdy
        _, is_last = self._count(m, self.leaving, leaves)
        m.d.comb += [self.values.r_en.eq(leaves), self.blocks.r_en.eq(leaves & is_last)]
        scaling = rank(m, "left_scaling", self.blocks.r_data, moves)
        for lane, kept in enumerate(self.values.r_data):
            m.submodules[f"divide_{lane}"] = divide = divider(self.plan, has_ranks=True)
            code = rank(m, f"left_{lane}", kept.code, moves)
            m.d.comb += [divide.code.eq(code), divide.scaling.eq(scaling), divide.moves.eq(moves)]
            if isinstance(self.plan, NumberPlan):
                code = Quotient.element_of(self.plan, rank(m, f"reached_{lane}", divide.o, moves))
            else:
                unpack, align, finish = conversion_cores(self.plan.last)
                m.submodules[f"unpack_scaled_{lane}"], m.submodules[f"align_scaled_{lane}"] = unpack, align
                m.submodules[f"round_{lane}"] = finish
                m.d.comb += [unpack.code.eq(divide.o), align.i.eq(unpack.o)]
                m.d.comb += finish.i.eq(rank(m, f"aligned_scaled_{lane}", align.o, moves))
                if self.plan.is_stochastic:
                    random = _along(m, _OUT_OF[:-1], f"random_{lane}", kept.random, moves)
                    m.d.comb += finish.controls.random.eq(random)
                code = finish.o.bits
            m.d.comb += self.o.payload.codes[lane].eq(rank(m, f"code_{lane}", code, moves))
        m.d.comb += [
            self.o.valid.eq(_along(m, _OUT_OF, "valid", self.blocks.r_rdy, moves, reset=True)),
            self.o.payload.scale.eq(_along(m, _OUT_OF[1:], "scale", scaling.scale, moves)),
            self.o.payload.last.eq(_along(m, _OUT_OF, "last", is_last, moves)),
        ]

    def _count(self, m: Module, number: Signal, moves: Value) -> tuple[Value, Value]:
        """Count the beats of a block; return whether the next one is the first, and the last."""
        if self.beats == 1:
            return C(1, 1), C(1, 1)
        with m.If(moves):
            m.d.sync += number.eq(number + 1)  # a power of two: from the last to the first
        return ~number.any(), number.all()


def _along(m: Module, ranks: Sequence[str], name: str, value: Value, moves: Value, *, reset: bool = False) -> Value:
    """Return a value after some ranks, whose registers take the names of the ranks and its own."""
    for each in ranks:
        value = rank(m, f"{each}_{name}", value, moves, reset=reset)
    return value
