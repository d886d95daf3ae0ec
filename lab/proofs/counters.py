"""Proofs about the counters: each adds its input and stops at its largest value, and each gets its events.

- A counter of 32 bits, from every state that it can reach, holds next the sum of its value, or of 0 if it is cleared,
  and of the addend; or the largest value if the sum is larger. Induction from a reset proves which states it can reach.
- For any inputs in a cycle, the counters of a unit add the number of lanes that took part and raised an event, a known
  number of cycles later. It goes to the counter of that event and of the kind of the step, and nothing to any other.
  After a reset they are 0, and events on their way are not counted.
- So do the counters of a SIMD unit, whose lanes are left out, with the operation behind the last rank of its control.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.flags import EVENTS
from hdl.mac.counters import COUNTER_BITS, KINDS, Counter, Counters, counts_layout, events_layout
from hdl.mac.inner import OPERAND
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import SEQUENTIAL, netlist_of, netlist_of_verilog
from lab.proofs.control import TINY
from lab.proofs.left_out import OpenVectorMac, pass_on
from lab.proofs.pipelines import following
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, inverse, refute, slice_of, widened

__all__ = ["CountedVector", "CountersAlone", "counter_proofs"]

_QUIET = {"rst": "#b0", "clk": "#b0"}
_LARGEST = bits(-1, COUNTER_BITS)
#: For each unit, whether each of its lanes takes part in fp32 operations.
_LANES = {1: (True,), 2: (True, False), 4: (True, False, True, False)}


class CountersAlone(wiring.Component):
    """The counters of a unit, and a port that shows a part of their state.

    Ports
    -----
    writes, is_product, wide, events_0, ..., clear, counts
        As of `hdl.mac.counters.Counters`.
    are_high : out
        `Counter.is_high` of every counter, in the order of the counts.
    """

    def __init__(self, lanes: tuple[bool, ...]) -> None:
        self.counters = Counters(lanes, has_chunks=True)
        ports = {name: In(1) for name in ("writes", "is_product", "wide", "clear")}
        ports |= {f"events_{lane}": In(events_layout()) for lane in range(len(lanes))}
        shown = {"counts": Out(counts_layout()), "are_high": Out(len(self.counters.parts))}
        super().__init__(ports | shown)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counters = counters = self.counters
        names = ("writes", "is_product", "wide", "clear")
        m.d.comb += [getattr(counters, name).eq(getattr(self, name)) for name in names]
        m.d.comb += [each.eq(getattr(self, f"events_{lane}")) for lane, each in enumerate(counters.events)]
        m.d.comb += [
            self.counts.eq(counters.counts),
            self.are_high.eq(Cat(counter.is_high for counter in counters.parts.values())),
        ]
        return m


class CountedVector(wiring.Component):
    """A SIMD unit whose lanes are left out, with the operation that its counters see, and their state, as ports.

    Ports
    -----
    i, o, chunk
        As of `hdl.VectorMac`.
    writes, is_product, wide : out
        Of the operation behind the last rank.
    events_0, ..., clear, counts, are_high
        As of `CountersAlone`.
    """

    def __init__(self, lanes: int) -> None:
        given: dict[str, Any] = {"operands": (TINY,), "inner": OPERAND, "lanes": lanes, "registers": 4, "stages": 1}
        self.unit = unit = OpenVectorMac(**given, counters=True)
        assert unit.counting
        self.counters = unit.counting
        members = unit.signature.members
        ports = {name: members[name] for name in ("i", "o", "chunk", "counts")}
        ports |= {f"events_{lane}": In(events_layout()) for lane in unit.lanes_built} | {"clear": In(1)}
        ports |= {name: Out(1) for name in ("writes", "is_product", "wide")}
        super().__init__(ports | {"are_high": Out(len(self.counters.parts))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        finished = unit.control.at[-1]
        m.d.comb += [getattr(self, name).eq(finished[name]) for name in ("writes", "is_product", "wide")]
        m.d.comb += [part.events.eq(getattr(self, f"events_{lane}")) for lane, part in unit.lane_parts.items()]
        m.d.comb += [
            unit.clear_counts.eq(self.clear),
            self.counts.eq(unit.counts),
            self.are_high.eq(Cat(counter.is_high for counter in self.counters.parts.values())),
            *pass_on(self, unit),
        ]
        return m


class _CounterAlone(wiring.Component):
    """A counter, and a port that shows the rest of its state."""

    def __init__(self, most: int) -> None:
        self.counter = Counter(most)
        ports = {name: member for name, member in self.counter.signature.members.items()}
        super().__init__(ports | {"is_high": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter = counter = self.counter
        m.d.comb += [
            counter.more.eq(self.more),
            counter.clear.eq(self.clear),
            self.value.eq(counter.value),
            self.is_high.eq(counter.is_high),
        ]
        return m


def counter_proofs() -> Iterator[Proof]:
    """Yield the proofs of single counters, and of the counters of units of some lanes."""
    unit, specification = "counters: events", "population count"
    for lanes, shared in _LANES.items():
        title = f"{lanes} lane{'s' * (lanes > 1)}"
        for engine in (BITWUZLA, Z3_CADICAL):
            adds, events = partial(_adds, lanes), partial(_counts, shared)
            fast = engine == BITWUZLA
            yield Proof(f"counters/adds/{lanes}", "counters", title, "saturating sum", engine, adds, 300, fast)
            claim = f"counters/events/lanes_{lanes}"
            yield Proof(claim, unit, title, specification, engine, events, timeout=300, fast=fast)
    for lanes in (2, 4):
        claim, title, build = f"counters/vector/lanes_{lanes}", f"SIMD unit of {lanes} lanes", partial(_vector, lanes)
        yield Proof(claim, unit, title, specification, BITWUZLA, build, timeout=300, fast=lanes == 2)


def _is_possible(value: str, is_high: str, counter: Counter) -> str:
    """Tell whether a counter may be in a state: high values are known to be high unless they have just become so."""
    room = counter.room_bits
    says_high = equal(slice_of(value, COUNTER_BITS - 1, room), bits(-1, COUNTER_BITS - room))
    just_below = bits((1 << COUNTER_BITS) - (1 << room) - 1 + counter.most, COUNTER_BITS)
    return f"(ite {is_high} {says_high} (bvule {value} {just_below}))"


def _saturated(value: str, clear: str, more: str, width: int) -> str:
    """Return a counter's next value."""
    kept = f"(ite {clear} {bits(0, COUNTER_BITS)} {value})"
    wide = COUNTER_BITS + 1
    total = f"(bvadd {widened(kept, COUNTER_BITS, wide)} {widened(more, width, wide)})"
    overflows = equal(slice_of(total, COUNTER_BITS, COUNTER_BITS), "#b1")
    return f"(ite {overflows} {_LARGEST} {slice_of(total, COUNTER_BITS - 1, 0)})"


