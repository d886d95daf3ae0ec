# amaranth: UnusedElaboratable=no
# A unit is built also for a look at its size.
"""Proofs about the stream of the block quantiser: with any pauses, it gives the results of each block, in order.

Draining a unit shows its content: a receiver that is always ready takes every result, while some further beats are
offered without a pause. Three things hold in every state that satisfies the invariant below, which a reset establishes
and every cycle preserves:

- Order: a cycle with any input changes the list of results as it would a queue. If a result is taken, the first one is
  gone. A beat that is accepted now and a beat that is offered first while draining give the same list. And a result
  that is not taken stays.
- Blocks: if the unit is between two blocks, a whole further block adds the results of `hdl.mx.block.QuantizeBlock` at
  the end, and nothing else.
- Nothing stays: a drained unit is empty after a number of cycles that depends on its size alone.

So by induction over cycles, any run gives the results of its blocks, one after the other. The formats are tiny: numbers
only pass through, and their conversion is proven elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from golden.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FloatFormat
from golden.mx import BlockFormat
from hdl.mx.block import QuantizeBlock
from hdl.mx.parameters import MxParameters, NarrowFormat
from hdl.mx.quantizer import MxQuantizer
from hdl.parameters import built_from
from hdl.queue import Queue
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import SEQUENTIAL, netlist_of
from lab.proofs.proof import BITWUZLA, Proof
from lab.proofs.terms import bits, both, define, either, equal, inverse, refute, slice_of

__all__ = ["block_stream_proofs"]

_SOURCE, _ELEMENT = FloatFormat("e2m1", 2, 1), FLOAT4_E2M1FN
_QUIET = {"rst": "#b0", "clk": "#b0"}
_LENGTH_BITS = 6
_DEPTH = 4
_LENGTH = f"(_ BitVec {_LENGTH_BITS})"


class _AnyBlocks(NarrowFormat):
    """Also a format of blocks that are smaller than those of NVFP4."""

    def check(self, name: str, value: Any, given: Any) -> FloatFormat | BlockFormat:  # type: ignore[override]
        return value if isinstance(value, BlockFormat) else super().check(name, value, given)


@dataclass(frozen=True, kw_only=True)
class _Parameters(MxParameters):
    """Parameters of a unit that is small enough to be proven."""

    element: Annotated[FloatFormat | BlockFormat, _AnyBlocks("format of the elements")]


class _Quantizer(MxQuantizer):
    @built_from(_Parameters)
    def __init__(self, parameters: MxParameters) -> None:
        self.build(parameters)


def shortened(parameters: MxParameters) -> MxQuantizer:
    """Return a unit with short queues: longer ones save it pauses, and cost the solver hours."""
    unit = _Quantizer(**parameters.arguments())
    unit.values = Queue(unit.values.w_data.shape(), _DEPTH)
    unit.blocks = Queue(unit.blocks.w_data.shape(), _DEPTH // unit.beats)
    return unit


class Observed(wiring.Component):
    """A block quantiser with ports for whether its state satisfies the invariant, and how much of its last block came.

    Ports
    -----
    i, o
        Of the unit.
    is_sound : unsigned(1), out
    begun : unsigned(beats - 1 as a number), out
        Beats of an incomplete block that have been accepted.
    """

    def __init__(self, parameters: MxParameters) -> None:
        self.unit = shortened(parameters)
        members = self.unit.signature.members
        self.beats = self.unit.beats
        super().__init__(
            {"i": members["i"], "o": members["o"], "is_sound": Out(1), "begun": Out(range(self.beats + 1))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit, beats = self.unit, self.beats
        m.submodules.unit = unit.elaborate(platform)
        for port in ("i", "o"):
            outer, inner = getattr(self, port), getattr(unit, port)
            into, out_of = (inner, outer) if port == "i" else (outer, inner)
            m.d.comb += [into.valid.eq(out_of.valid), into.payload.eq(out_of.payload), out_of.ready.eq(into.ready)]
        values, blocks = unit.values, unit.blocks
        lasts = sum((compared.is_last for compared in unit.compared), C(0, 1))
        whole = blocks.level + lasts + unit.is_complete + sum(unit.scale_follows, C(0, 1))
        conditions = [
            # Queues: the words between the first one and the next place.
            *(_is_sound(each) for each in (values, blocks)),
            # The unit holds the beats of the whole blocks that are still inside, and of the block that is entering.
            values.level + unit.leaving == beats * whole + unit.entering,
            (unit.leaving == 0) | (blocks.level != 0),
            ~unit.has_room | (values.level < values.depth),
        ]
        # The beats being compared are the last ones that entered, the latest in front.
        place = unit.entering + beats - 1
        for compared in unit.compared:
            is_first, is_last = place % beats == 0, place % beats == beats - 1
            conditions.append(compared.as_value() == Mux(compared.is_beat, Cat(C(1, 1), is_first, is_last), 0))
            place = place + beats - compared.is_beat
        conditions.append(~unit.is_complete | (place % beats == beats - 1))
        sound = C(1, 1)
        for condition in conditions:
            sound &= condition
        m.d.comb += self.is_sound.eq(sound)
        m.d.comb += self.begun.eq((unit.entering + sum(unit.on_their_way, C(0, 1))) % beats)
        return m


def _is_sound(queue: Queue) -> Value:
    places = (queue.produce - queue.consume)[: len(queue.produce)]
    in_range = (queue.level[: len(places)] == places) & (queue.level <= queue.depth)
    return in_range & (queue.has_word == (queue.level != 0))


@dataclass(frozen=True)
class _Size:
    """A unit's size."""

    beats: int
    lanes: int
    has_numbers: bool = False

    @property
    def parameters(self) -> MxParameters:
        block = self.beats * self.lanes
        numbers = BlockFormat("tiny", _ELEMENT, block, FLOAT8_E4M3FN, "triton_nvfp4")
        element = numbers if self.has_numbers else _ELEMENT
        return _Parameters(source=_SOURCE, element=element, block=block, lanes=self.lanes)

    @property
    def name(self) -> str:
        """The part of a claim's name that gives the size."""
        return f"beats_{self.beats}{'/numbers' * self.has_numbers}"

    @property
    def cycles(self) -> int:
        """Cycles in which a unit is drained: the blocks in it take a latency, and a wait where they fill its queue."""
        unit = shortened(self.parameters)
        waiting = len(unit.compared) + len(unit.scale_follows) + 2
        return unit.latency + waiting + 5 * self.beats


