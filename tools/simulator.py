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

#: Most testbenches take some thousand cycles: less time than the compiler needs to optimise the C++.
_QUICK = ("-O0",)

_GLUE = """
#include <cstring>
template <size_t N> static uint32_t *now(cxxrtl::value<N> &value) { return value.data; }
template <size_t N> static uint32_t *now(cxxrtl::wire<N> &wire) { return wire.curr.data; }
using Top = cxxrtl_design::p_top;
extern "C" void *create() { return new Top; }
extern "C" void destroy(void *top) { delete static_cast<Top *>(top); }
extern "C" void step(void *top) { static_cast<Top *>(top)->step(); }
extern "C" void cycle(void *top, uint32_t *clock) {
  *clock = 1;
  static_cast<Top *>(top)->step();
  *clock = 0;
  static_cast<Top *>(top)->step();
}
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
        Signals within the unit that testbenches read; they may set signals without a driver.
    is_long : bool
        Whether testbenches take some 100,000 cycles, so that it pays to let the compiler optimise the C++.

    Raises
    ------
    RuntimeError
        If Yosys or a C++ compiler is missing, or one of them fails.
    """

    def __init__(self, unit: wiring.Component, *others: Signal, is_long: bool = False) -> None:
        signals = {"__".join(map(str, path)): Value.cast(port) for path, _, port in unit.signature.flatten(unit)}
        signals |= {f"other_{number}": Value.cast(signal) for number, signal in enumerate(others)}
        self._signals = {name: signal for name, signal in signals.items() if len(signal)}
        netlist = rtlil.convert(unit, ports={name: (it, None) for name, it in self._signals.items()}, emit_src=False)
        names = list(self._signals)
        if has_clock := "clk" in inputs_of_top(netlist):
            names.append("clk")
        cases = "\n".join(f"    case {number}: return now(top.{member(name)});" for number, name in enumerate(names))
        source = with_integers(translate_rtlil(netlist), "top") + _GLUE.replace("CASES", cases)
        self._code = ctypes.CDLL(str(library(source, headers(), OPTIONS if is_long else _QUICK)))
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
        self._ports = {
            key: (self._word(number, len(signal)), 1 << len(signal), signal.shape().signed)
            for key, (number, signal) in ports.items()
        }
        self._clock = None if clock is None else ctypes.c_void_p(code.port(top, clock))

    def _word(self, number: int, width: int) -> Any:
        """Return the number at the address of a port: its ``value`` reads and drives the port."""
        address = self._code.port(self._top, number)
        if width <= 64:
            return (ctypes.c_uint32 if width <= 32 else ctypes.c_uint64).from_address(address)
        return _Wide((ctypes.c_uint8 * (4 * -(-width // 32))).from_address(address))

    def get(self, expression: Any) -> Any:
        """Return the value of a port, of a part of it, or of several ports side by side."""
        if not self._is_settled:
            self._step()
        if whole := self._ports.get(id(expression)):  # most are, and it takes a fifth of the time
            word, end, is_signed = whole
            value = word.value
            return value - end if is_signed and value >= end >> 1 else value
        value, at = 0, 0
        for word, low, width in self._parts(Value.cast(expression)):
            value |= (word.value >> low & (1 << width) - 1) << at
            at += width
        shape = expression.shape()
        if isinstance(expression, ValueCastable) and not isinstance(shape, Shape):
            return shape.from_bits(value)
        return value - (1 << at) if Shape.cast(shape).signed and value >> (at - 1) else value

    def set(self, expression: Any, value: Any) -> None:
        """Drive an input, a part of it, or several inputs side by side."""
        if whole := self._ports.get(id(expression)):
            word, end, _ = whole
            word.value = int(value) & (end - 1)
        else:
            shape = expression.shape()
            if isinstance(expression, ValueCastable) and not isinstance(shape, Shape):
                value = Value.cast(shape.const(value)).value
            value = int(value)
            for word, low, width in self._parts(Value.cast(expression)):
                mask = (1 << width) - 1
                word.value = word.value & ~(mask << low) | (value & mask) << low
                value >>= width
        self._is_settled = False

    def tick(self) -> Awaitable[None]:
        """Let a clock cycle pass."""
        if self._clock is None:
            raise ValueError("tick: the unit has no clock of its own, set its clock port and await delay()")
        if not self._is_settled:
            self._step()
        self._code.cycle(self._top, self._clock)
        return _PASSED

    def delay(self, interval: float) -> Awaitable[None]:
        """Let signals settle; simulated time does not matter here."""
        del interval
        self._step()
        return _PASSED

    def _step(self) -> None:
        self._code.step(self._top)
        self._is_settled = True

    def _parts(self, value: Value) -> Iterator[tuple[Any, int, int]]:
        """Yield word, lowest bit and width of the parts of an expression, the lowest one first."""
        match value:
            case Signal() if not len(value):
                return
            case Signal() if id(value) in self._ports:
                yield self._ports[id(value)][0], 0, len(value)
            case Slice():
                skipped, left = value.start, len(value)
                for word, low, width in self._parts(value.value):
                    taken = min(max(width - skipped, 0), left)
                    if taken:
                        yield word, low + skipped, taken
                    skipped, left = max(skipped - width, 0), left - taken
            case Concat():
                for part in value.parts:
                    yield from self._parts(part)
            case _:
                raise TypeError(f"expression: got {value!r}, must be a port, a part of one, or several side by side")


class _Passed:
    """An awaitable that is ready: the event that the testbench awaits has happened."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


_PASSED = _Passed()


class _Wide:
    """The bytes of a port of more than 64 bits, with the ``value`` that numbers of ctypes have."""

    def __init__(self, content: Any) -> None:
        self._content = content

    @property
    def value(self) -> int:
        return int.from_bytes(self._content, "little")

    @value.setter
    def value(self, value: int) -> None:
        self._content[:] = value.to_bytes(len(self._content), "little")
