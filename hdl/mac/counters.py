# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The counters of a unit's steps and their events (NUMERICS section 11)."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.flags import EVENTS
from hdl.cores.words import named

__all__ = [
    "COUNTER_BITS",
    "KINDS",
    "Counter",
    "Counters",
    "Turns",
    "connect_counters",
    "counting_ports",
    "counts_layout",
    "events_layout",
]

#: Bits of a counter; it saturates.
COUNTER_BITS = 32
#: Kinds of addend: a product, or a promoted partial sum.
KINDS = ("products", "promotions")


def events_layout() -> data.StructLayout:
    """Return the layout of a step's events: flags, and whether its product was lost."""
    return data.StructLayout(dict.fromkeys(EVENTS, 1))


def counts_layout(bits: int = COUNTER_BITS) -> data.StructLayout:
    """Return the layout of all counters, least significant first: products, then promotions.

    ``steps``
        All steps.
    ``inexact``, ``underflow``, ``overflow``, ``invalid``
        Steps that raised the flag.
    ``swamped``
        Steps of finite addends that left the accumulator unchanged, although the other addend was not zero.
    """
    return data.StructLayout({kind: data.StructLayout(dict.fromkeys(("steps", *EVENTS), bits)) for kind in KINDS})


def counting_ports(*, counters: bool) -> dict[str, Any]:
    """Return the ports of a unit's counters; none for a unit without counters."""
    return {"counts": Out(counts_layout()), "clear_counts": In(1)} if counters else {}


def connect_counters(unit: Any, counting: Counters, finished: Any) -> list[Any]:
    """Return the statements that connect the counters to their unit and to the operation behind the last rank."""
    return [
        counting.writes.eq(finished.writes),
        counting.is_product.eq(finished.is_product),
        counting.wide.eq(finished.wide),
        counting.clear.eq(unit.clear_counts),
        unit.counts.eq(counting.counts),
    ]


class Turns(wiring.Component):
    """Tell when counters may begin to add to their high bits: once in so many cycles as they have.

    Parameters
    ----------
    period : int
        At least 2.

    Ports
    -----
    turn : out

    Attributes
    ----------
    phase : Signal
        State that proofs refer to: the cycles since the last turn, less one.
    """

    def __init__(self, period: int) -> None:
        super().__init__({"turn": Out(1)})
        self.period, self.phase = period, Signal(range(period), name="phase")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Found one cycle ahead, because every counter waits for it.
        turn = Signal()
        m.d.sync += [turn.eq(self.phase == self.period - 2), self.phase.eq(Mux(turn, 0, self.phase + 1))]
        m.d.comb += self.turn.eq(turn)
        return m