#: Takes a unit's size, its netlist and a block's netlist; returns a formula with a solution if a claim fails.
Formula = Callable[[_Size, Netlist, Netlist], str]

_SIZES = (_Size(1, 2), _Size(2, 1), _Size(1, 1, has_numbers=True))


def block_stream_proofs() -> Iterator[Proof]:
    """Yield the proofs of units whose blocks are one beat, and two; those with numbers as scales have one."""
    for size in _SIZES:
        claims: dict[str, Formula] = {"invariant": _invariant, "blocks": _blocks}
        for begun in range(size.beats):
            for is_accepted in (True, False):
                what = f"order/{begun}_begun/{'a' if is_accepted else 'no'}_beat"
                claims[what] = partial(_order, begun=begun, is_accepted=is_accepted)
        for claim, formula in claims.items():
            yield Proof(
                f"mx/stream/{size.name}/{claim}",
                "block quantiser: stream",
                f"{size.beats} beat{'s' * (size.beats > 1)}, {'scales that are numbers, ' * size.has_numbers}"
                f"{claim.replace('_', ' ').replace('/', ', ')}",
                "queue of the blocks' results",
                BITWUZLA,
                partial(_build, size, formula),
                timeout=600,
                fast=claim == "invariant",
            )


def _build(size: _Size, formula: Formula, folder: Path) -> str:
    unit = netlist_of(Observed(size.parameters), folder, SEQUENTIAL)
    core = netlist_of(QuantizeBlock(size.parameters.plan, size.parameters.block), folder)
    return formula(size, unit, core)


def _holds(instance: Instance, port: str) -> str:
    return equal(instance.port(port), "#b1")


