"""Proofs about the counters: each adds its input and stops at its largest value, and each gets its events.

- A counter of 32 bits, in every state that it can reach, adds the addend to its value, or to 0 if it is cleared, and
  stops at the largest value. Induction from a reset proves which states it can reach.
- For any inputs in a cycle, the counters of a unit add the number of lanes that took part and raised an event, a known
  number of cycles later. The counter of that event and of that kind of step adds it; no other counter changes.
  After a reset they are 0, and events on their way are not counted.
- So do the counters of a SIMD unit, whose lanes are left out, with the operation behind the last rank of its control.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import Cat, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.flags import EVENTS
from hdl.mac.counters import COUNTER_BITS, KINDS, Counter, Counters, Turns, counts_layout, events_layout
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
    phase, turn, states : out
        Of `hdl.mac.counters.Turns`, and `_state` of every counter, in the order of the counts.
    """

    def __init__(self, lanes: tuple[bool, ...]) -> None:
        self.counters = Counters(lanes, has_chunks=True)
        ports = {name: In(1) for name in ("writes", "is_product", "wide", "clear")}
        ports |= {f"events_{lane}": In(events_layout()) for lane in range(len(lanes))}
        super().__init__(ports | {"counts": Out(counts_layout())} | _state_ports(self.counters))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counters = counters = self.counters
        names = ("writes", "is_product", "wide", "clear")
        m.d.comb += [getattr(counters, name).eq(getattr(self, name)) for name in names]
        m.d.comb += [each.eq(getattr(self, f"events_{lane}")) for lane, each in enumerate(counters.events)]
        m.d.comb += [self.counts.eq(counters.counts), *_show_states(self, counters)]
        return m


class CountedVector(wiring.Component):
    """A SIMD unit whose lanes are left out, with the operation that its counters see, and their state, as ports.

    Ports
    -----
    i, o, chunk
        As of `hdl.VectorMac`.
    writes, is_product, wide : out
        Of the operation behind the last rank.
    events_0, ..., clear, counts, phase, turn, states
        As of `CountersAlone`.
    """

    def __init__(self, lanes: int) -> None:
        given: dict[str, Any] = {"operands": (TINY,), "inner": OPERAND, "lanes": lanes, "registers": 4, "stages": 1}
        self.unit = unit = OpenVectorMac(**given, counters=True)
        assert unit.counting
        self.counters = unit.counting
        members = unit.signature.members
        ports = {name: members[name] for name in ("i", "o", "chunk", "counts")}
        ports |= {f"events_{lane}": In(events_layout()) for lane in unit.lane_parts} | {"clear": In(1)}
        ports |= {name: Out(1) for name in ("writes", "is_product", "wide")}
        super().__init__(ports | _state_ports(self.counters))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        finished = unit.control.at[-1]
        m.d.comb += [getattr(self, name).eq(finished[name]) for name in ("writes", "is_product", "wide")]
        m.d.comb += [part.events.eq(getattr(self, f"events_{lane}")) for lane, part in unit.lane_parts.items()]
        m.d.comb += [
            unit.clear_counts.eq(self.clear),
            self.counts.eq(unit.counts),
            *_show_states(self, self.counters),
            *pass_on(self, unit),
        ]
        return m