class Counter(wiring.Component):
    """Add a small number in every cycle, and saturate at the largest value.

    Only the low bits are added at once; a carry chain over all bits would be most of a counter's logic. The high bits
    change seldom. What they will be next is found in the meantime, one bit a cycle::

        value      [ high | low ]    low + more; its carry loads next_high into high
        next_high  [ high + 1 ]      rotates to the right once: the carry is added to the bit that returns at the left

    Parameters
    ----------
    most : int
        The largest number added in a cycle.
    bits : int
        Width of the counter.

    Ports
    -----
    more : unsigned, in
        The number added at the clock edge, at most `most`.
    clear : in
        Restart at the clock edge with ``more``, which belongs to the new count.
    turn : in
        1 once in `high_bits` cycles: rotations begin and end.
    value : unsigned(bits), out

    Attributes
    ----------
    low, high, next_high, carry, waits, adds, is_near : Signal
        State that proofs refer to. ``waits`` for its turn, or ``adds`` until the next one; otherwise ``next_high`` is
        ready, and ``carry`` tells whether all high bits are 1. ``is_near``: the low bits above the lowest `room_bits`
        were 1 one cycle ago, and still are.
    low_bits, high_bits, room_bits : int
    """

    def __init__(self, most: int, bits: int = COUNTER_BITS) -> None:
        #: The high bits wait for their turn and rotate before the low ones can pass their end again.
        self.low_bits = next(
            low for low in range(1, bits + 1) if low == bits or 1 << low >= most * (2 * (bits - low) + 1)
        )
        self.most, self.high_bits = most, bits - self.low_bits
        #: Low bits that were not near their end one cycle ago are so far from it that two additions cannot pass it.
        self.room_bits = (2 * most - 1).bit_length()
        super().__init__({"more": In(range(most + 1)), "clear": In(1), "turn": In(1), "value": Out(bits)})
        self.low, self.high = Signal(self.low_bits, name="low"), Signal(self.high_bits, name="high")
        self.next_high = Signal(self.high_bits, init=1 if self.high_bits else 0)
        self.carry, self.waits, self.adds, self.is_near = (
            Signal(name=name) for name in ("carry", "waits", "adds", "is_near")
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        is_high, room = self.carry if self.high_bits else C(1, 1), self.room_bits
        # A few bits decide whether the low ones pass their end: every high bit waits for that.
        passes = self.is_near & (self.low[:room] + self.more)[room:].any()
        is_full, changes = named(m, "is_full", passes & is_high), named(m, "changes", passes & ~is_high)
        m.d.comb += self.value.eq(Cat(self.low, self.high))
        m.d.sync += [
            self.low.eq((self.low + self.more) | is_full.replicate(self.low_bits)),
            self.is_near.eq(self.low[room:].all() & ~changes),
            self.carry.eq(changes | (self.carry & (self.next_high[:1].any() | ~self.adds))),
            self.waits.eq(changes | (self.waits & ~self.turn)),
        ]
        with m.If(self.turn):
            m.d.sync += self.adds.eq(self.waits)
        with m.If(self.adds):
            m.d.sync += self.next_high.eq(Cat(self.next_high[1:], self.next_high[:1] ^ self.carry))
        with m.If(changes):
            m.d.sync += self.high.eq(self.next_high)
        with m.If(self.clear):
            m.d.sync += [self.low.eq(self.more), self.high.eq(0), self.next_high.eq(self.next_high.init)]
            m.d.sync += [self.carry.eq(0), self.waits.eq(0), self.adds.eq(0), self.is_near.eq(0)]
        return m


class Counters(wiring.Component):
    """Count the operations behind the last rank and the events of their steps, over all lanes.

    A step is counted three cycles after it is there. A reset sets the counters to 0; steps that it interrupts are not
    counted.

    Parameters
    ----------
    lanes : sequence of bool
        For each lane that is built, whether it also takes part in fp32 operations.
    has_chunks : bool
        Whether there are promotions; their counters are 0 otherwise.

    Ports
    -----
    writes, is_product, wide : in
        Fields of the operation behind the last rank, as in `hdl.mac.operation.operation_layout`.
    events : array of events_layout, in
        The events of this step, for each lane.
    clear : in
        Restart from 0. Events counted in the same cycle belong to the new counts, so none is lost.
    counts : counts_layout, out
    """

    def __init__(self, lanes: tuple[bool, ...], *, has_chunks: bool) -> None:
        self.lanes = lanes
        events = events_layout()
        super().__init__(
            {
                **{name: In(1) for name in ("writes", "is_product", "wide")},
                "events": In(events).array(len(lanes)),
                "clear": In(1),
                "counts": Out(counts_layout()),
            }
        )
        kinds = KINDS if has_chunks else KINDS[:1]
        #: The counters, by kind and event.
        self.parts = {(kind, name): Counter(len(lanes)) for kind in kinds for name in ("steps", *EVENTS)}
        self.turns = Turns(next(iter(self.parts.values())).high_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Counting right behind the lanes would miss timing.
        step = {name: self._later(m, name, getattr(self, name)) for name in ("writes", "is_product", "wide")}
        events = [
            self._later(m, f"events_{lane}", here.as_value(), reset_less=True) for lane, here in enumerate(self.events)
        ]
        are_active = [step["writes"] & (is_wide | ~step["wide"]) for is_wide in self.lanes]
        raised = {"steps": are_active} | {
            name: [active & word[at] for active, word in zip(are_active, events, strict=True)]
            for at, name in enumerate(EVENTS)
        }
        m.submodules.turns = self.turns
        for (kind, name), counter in self.parts.items():
            m.submodules[f"{kind}_{name}"] = counter
            is_its = step["is_product"] if kind == "products" else ~step["is_product"]
            m.d.comb += [
                counter.more.eq(self._later(m, f"{kind}_{name}", _sum([bit & is_its for bit in raised[name]]))),
                counter.clear.eq(self.clear),
                counter.turn.eq(self.turns.turn),
                self.counts[kind][name].eq(counter.value),
            ]
        return m

    @staticmethod
    def _later(m: Module, name: str, value: Any, *, reset_less: bool = False) -> Signal:
        held = Signal(value.shape(), name=f"counted_{name}", reset_less=reset_less)
        m.d.sync += held.eq(value)
        return held


def _sum(bits: list[Value]) -> Value:
    """Return the number of ones among these bits, added in pairs."""
    if len(bits) == 1:
        return bits[0]
    half = len(bits) // 2
    return _sum(bits[:half]) + _sum(bits[half:])