def _adds(most: int, folder: Path) -> str:
    """Return a formula with a solution if a counter adds wrongly, or comes into a state from which it might."""
    component = _CounterAlone(most)
    netlist = netlist_of(component, folder, SEQUENTIAL)
    now = netlist.instance("top", given=_QUIET)
    (after,) = following(netlist, 1, "after", now, [{}])
    reset = netlist.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    (begun,) = following(netlist, 1, "begun", reset, [{}])

    def possible(instance: Instance) -> str:
        return _is_possible(instance.port("value"), equal(instance.port("is_high"), "#b1"), component.counter)

    width = netlist.inputs["more"]
    allowed = f"(bvule {now.port('more')} {bits(most, width)})"
    wanted = _saturated(now.port("value"), equal(now.port("clear"), "#b1"), now.port("more"), width)
    claims = [
        either(inverse(both(allowed, possible(now))), both(equal(after.port("value"), wanted), possible(after))),
        both(equal(begun.port("value"), bits(0, COUNTER_BITS)), possible(begun)),
    ]
    return now.text + now.shown + after.text + reset.text + begun.text + refute(both(*claims))


def _counts(lanes: tuple[bool, ...], folder: Path) -> str:
    component = CountersAlone(lanes)
    return _counted(component, netlist_of(component, folder, SEQUENTIAL), lanes)


def _vector(lanes: int, folder: Path) -> str:
    component = CountedVector(lanes)
    return _counted(component, netlist_of_verilog(component, folder), _LANES[lanes])


def _counted(component: CountersAlone | CountedVector, netlist: Netlist, lanes: tuple[bool, ...]) -> str:
    """Return a formula with a solution if an event is counted otherwise than as the operation and the lanes say."""
    delay = 2
    now = netlist.instance("top", given=_QUIET)
    cycles = [now, *following(netlist, delay + 1, "later", now, [{}] * (delay + 1))]
    before, after = cycles[-2:]
    width = len(lanes).bit_length()
    layout = counts_layout()
    claims = []
    parts = list(component.counters.parts.items())
    for number, ((kind, name), counter) in enumerate(parts):
        low = layout[kind].offset + layout[kind].shape[name].offset
        value, held = (slice_of(each.port("counts"), low + COUNTER_BITS - 1, low) for each in (after, before))
        is_high = equal(slice_of(before.port("are_high"), number, number), "#b1")
        more = bits(0, width)
        for lane, is_wide in enumerate(lanes):
            raised = both(*_takes_part(now, is_wide), *_is_kind(now, kind), *_raises(now, lane, name))
            more = f"(bvadd {more} (ite {raised} {bits(1, width)} {bits(0, width)}))"
        wanted = _saturated(held, equal(before.port("clear"), "#b1"), more, width)
        claims.append(either(inverse(_is_possible(held, is_high, counter)), equal(value, wanted)))
    text = now.text + "".join(each.text for each in cycles[1:]) + now.shown
    # After a reset nothing is counted of what came before.
    still = {"writes": "#b0", "i__valid": "#b0"}
    reset = netlist.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    begun = following(netlist, delay + 2, "begun", reset, [still] * (delay + 2))
    text += reset.text + "".join(each.text for each in begun)
    claims += [equal(each.port("counts"), bits(0, layout.size)) for each in begun]
    return text + refute(both(*claims))


def _takes_part(now: Instance, is_wide: bool) -> list[str]:
    """Return that an operation is there and has something for a lane to do."""
    return [equal(now.port("writes"), "#b1"), *([] if is_wide else [equal(now.port("wide"), "#b0")])]


def _is_kind(now: Instance, kind: str) -> list[str]:
    return [equal(now.port("is_product"), "#b1" if kind == KINDS[0] else "#b0")]


def _raises(now: Instance, lane: int, name: str) -> list[str]:
    if name == "steps":
        return []
    at = EVENTS.index(name)
    return [equal(slice_of(now.port(f"events_{lane}"), at, at), "#b1")]
