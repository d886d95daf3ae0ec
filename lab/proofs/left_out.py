"""Units without their lanes inside another component: replacements for a lane, and the unit's own ports."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring

from hdl.mac.lane import lane_signature
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.mac.parameters import MacParameters
from hdl.matrix.lane import MatrixLane
from hdl.matrix.matrix_mac import MatrixMac
from hdl.vector.vector_mac import VectorMac

__all__ = ["OpenLane", "OpenMac", "OpenMatrixMac", "OpenVectorMac", "pass_on", "rows_of"]


class OpenLane(wiring.Component):
    """A lane whose results come from outside.

    It has the ports of `hdl.mac.lane.lane_signature`.

    Parameters
    ----------
    parameters : MacParameters

    Attributes
    ----------
    cleared : Signal
        State that proofs refer to: the code is 0, whatever is given.
    """

    def __init__(self, parameters: MacParameters) -> None:
        super().__init__(lane_signature(parameters))
        self._has_rank = "pack" in parameters.ranks
        self._code, self.cleared = Signal.like(self.code, name="given_code"), Signal()

    def given(self, name: str) -> Any:
        """Return the signal that decides on an output."""
        return self._code if name == "code" else getattr(self, name)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d["sync" if self._has_rank else "comb"] += self.cleared.eq(self.clears)
        m.d.comb += self.code.eq(Mux(self.cleared, 0, self._code))
        return m


class OpenMac(MultiplyAccumulate):
    """A multiply-accumulate unit whose lane is left out."""

    lane_type = OpenLane


class OpenMatrixLane(MatrixLane):
    """A lane of an array that gives nothing."""

    def elaborate(self, platform: object) -> Module:
        return Module()


class OpenMatrixMac(MatrixMac):
    """An array whose lanes are left out."""

    lane_type = OpenMatrixLane


class OpenVectorMac(VectorMac):
    """A SIMD multiply-accumulate unit whose lanes are left out."""

    lane_type = OpenLane


def rows_of(memory: Any) -> list[Any]:
    """Return a read port for each row of a memory, to be told its address."""
    return [memory.read_port(domain="comb") for _ in range(memory.depth)]


def pass_on(top: Any, unit: Any) -> list[Any]:
    """Return the statements that connect a unit's streams and its port ``chunk`` with the component around it."""
    return [
        unit.i.payload.eq(top.i.payload),
        unit.i.valid.eq(top.i.valid),
        top.i.ready.eq(unit.i.ready),
        unit.chunk.eq(top.chunk),
        top.o.payload.eq(unit.o.payload),
        top.o.valid.eq(unit.o.valid),
        unit.o.ready.eq(top.o.ready),
    ]
