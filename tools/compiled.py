"""A combinational component as machine code: millions of vectors a second, from and into NumPy arrays.

Amaranth's own simulator evaluates a few thousand vectors a second, which is enough for protocols but not for
arithmetic. Here Yosys translates the netlist into C++ (CXXRTL), and the host's compiler makes a shared library of it.
One core does some 25 million conversions or 10 million fused steps a second: minutes for all 2^32 codes of float32.

    adder = Compiled(component)
    sums = adder(a=..., b=...)["o"]
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from amaranth import Shape
    from amaranth.back import rtlil
    from amaranth.lib import data, wiring
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("tools.compiled needs Amaranth: pip install -e '.[hdl]'", name=missing.name) from missing

from hdl.simulation import compiling
from hdl.simulation.compiling import OPTIONS, headers
from hdl.simulation.integers import with_integers
from tools.yosys import run_yosys

__all__ = ["Compiled", "fields", "inputs_of_top", "library", "member", "translate_rtlil"]

#: The folder of the libraries; each is named after a hash of everything that went into it.
FOLDER = Path(__file__).resolve().parents[1] / "build" / "compiled"

#: A port is passed as one of these.
WORD_BITS = 64


class Compiled:
    """A combinational component, compiled; call it with one array per input.

    The call lets other Python threads run and shares no state with other calls, so a pool of threads can share a long
    run.

    Parameters
    ----------
    component : wiring.Component
        Its ports come from its signature, with the members of interfaces joined by ``__``; ports of no bits are left
        out. A port of a struct is one word, see `fields`.

    Attributes
    ----------
    inputs, outputs : dict of str to int
        Width of every port, by name.

    Raises
    ------
    TypeError
        If `component` is not a component.
    ValueError
        If it has registers, or a port of more than 64 bits.
    RuntimeError
        If Yosys or a C++ compiler is missing, or one of them fails.
    """

    def __init__(self, component: wiring.Component) -> None:
        if not isinstance(component, wiring.Component):
            raise TypeError(f"component: got {component!r}, must be an Amaranth wiring.Component")
        name = type(component).__name__
        self.inputs, self.outputs = _ports(component)
        for port, width in (self.inputs | self.outputs).items():
            if width > WORD_BITS:
                raise ValueError(f"component: port {port} of {name} has {width} bits, must be at most {WORD_BITS}")
        netlist = rtlil.convert(component, emit_src=False)
        clocks = inputs_of_top(netlist) - set(self.inputs)
        if clocks:
            raise ValueError(f"component: {name} has {', '.join(sorted(clocks))}, must be combinational")
        source = with_integers(translate_rtlil(netlist), "top") + self._loop()
        self._run = ctypes.CDLL(str(library(source, headers(), OPTIONS))).run
        pointer = np.ctypeslib.ndpointer(np.uint64, flags="C_CONTIGUOUS")
        self._run.argtypes = [ctypes.c_uint64, *[pointer] * (len(self.inputs) + len(self.outputs))]
        self._run.restype = None

    def _loop(self) -> str:
        """Return the C++ that evaluates vector after vector."""
        arguments = [f"const uint64_t *{port}" for port in self.inputs] + [f"uint64_t *{port}" for port in self.outputs]
        body = [f"top.{member(port)}.set<uint64_t>({port}[k]);" for port in self.inputs]
        body += ["top.step();"]
        body += [f"{port}[k] = top.{member(port)}.get<uint64_t>();" for port in self.outputs]
        lines = ["", 'extern "C" void run(uint64_t count, ' + ", ".join(arguments) + ") {"]
        lines += ["  cxxrtl_design::p_top top;", "  for (uint64_t k = 0; k < count; k++) {"]
        lines += [*(f"    {line}" for line in body), "  }", "}", ""]
        return "\n".join(lines)

    def __call__(self, **inputs: ArrayLike) -> dict[str, NDArray[np.uint64]]:
        """Evaluate the component on arrays that broadcast to one shape.

        Parameters
        ----------
        **inputs : array_like of int
            One for each input port: unsigned words.

        Returns
        -------
        dict of str to ndarray
            One array of words for each output port, in the common shape.

        Raises
        ------
        TypeError
            If inputs are missing or unknown, or not integers.
        ValueError
            If a value does not fit its port, or the shapes do not broadcast.
        """
        if inputs.keys() != self.inputs.keys():
            raise TypeError(f"inputs: got {', '.join(inputs) or 'none'}, must be {', '.join(self.inputs)}")
        words = np.broadcast_arrays(*(_words(inputs[port], port, width) for port, width in self.inputs.items()))
        shape = words[0].shape
        results = {port: np.empty(shape, np.uint64) for port in self.outputs}
        self._run(words[0].size, *map(np.ascontiguousarray, words), *results.values())
        return results


def fields(shape: object, words: NDArray[np.uint64]) -> dict[str, NDArray[np.uint64]]:
    """Take the words of a struct port apart.

    Parameters
    ----------
    shape : data.StructLayout
        The port's shape.
    words : ndarray of uint64

    Returns
    -------
    dict of str to ndarray
        One array of words for each field; a field that is itself a struct is one word.
    """
    if not isinstance(shape, data.StructLayout):
        raise TypeError(f"shape: got {shape!r}, must be a StructLayout")
    return {
        str(key): words >> np.uint64(field.offset) & np.uint64((1 << field.width) - 1)
        for key, field in shape
        if field.width
    }


def _ports(component: wiring.Component) -> tuple[dict[str, int], dict[str, int]]:
    """Return the widths of the inputs and of the outputs, without ports of no bits."""
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for path, member, _ in component.signature.flatten(component):
        width = Shape.cast(member.shape).width
        if width:
            (inputs if member.flow is wiring.In else outputs)["__".join(map(str, path))] = width
    return inputs, outputs


def inputs_of_top(netlist: str) -> set[str]:
    """Return the inputs in the netlist: a component with registers has a clock, which is not in its signature."""
    top = re.search(r"^module \\top$(.*?)^end$", netlist, re.MULTILINE | re.DOTALL)
    assert top, "no module top in the netlist"
    declared = re.findall(r"^\s*wire (?:.* )?width (\d+) (?:.* )?input \d+ (?:.* )?\\(\S+)$", top[1], re.MULTILINE)
    return {name for width, name in declared if int(width)}


def member(port: str) -> str:
    """Return the port's name in C++: CXXRTL doubles underscores."""
    return "p_" + port.replace("_", "__")


def _words(given: ArrayLike, port: str, width: int) -> NDArray[np.uint64]:
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{port}: got an array of {array.dtype}, must be unsigned integers")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> width):
        raise ValueError(f"{port}: got values from {array.min()} to {array.max()}, must fit in {width} bits")
    return array.astype(np.uint64, copy=False)


def translate_rtlil(netlist: str) -> str:
    """Have Yosys turn the netlist into C++, without debug information, which triples the compile time.

    Amaranth's wrapper has no such option. It also warns of wires that are evaluated twice, as are struct ports whose
    fields depend on each other.
    """
    status, source, errors = run_yosys(f"read_rtlil <<netlist\n{netlist}\nnetlist\nwrite_cxxrtl -g0\n")
    if status:
        raise RuntimeError(f"Yosys failed with status {status}:\n{errors}")
    return source


def library(source: str, include: Path | None = None, options: Sequence[str] = ()) -> Path:
    """Return the shared library of a C++ source in `FOLDER`, compiled unless it already has been.

    Parameters and errors are as for `hdl.simulation.compiling.library`.
    """
    return compiling.library(source, FOLDER, include, options)
