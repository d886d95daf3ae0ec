"""A unit with registers as machine code, driven by testbenches that are written for Amaranth's simulator.

Amaranth's own simulator takes ten times as long for a unit of this project, and is still the one for waveforms and for
a testbench that looks into a unit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Shape, Signal, Value, ValueCastable
from amaranth.hdl._ast import Concat, Slice
from amaranth.lib import wiring

from hdl.simulation.compiling import OPTIONS, headers
from hdl.simulation.integers import with_integers
from tools.compiled import inputs_of_top, library, member, translate_rtlil

__all__ = ["Bench", "CompiledSimulator"]

_GLUE = """
#include <cstring>
template <size_t N> static uint32_t *now(cxxrtl::value<N> &value) { return value.data; }
template <size_t N> static uint32_t *now(cxxrtl::wire<N> &wire) { return wire.curr.data; }
using Top = cxxrtl_design::p_top;
extern "C" void *create() { return new Top; }
extern "C" void destroy(void *top) { delete static_cast<Top *>(top); }
extern "C" void step(void *top) { static_cast<Top *>(top)->step(); }
extern "C" uint32_t *port(void *given, int number) {
  Top &top = *static_cast<Top *>(given);
  switch (number) {
CASES
  }
  return nullptr;
}
"""


class CompiledSimulator:
    """A unit as machine code.

    Parameters
    ----------
    unit : wiring.Component
    *others : Signal
        Signals within the unit that testbenches read; they may set those that nothing drives.

    Raises
    ------
    RuntimeError
        If Yosys or a C++ compiler is missing, or one of them fails.
    """

    def __init__(self, unit: wiring.Component, *others: Signal) -> None:
        signals = {"__".join(map(str, path)): Value.cast(port) for path, _, port in unit.signature.flatten(unit)}
        signals |= {f"other_{number}": Value.cast(signal) for number, signal in enumerate(others)}
        self._signals = {name: signal for name, signal in signals.items() if len(signal)}
        netlist = rtlil.convert(unit, ports={name: (it, None) for name, it in self._signals.items()}, emit_src=False)
        names = list(self._signals)
        if has_clock := "clk" in inputs_of_top(netlist):
            names.append("clk")
        cases = "\n".join(f"    case {number}: return now(top.{member(name)});" for number, name in enumerate(names))
        source = with_integers(translate_rtlil(netlist), "top") + _GLUE.replace("CASES", cases)
        self._code = ctypes.CDLL(str(library(source, headers(), OPTIONS)))
        self._code.create.restype = self._code.port.restype = ctypes.c_void_p
        self._clock = len(names) - 1 if has_clock else None

    def run(self, testbench: Callable[[Bench], Awaitable[None]]) -> None:
        """Run a testbench from power-up to its end."""
        top = ctypes.c_void_p(self._code.create())
        try:
            ports = {id(it): (number, it) for number, it in enumerate(self._signals.values())}
            running = testbench(Bench(self._code, top, ports, self._clock)).__await__()
            for _ in running:
                raise TypeError("testbench: awaits something else, must await tick() or delay()")
        finally:
            self._code.destroy(top)


class Bench:
    """The unit as a testbench sees it: `get`, `set`, `tick` and `delay`, as Amaranth defines them."""

    def __init__(self, code: Any, top: Any, ports: dict[int, tuple[int, Value]], clock: int | None) -> None:
        self._code, self._top, self._is_settled = code, top, False
        self._words = {key: self._place(number, len(signal)) for key, (number, signal) in ports.items()}
        self._clock = None if clock is None else self._place(clock, 1)

    def _place(self, number: int, width: int) -> Any:
        """Return the bytes of a port."""
        return (ctypes.c_uint8 * (4 * -(-width // 32))).from_address(self._code.port(self._top, number))

    def get(self, expression: Any) -> Any:
        """Return the value of a port, of a part of it, or of several ports side by side."""
        if not self._is_settled:
            self._step()
        value, at = 0, 0
        for port, low, width in self._parts(Value.cast(expression)):
            value |= (int.from_bytes(port, "little") >> low & (1 << width) - 1) << at
            at += width
        shape = expression.shape()
        if isinstance(expression, ValueCastable) and not isinstance(shape, Shape):
            return shape.from_bits(value)
        return value - (1 << at) if Shape.cast(shape).signed and value >> (at - 1) else value

    def set(self, expression: Any, value: Any) -> None:
        """Drive an input, a part of it, or several inputs side by side."""
        shape = expression.shape()
        if isinstance(expression, ValueCastable) and not isinstance(shape, Shape):
            value = Value.cast(shape.const(value)).value
        value = int(value)
        for port, low, width in self._parts(Value.cast(expression)):
            mask = (1 << width) - 1
            word = int.from_bytes(port, "little") & ~(mask << low) | (value & mask) << low
            port[:] = word.to_bytes(len(port), "little")
            value >>= width
        self._is_settled = False

    def tick(self) -> Awaitable[None]:
        """Let a clock cycle pass."""
        if self._clock is None:
            raise ValueError("tick: the unit has no clock of its own, set its clock port and await delay()")
        self._step()
        for level in (1, 0):
            self._clock[0] = level
            self._step()
        return _Passed()

    def delay(self, interval: float) -> Awaitable[None]:
        """Let signals settle; no time counts here."""
        del interval
        self._step()
        return _Passed()

    def _step(self) -> None:
        self._code.step(self._top)
        self._is_settled = True

    def _parts(self, value: Value) -> Iterator[tuple[Any, int, int]]:
        """Yield port, lowest bit and width of the parts of an expression, the lowest one first."""
        match value:
            case Signal() if not len(value):
                return
            case Signal() if id(value) in self._words:
                yield self._words[id(value)], 0, len(value)
            case Slice():
                skipped, left = value.start, len(value)
                for port, low, width in self._parts(value.value):
                    taken = min(max(width - skipped, 0), left)
                    if taken:
                        yield port, low + skipped, taken
                    skipped, left = max(skipped - width, 0), left - taken
            case Concat():
                for part in value.parts:
                    yield from self._parts(part)
            case _:
                raise TypeError(f"expression: got {value!r}, must be a port, a part of one, or several side by side")


class _Passed:
    """An awaitable that is ready: whatever the testbench waited for has happened."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()