def _same_state(unit: Netlist, instance: Instance) -> dict[int, str]:
    return {number: f"|{instance.prefix}#{number}|" for number in unit.following}


def _invariant(size: _Size, unit: Netlist, core: Netlist) -> str:
    """Return a formula with a solution if a cycle or a reset breaks the invariant, or a reset leaves a result."""
    now = unit.instance("top", given=_QUIET)
    then = unit.instance("then", given=_QUIET, held=now.registers)
    reset = unit.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    begin = unit.instance("begin", given=_QUIET, held=reset.registers)
    drained = _Drain(unit, size, "drained", reset.registers, [])
    claims = [
        either(inverse(_holds(now, "is_sound")), _holds(then, "is_sound")),
        _holds(begin, "is_sound"),
        equal(begin.port("begun"), bits(0, unit.outputs["begun"])),
        equal(drained.length, bits(0, _LENGTH_BITS)),
    ]
    return now.text + now.shown + then.text + reset.text + begin.text + drained.text + refute(both(*claims))


class _Drain:
    """A unit that is drained from a state, while some beats are offered.

    Attributes
    ----------
    text : str
        Definitions.
    length : str
        How many results there are.
    """

    def __init__(self, unit: Netlist, size: _Size, name: str, held: dict[int, str], beats: Sequence[str]) -> None:
        self.name, self.cycles, self.width = name, size.cycles, unit.outputs["o__payload"]
        payload_width = unit.inputs["i__payload"]
        lines = [define(f"{name}_{what}_0", _LENGTH, bits(0, _LENGTH_BITS)) for what in ("sent", "before")]
        for cycle in range(self.cycles):
            sent = f"{name}_sent_{cycle}"
            payload = beats[-1] if beats else bits(0, payload_width)
            for at, beat in reversed(list(enumerate(beats[:-1]))):
                payload = f"(ite {equal(sent, bits(at, _LENGTH_BITS))} {beat} {payload})"
            offers = f"(ite (bvult {sent} {bits(len(beats), _LENGTH_BITS)}) #b1 #b0)" if beats else "#b0"
            ports = _QUIET | {"i__valid": offers, "i__payload": payload, "o__ready": "#b1"}
            here = unit.instance(f"{name}{cycle}", given=ports, held=held)
            lines.append(here.text)
            moved = both(_holds(here, "i__valid"), _holds(here, "i__ready"))
            for what, condition in (("sent", moved), ("before", _holds(here, "o__valid"))):
                now = f"{name}_{what}_{cycle}"
                more = f"(ite {condition} (bvadd {now} {bits(1, _LENGTH_BITS)}) {now})"
                lines.append(define(f"{name}_{what}_{cycle + 1}", _LENGTH, more))
            held = here.registers
        end = unit.instance(f"{name}_end", given=_QUIET | {"i__valid": "#b0", "o__ready": "#b1"}, held=held)
        lines.append(end.text)
        self.length = f"{name}_before_{self.cycles}"
        #: Everything that was offered has entered, and nothing is left.
        self.is_done = both(
            equal(f"{name}_sent_{self.cycles}", bits(len(beats), _LENGTH_BITS)), inverse(_holds(end, "o__valid"))
        )
        self.text = "\n".join(lines) + "\n"

    def result(self, number: int) -> str:
        """Return a result by its number; 0 beyond the last one."""
        found = bits(0, self.width)
        for cycle in reversed(range(self.cycles)):
            here = both(
                equal(f"|{self.name}{cycle}.o__valid|", "#b1"),
                equal(f"{self.name}_before_{cycle}", bits(number, _LENGTH_BITS)),
            )
            found = f"(ite {here} |{self.name}{cycle}.o__payload| {found})"
        return found


def _beats(unit: Netlist, count: int) -> tuple[str, list[str]]:
    """Declare beats."""
    names = [f"beat_{at}" for at in range(count)]
    width = unit.inputs["i__payload"]
    return "".join(f"(declare-const {name} (_ BitVec {width}))\n" for name in names), names


