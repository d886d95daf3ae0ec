# amaranth: UnusedElaboratable=no
# A part is made with its unit, which may never be elaborated.
"""The counters of a unit: how many steps it has taken, and what they raised (NUMERICS section 11)."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "COUNTER_BITS",
    "EVENTS",
    "KINDS",
    "Counter",
    "Counters",
    "connect_counters",
    "counting_ports",
    "counts_layout",
    "events_layout",
]

#: Bits of a counter, which stops at its largest value.
COUNTER_BITS = 32
#: What a step may raise, in the order of `golden.Events`; ``steps`` stands ahead of them.
EVENTS = ("inexact", "underflow", "overflow", "invalid", "swamped")
#: What a step adds.
KINDS = ("products", "promotions")


def events_layout() -> data.StructLayout:
    """Return the layout of what a step has raised: flags, and whether its product was lost."""
    return data.StructLayout(dict.fromkeys(EVENTS, 1))


def counts_layout(bits: int = COUNTER_BITS) -> data.StructLayout:
    """Return the layout of all counters, least significant first: those of products, then those of promotions.

    ``steps``
        Steps that were taken.
    ``inexact``, ``underflow``, ``overflow``, ``invalid``
        Steps that raised the flag.
    ``swamped``
        Steps of finite addends that left the accumulator as it was, although what they added was not zero.
    """
    return data.StructLayout({kind: data.StructLayout(dict.fromkeys(("steps", *EVENTS), bits)) for kind in KINDS})


def counting_ports(*, counters: bool) -> dict[str, Any]:
    """Return the ports of a unit that belong to its counters; none of a unit without."""
    return {"counts": Out(counts_layout()), "clear_counts": In(1)} if counters else {}


def connect_counters(unit: Any, counting: Counters, finished: Any) -> list[Any]:
    """Return the statements that connect the counters with their unit and with the operation behind the last rank."""
    return [
        counting.writes.eq(finished.writes),
        counting.is_product.eq(finished.is_product),
        counting.wide.eq(finished.wide),
        counting.clear.eq(unit.clear_counts),
        unit.counts.eq(counting.counts),
    ]


class Counter(wiring.Component):
    """Add a small number in every cycle, up to the largest value, and stay there.

    Parameters
    ----------
    most : int
        The largest number that is added in a cycle.
    bits : int
        Of the counter.

    Ports
    -----
    more : unsigned, in
        What is added at the clock edge, `most` at most.
    clear : in
        Begin again at the clock edge, with ``more``: what is added in the same cycle belongs to the new count.
    value : unsigned(bits), out

    Attributes
    ----------
    is_high : Signal
        State that proofs speak of: all bits above the lowest `room_bits` were 1 one cycle ago.
    room_bits : int
    """

    def __init__(self, most: int, bits: int = COUNTER_BITS) -> None:
        self.most, self.bits = most, bits
        #: A value that was not high one cycle ago is so far below the largest that two additions do not pass it.
        self.room_bits = (2 * most - 1).bit_length()
        super().__init__({"more": In(range(most + 1)), "clear": In(1), "value": Out(bits)})
        self.is_high = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Looked at one cycle ahead, so that no long condition stands in front of the long addition.
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
    """Count the operations that stand behind the last rank, and what their steps raised, over all lanes.

    A step is counted three cycles after it stands there. What a reset cuts off is not counted, and a reset sets the
    counters to 0.

    Parameters
    ----------
    lanes : sequence of bool
        For each lane that is built, whether it takes part in fp32 operations, too.
    has_chunks : bool
        Whether there are promotions; their counters are 0 otherwise.
    bits : int
        Of a counter.

    Ports
    -----
    writes, is_product, wide : in
        Of the operation behind the last rank, as in `hdl.mac.operation.operation_layout`.
    events : array of events_layout, in
        Of every lane, what this step raised.
    clear : in
        Begin again from 0. What is counted in the same cycle belongs to the new counts: none is lost.
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
        #: The counters, by kind and by what they count.
        self.parts = {(kind, name): Counter(len(lanes), bits) for kind in kinds for name in ("steps", *EVENTS)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Behind the lanes there is no time left to count.
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
    """Return how many of these are 1, added in pairs."""
    if len(bits) == 1:
        return bits[0]
    half = len(bits) // 2
    return _sum(bits[:half]) + _sum(bits[half:])
