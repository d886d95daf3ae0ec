"""The surroundings in which a unit is placed: three pins, and registers before and behind every port."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from amaranth import Cat, ClockDomain, ClockSignal, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CLOCKS", "Port", "Wrapper", "wrapper_verilog"]

#: Names of clock ports.
CLOCKS = ("clk", "aclk")


@dataclass(frozen=True)
class Port:
    """A port of a synthesised unit."""

    name: str
    width: int
    is_input: bool


class Wrapper(wiring.Component):
    """Feed any number of inputs from one pin, and fold any number of outputs into one.

    ::

        si -> shift register -> XOR of neighbours -> input register -> unit -> output register -> XOR chain -> so

    So every path into, through and out of the unit lies between two registers, without a pin on it. No two input
    registers hold the same function of the shift register, and every output reaches ``so``, so synthesis can neither
    merge nor remove any part of the unit.

    Parameters
    ----------
    ports : sequence of Port
        Ports of the unit, whose module is called ``unit``; `CLOCKS` has the names of clocks.

    Attributes
    ----------
    clk, si, so : Signal
        The pins: clock, input and output.

    Raises
    ------
    ValueError
        If the unit has no input or no output: synthesis would remove all of it.
    """

    def __init__(self, ports: Sequence[Port]) -> None:
        self.clocks = [port for port in ports if port.is_input and port.name in CLOCKS]
        self.inputs = [port for port in ports if port.is_input and port not in self.clocks]
        self.outputs = [port for port in ports if not port.is_input]
        if not self.inputs or not self.outputs:
            raise ValueError(f"ports: got {[port.name for port in ports]}, must have an input and an output")
        super().__init__({"clk": In(1), "si": In(1), "so": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain(reset_less=True)
        m.d.comb += ClockSignal().eq(self.clk)
        inputs = [Signal(port.width, name=f"input_register_{port.name}") for port in self.inputs]
        outputs = [Signal(port.width, name=f"from_unit_{port.name}") for port in self.outputs]
        registered = Signal(len(Cat(outputs)), name="output_register")
        m.submodules.unit = Instance(
            "unit",
            **{f"i_{port.name}": ClockSignal() for port in self.clocks},
            **{f"i_{port.name}": signal for port, signal in zip(self.inputs, inputs, strict=True)},
            **{f"o_{port.name}": signal for port, signal in zip(self.outputs, outputs, strict=True)},
        )

        shifted = Signal(len(Cat(inputs)) + 1)
        signature = Signal(len(registered))
        m.d.sync += [
            shifted.eq(Cat(self.si, shifted)),
            Cat(inputs).eq(shifted[:-1] ^ shifted[1:]),
            registered.eq(Cat(outputs)),
            signature.eq(Cat(0, signature) ^ registered),
            self.so.eq(signature[-1]),
        ]
        return m


def wrapper_verilog(ports: Sequence[Port]) -> str:
    """Return the Verilog of a wrapper, whose module is called ``wrapper``; the unit's module is not part of it."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    from amaranth.back import verilog

    return str(verilog.convert(Wrapper(ports), name="wrapper", emit_src=False, strip_internal_attrs=True))
