"""A unit inside another component, with its lane left out: what stands for the lane, and the unit's own ports."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal

from hdl.mac.lane import Lane

__all__ = ["OpenLane", "pass_on"]


class OpenLane(Lane):
    """A lane whose results come from outside.

    Attributes
    ----------
    accumulator_format : Signal, out
        Of the operation that is issued.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.accumulator_format = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.accumulator_format.eq(self.operations[0].accumulator_format)
        return m


def pass_on(top: Any, unit: Any) -> list[Any]:
    """Return the statements that make the streams and the port ``chunk`` of a unit those of the component around it."""
    return [
        unit.i.payload.eq(top.i.payload),
        unit.i.valid.eq(top.i.valid),
        top.i.ready.eq(unit.i.ready),
        unit.chunk.eq(top.chunk),
        top.o.payload.eq(unit.o.payload),
        top.o.valid.eq(unit.o.valid),
        unit.o.ready.eq(top.o.ready),
    ]