def _premise(now: Instance, begun: int) -> str:
    width = now.outputs["begun"]
    return f"(assert {both(_holds(now, 'is_sound'), equal(now.port('begun'), bits(begun, width)))})\n"


def _order(size: _Size, unit: Netlist, core: Netlist, *, begun: int, is_accepted: bool) -> str:
    """Return a formula with a solution if a cycle does not change the list of results as a queue would."""
    now = unit.instance("top", given=_QUIET)
    further, rest = _beats(unit, (size.beats - begun - 1 if is_accepted else -begun) % size.beats)
    sent = [now.port("i__payload"), *rest] if is_accepted else rest
    before = _Drain(unit, size, "before", _same_state(unit, now), sent)
    after = _Drain(unit, size, "after", now.registers, rest)
    then = unit.instance("then", given=_QUIET, held=now.registers)
    accepts = both(_holds(now, "i__valid"), _holds(now, "i__ready"))
    takes = both(_holds(now, "o__valid"), _holds(now, "o__ready"))
    text = now.text + now.shown + further + before.text + after.text + then.text + _premise(now, begun)
    text += f"(assert {accepts if is_accepted else inverse(accepts)})\n"
    text += define("taken", _LENGTH, f"(ite {takes} {bits(1, _LENGTH_BITS)} {bits(0, _LENGTH_BITS)})")
    numbers = range(size.cycles)
    kept = [f"(ite {takes} {before.result(n + 1)} {before.result(n)})" for n in numbers]
    waits = both(_holds(now, "o__valid"), inverse(_holds(now, "o__ready")))
    stays = both(_holds(then, "o__valid"), equal(then.port("o__payload"), now.port("o__payload")))
    claims = [
        before.is_done,
        after.is_done,
        equal(before.length, f"(bvadd taken {after.length})"),
        *(equal(after.result(n), kept[n]) for n in numbers),
        either(inverse(waits), stays),
    ]
    return text + refute(both(*claims))


def _joined(words: Sequence[str]) -> str:
    """Return words as one, the first in the lowest bits."""
    return f"(concat {' '.join(reversed(words))})" if len(words) > 1 else words[0]


def _blocks(size: _Size, unit: Netlist, core: Netlist) -> str:
    """Return a formula with a solution if a whole block adds anything but its results."""
    now = unit.instance("top", given=_QUIET)
    declared, beats = _beats(unit, size.beats)
    before = _Drain(unit, size, "before", _same_state(unit, now), [])
    after = _Drain(unit, size, "after", _same_state(unit, now), beats)
    given = {"values": _joined([slice_of(beat, _SOURCE.width * size.lanes - 1, 0) for beat in beats])}
    if size.has_numbers:
        given["tensor_exponent"] = slice_of(beats[-1], unit.inputs["i__payload"] - 1, _SOURCE.width * size.lanes)
    block = core.instance("block", given=given)
    text = now.text + now.shown + declared + before.text + after.text + block.text + _premise(now, 0)
    numbers = range(size.cycles)
    width = _ELEMENT.width * size.lanes
    added = []
    for at in range(size.beats):
        codes = slice_of(block.port("codes"), width * (at + 1) - 1, width * at)
        last = bits(int(at == size.beats - 1), 1)
        added.append(f"(concat {last} {block.port('scale')} {codes})")
    wanted = []
    for n in numbers:
        expected = bits(0, unit.outputs["o__payload"])
        for at in reversed(range(size.beats)):
            place = f"(bvadd {before.length} {bits(at, _LENGTH_BITS)})"
            expected = f"(ite {equal(bits(n, _LENGTH_BITS), place)} {added[at]} {expected})"
        is_old = f"(bvult {bits(n, _LENGTH_BITS)} {before.length})"
        wanted.append(f"(ite {is_old} {before.result(n)} {expected})")
    claims = [
        before.is_done,
        after.is_done,
        equal(after.length, f"(bvadd {before.length} {bits(size.beats, _LENGTH_BITS)})"),
        *(equal(after.result(n), wanted[n]) for n in numbers),
    ]
    return text + refute(both(*claims))
