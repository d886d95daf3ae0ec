# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The block quantiser: it converts blocks of values to codes of a narrow format and a scale for each block."""

from __future__ import annotations

from typing import Any

from amaranth import C, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.conversion import conversion_cores
from hdl.mx.block import divider, measured, scale_finder
from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan
from hdl.mx.number_scaling import SCALE_RANKS, Quotient
from hdl.mx.parameters import MxParameters
from hdl.mx.plan import SCALE_WIDTH
from hdl.mx.scaling import largest_of
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
        Only for NVFP4: the scale of the tensor is 2 to this power. The one of a block's last beat is used.
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


# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The block quantiser: it converts blocks of values to codes of a narrow format and a scale for each block."""

#: Ranks in front of the queue of values; and cycles of a block's last beat in the queue before the block leaves.
_INTO, _WAITING = 2, 3
_OUT_OF = 2


@documented(MxParameters)
class MxQuantizer(wiring.Component):
    """Quantise values in blocks that share a scale (OCP microscaling, as `golden.mx.quantize`).

    Scales are powers of two of OCP's rule. Of NVFP4 they are those of the recipe ``triton_nvfp4``, and the scale of the
    tensor is a power of two, which comes with the values.

    From the reset on, every `block` values in ``block / lanes`` beats are a block; pad a short block with zeros. A beat
    enters and a beat leaves in every cycle: while a block leaves, the next one enters. The beats of a block leave one
    after the other; the first one leaves `latency` cycles after the last has entered. While a result is not accepted,
    values enter until the queue of two blocks is full.

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
    entering, leaving : Signal
        State that proofs refer to: beats of the block that have entered the queue of values, and that have left it.
    has_entered, was_first, completes, is_complete : Signal
        State that proofs refer to: whether a beat entered the queue in the last cycle, whether it was the first or the
        last of its block, and whether the last one entered a cycle earlier.
    scale_follows : list of Signal
        State that proofs refer to, where scales are numbers: whether the scale of a complete block comes in so many
        cycles less one, the most first.
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
        self.plan = plan = parameters.plan
        waiting = _WAITING + (SCALE_RANKS if isinstance(plan, NumberPlan) else 0)
        self.beats, self.latency = parameters.beats, _INTO + waiting + _OUT_OF
        # A block, and the beats that enter until it begins to leave; one more, so that it is never full in between.
        depth = 1 << (self.beats + waiting - 1).bit_length()
        self.values = Queue(data.ArrayLayout(plan.value_layout, self.lanes), depth)
        self.blocks = Queue(plan.scaling_layout, depth // self.beats)
        self.entering, self.leaving = Signal(range(self.beats)), Signal(range(self.beats))
        self.has_entered, self.was_first, self.completes, self.is_complete = Signal(), Signal(), Signal(), Signal()
        self.scale_follows = [Signal(name=f"scale_follows_{cycles}") for cycles in range(waiting - _WAITING, 0, -1)]
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
        has_room = self.values.level != self.values.depth
        moves = Signal()
        unpacked_valid = rank(m, "unpacked_valid", self.i.valid, moves, reset=True)
        valid = rank(m, "wide_valid", unpacked_valid, moves, reset=True)
        self.on_their_way = [unpacked_valid, valid]
        m.d.comb += [moves.eq(has_room | ~valid), self.i.ready.eq(moves)]
        codes = []
        for lane, kept in enumerate(self.values.w_data):
            unpack, align, finish = conversion_cores(self.plan.first)
            m.submodules[f"unpack_{lane}"], m.submodules[f"align_{lane}"] = unpack, align
            m.submodules[f"to_odd_{lane}"] = finish
            m.d.comb += [unpack.code.eq(self.i.payload.values[lane]), finish.i.eq(align.o)]
            m.d.comb += align.i.eq(rank(m, f"unpacked_{lane}", unpack.o, moves))
            code = finish.o.bits
            if isinstance(self.plan, NumberPlan):
                sign = rank(m, f"unpacked_sign_{lane}", self.i.payload.values[lane][-1], moves)
                code = self.plan.kept(m, f"below_{lane}", code, sign)
            codes.append(rank(m, f"wide_{lane}", code, moves))
            m.d.comb += kept.code.eq(codes[-1])
            if self.plan.is_stochastic:
                random = rank(m, f"unpacked_random_{lane}", self.i.payload.random[lane], moves)
                m.d.comb += kept.random.eq(rank(m, f"wide_random_{lane}", random, moves))
        if isinstance(self.plan, NumberPlan):
            exponent = rank(m, "unpacked_exponent", self.i.payload.tensor_exponent, moves)
            self._exponent = rank(m, "wide_exponent", exponent, moves)
        enters = valid & has_room
        m.d.comb += self.values.w_en.eq(enters)
        return enters, codes

    def _measure(self, m: Module, enters: Value, codes: list[Any]) -> None:
        """Find the largest exponent field, or magnitude, of each block, and queue the block's scale."""
        parts = [measured(self.plan, code) for code in codes]
        of_beat = Signal(len(parts[0]), reset_less=True)
        m.d.sync += of_beat.eq(largest_of(m, "larger", parts))
        is_first, is_last = self._count(m, self.entering, enters)
        m.d.sync += [self.has_entered.eq(enters), self.was_first.eq(is_first)]
        m.d.sync += [self.completes.eq(enters & is_last), self.is_complete.eq(self.completes)]
        largest = Signal(len(of_beat), reset_less=True)
        with m.If(self.has_entered & (self.was_first | (of_beat > largest))):
            m.d.sync += largest.eq(of_beat)
        m.submodules.scale = scale = scale_finder(self.plan, has_ranks=True)
        if isinstance(self.plan, NumberPlan):
            its = self._exponent
            for name in ("of_beat", "of_block"):
                before, its = its, Signal(TENSOR_EXPONENT, name=f"exponent_{name}", reset_less=True)
                m.d.sync += its.eq(before)
            m.d.comb += scale.tensor_exponent.eq(its)
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
        valid = rank(m, "scaled_valid", self.blocks.r_rdy, moves, reset=True)
        scale, last = rank(m, "scaled_scale", self.blocks.r_data.scale, moves), rank(m, "scaled_last", is_last, moves)
        for lane, kept in enumerate(self.values.r_data):
            m.submodules[f"divide_{lane}"] = divide = divider(self.plan)
            m.d.comb += [divide.code.eq(kept.code), divide.scaling.eq(self.blocks.r_data)]
            if isinstance(self.plan, NumberPlan):
                code = Quotient.element_of(self.plan, rank(m, f"scaled_{lane}", divide.o, moves))
                m.d.comb += self.o.payload.codes[lane].eq(rank(m, f"code_{lane}", code, moves))
                continue
            unpack, align, finish = conversion_cores(self.plan.last)
            m.submodules[f"unpack_scaled_{lane}"], m.submodules[f"align_scaled_{lane}"] = unpack, align
            m.submodules[f"round_{lane}"] = finish
            m.d.comb += unpack.code.eq(rank(m, f"scaled_{lane}", divide.o, moves))
            m.d.comb += [align.i.eq(unpack.o), finish.i.eq(align.o)]
            if self.plan.is_stochastic:
                m.d.comb += finish.controls.random.eq(rank(m, f"scaled_random_{lane}", kept.random, moves))
            m.d.comb += self.o.payload.codes[lane].eq(rank(m, f"code_{lane}", finish.o.bits, moves))
        m.d.comb += [
            self.o.valid.eq(rank(m, "result_valid", valid, moves, reset=True)),
            self.o.payload.scale.eq(rank(m, "result_scale", scale, moves)),
            self.o.payload.last.eq(rank(m, "result_last", last, moves)),
        ]

    def _count(self, m: Module, number: Signal, moves: Value) -> tuple[Value, Value]:
        """Count the beats of a block; return whether the next one is the first, and the last."""
        if self.beats == 1:
            return C(1, 1), C(1, 1)
        with m.If(moves):
            m.d.sync += number.eq(number + 1)  # a power of two: from the last to the first
        return ~number.any(), number.all()