class _CounterAlone(wiring.Component):
    """A counter with its turns, and ports that show the rest of their state."""

    def __init__(self, most: int) -> None:
        self.counter = Counter(most)
        self.turns = Turns(self.counter.high_bits)
        ports = {name: member for name, member in self.counter.signature.members.items() if name != "turn"}
        super().__init__(
            ports | {"phase": Out(len(self.turns.phase)), "turn": Out(1), "state": Out(_size(self.counter))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter, m.submodules.turns = counter, turns = self.counter, self.turns
        m.d.comb += [
            counter.more.eq(self.more),
            counter.clear.eq(self.clear),
            counter.turn.eq(turns.turn),
            self.value.eq(counter.value),
            self.phase.eq(turns.phase),
            self.turn.eq(turns.turn),
            self.state.eq(_state(counter)),
        ]
        return m


def _state(counter: Counter) -> Value:
    """Return the state of a counter beside its value."""
    return Cat(counter.next_high, counter.carry, counter.waits, counter.adds, counter.is_near)


def _size(counter: Counter) -> int:
    return len(_state(counter))


def _state_ports(counters: Counters) -> dict[str, Any]:
    """Return ports for the state of a unit's counters beside their values."""
    size = sum(map(_size, counters.parts.values()))
    return {"phase": Out(len(counters.turns.phase)), "turn": Out(1), "states": Out(size)}


def _show_states(component: Any, counters: Counters) -> list[Any]:
    """Return the statements that drive `_state_ports`."""
    turns = counters.turns
    return [
        component.phase.eq(turns.phase),
        component.turn.eq(turns.turn),
        component.states.eq(Cat(map(_state, counters.parts.values()))),
    ]


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


def _is_possible(counter: Counter, value: str, state: str, shown: Instance) -> str:
    """Tell whether a counter may be in a state.

    The next value of its high bits is ready, or computed as far as the phase says. Until it is ready, the low bits are
    too small to overflow.
    """
    width, size, most = counter.high_bits, counter.low_bits, counter.most
    high, low = slice_of(value, COUNTER_BITS - 1, size), slice_of(value, size - 1, 0)
    next_high, carry = slice_of(state, width - 1, 0), slice_of(state, width, width)
    waits, adds, is_near = (equal(slice_of(state, width + at, width + at), "#b1") for at in (1, 2, 3))
    phase, bits_of_phase = shown.port("phase"), (width - 1).bit_length()
    done = widened(phase, bits_of_phase, width)
    risen, ones = f"(bvadd {high} {bits(1, width)})", bits(-1, width)
    # The lowest bits have returned at the top.
    halfway = f"(bvor (bvshl {risen} (bvsub {bits(width, width)} {done})) (bvlshr {high} {done}))"
    carries = equal(f"(bvor {high} (bvshl {ones} {done}))", ones)
    passed = f"(bvmul {bits(most, COUNTER_BITS)} {widened(phase, bits_of_phase, COUNTER_BITS)})"

    def low_after(cycles: int) -> str:
        most_then = f"(bvadd {bits(most - 1 + most * cycles, COUNTER_BITS)} {passed})"
        return f"(bvule {widened(low, size, COUNTER_BITS)} {most_then})"

    def is_next(word: str, carried: str) -> str:
        return both(equal(next_high, word), equal(equal(carry, "#b1"), carried))

    its_turn = equal(shown.port("turn"), f"(ite {equal(phase, bits(width - 1, bits_of_phase))} #b1 #b0)")
    waiting, adding = both(is_next(high, "true"), low_after(0)), both(is_next(halfway, carries), low_after(width))
    room = counter.room_bits
    says_near = equal(slice_of(low, size - 1, room), bits(-1, size - room))
    just_below = bits((1 << size) - (1 << room) - 1 + most, size)
    return both(
        f"(ite {is_near} {says_near} (bvule {low} {just_below}))",
        f"(bvult {phase} {bits(width, bits_of_phase)})",
        its_turn,
        inverse(both(waits, adds)),
        f"(ite {waits} {waiting} (ite {adds} {adding} {is_next(risen, equal(high, ones))}))",
    )


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
        return _is_possible(component.counter, instance.port("value"), instance.port("state"), instance)

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
    """Return a formula with a solution if a count does not follow from the operation and the events of the lanes."""
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
        size = _size(counter)
        state = slice_of(before.port("states"), size * number + size - 1, size * number)
        more = bits(0, width)
        for lane, is_wide in enumerate(lanes):
            raised = both(*_takes_part(now, is_wide), *_is_kind(now, kind), *_raises(now, lane, name))
            more = f"(bvadd {more} (ite {raised} {bits(1, width)} {bits(0, width)}))"
        wanted = _saturated(held, equal(before.port("clear"), "#b1"), more, width)
        claims.append(either(inverse(_is_possible(counter, held, state, before)), equal(value, wanted)))
    text = now.text + "".join(each.text for each in cycles[1:]) + now.shown
    # After a reset, no earlier event is counted.
    still = {"writes": "#b0", "i__valid": "#b0"}
    reset = netlist.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    begun = following(netlist, delay + 2, "begun", reset, [still] * (delay + 2))
    text += reset.text + "".join(each.text for each in begun)
    claims += [equal(each.port("counts"), bits(0, layout.size)) for each in begun]
    return text + refute(both(*claims))


def _takes_part(now: Instance, is_wide: bool) -> list[str]:
    """Return the conditions that there is an operation with work for a lane."""
    return [equal(now.port("writes"), "#b1"), *([] if is_wide else [equal(now.port("wide"), "#b0")])]


def _is_kind(now: Instance, kind: str) -> list[str]:
    return [equal(now.port("is_product"), "#b1" if kind == KINDS[0] else "#b0")]


def _raises(now: Instance, lane: int, name: str) -> list[str]:
    if name == "steps":
        return []
    at = EVENTS.index(name)
    return [equal(slice_of(now.port(f"events_{lane}"), at, at), "#b1")]
