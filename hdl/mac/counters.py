# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The counters of a unit's steps and their events (NUMERICS section 11)."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.flags import EVENTS

__all__ = [
    "COUNTER_BITS",
    "KINDS",
    "Counter",
    "Counters",
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


class Counter(wiring.Component):
    """Add a small number in every cycle, and saturate at the largest value.

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
    value : unsigned(bits), out

    Attributes
    ----------
    is_high : Signal
        State that proofs refer to: all bits above the lowest `room_bits` were 1 one cycle ago.
    room_bits : int
    """

    def __init__(self, most: int, bits: int = COUNTER_BITS) -> None:
        self.most, self.bits = most, bits
        #: A value that was not high one cycle ago is so far below the largest that two additions cannot pass it.
        self.room_bits = (2 * most - 1).bit_length()
        super().__init__({"more": In(range(most + 1)), "clear": In(1), "value": Out(bits)})
        self.is_high = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Tested one cycle ahead, to keep a long condition off the path of the long addition.
        room = ~self.value[: self.room_bits]
        more = Mux(self.is_high & (self.more > room), room, self.more)
        m.d.sync += [
            self.value.eq(self.value + more),
            self.is_high.eq(self.value[self.room_bits :].all() & ~self.clear),
        ]
        with m.If(self.clear):
            m.d.sync += self.value.eq(self.more)
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
    bits : int
        Width of a counter.

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

    def __init__(self, lanes: tuple[bool, ...], *, has_chunks: bool, bits: int = COUNTER_BITS) -> None:
        self.lanes, self.bits = lanes, bits
        events = events_layout()
        super().__init__(
            {
                **{name: In(1) for name in ("writes", "is_product", "wide")},
                "events": In(events).array(len(lanes)),
                "clear": In(1),
                "counts": Out(counts_layout(bits)),
            }
        )
        kinds = KINDS if has_chunks else KINDS[:1]
        #: The counters, by kind and event.
        self.parts = {(kind, name): Counter(len(lanes), bits) for kind in kinds for name in ("steps", *EVENTS)}

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
        for (kind, name), counter in self.parts.items():
            m.submodules[f"{kind}_{name}"] = counter
            is_its = step["is_product"] if kind == "products" else ~step["is_product"]
            m.d.comb += [
                counter.more.eq(self._later(m, f"{kind}_{name}", _sum([bit & is_its for bit in raised[name]]))),
                counter.clear.eq(self.clear),
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
