"""A unit as bit-sliced machine code, from and into NumPy arrays.

`tools.compiled` evaluates one vector after another. Here every gate of the netlist is one instruction for 512 vectors:
a converter takes some hundreds of them, which makes hundreds of millions of conversions a second on one core.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Shape
from amaranth.lib import data, wiring
from numpy.typing import NDArray

from hdl.verilog import to_verilog
from tools.compiled import library
from tools.sliced.emit import gates_of, planes

__all__ = ["Sliced"]

#: Where the gates are left, to be looked at; each netlist's folder is named after a hash of it.
FOLDER = Path(__file__).resolve().parents[2] / "build" / "sliced"

_DRIVER = Path(__file__).with_name("driver.cpp")
_TOP = "unit"
_WORD_BITS = 32


class Sliced:
    """A unit, compiled from its generated Verilog; call it with one array for each input that is not tied.

    The call lets other Python threads run and shares no state with other calls.

    Parameters
    ----------
    unit : wiring.Component
        Combinational, or a pipeline without feedback, whose registers become wires: it then gives what the pipeline
        gives `latency` cycles after its input.
    **tied : int
        The value of each input that is the same throughout: of a pipeline ``rst=0``, valid and ready 1.

    Attributes
    ----------
    inputs, outputs : dict of str to int
        Width of every port that is not tied; a struct at an output is one port for each field, ``port.field``.
    constants : dict of str to int
        Outputs that do not depend on any input: of a pipeline, its valid and ready. They are not in `outputs`.
    function : ctypes function
        ``function(count, inputs, outputs)`` in C, on arrays of pointers to 32-bit words.
    gates : int
        How many gates the netlist has.

    Raises
    ------
    tools.errors.ToolMissing, tools.errors.ToolFailed
        If Yosys is missing or fails.
    ValueError
        If the unit has feedback, or an input or a field of an output has more than 32 bits.
    RuntimeError
        If there is no C++ compiler, or it fails.
    """

    def __init__(self, unit: wiring.Component, **tied: int) -> None:
        verilog = to_verilog(unit, _TOP)
        mark = hashlib.sha256(f"{verilog}{sorted(tied.items())}".encode()).hexdigest()[:20]
        inputs = _inputs(unit)
        ties = {name: f"{inputs.get(name, 1)}'d{value}" for name, value in tied.items()}
        made = gates_of(verilog, _TOP, ties, FOLDER / mark)
        self.gates = len(made.cells)
        self.inputs = {name: width for name, width in inputs.items() if name not in tied}
        nets = dict(_outputs(unit, made.ports))
        fixed = {name: bits for name, bits in nets.items() if all(isinstance(net, str) for net in bits)}
        self.constants = {name: int("".join(map(str, reversed(bits))), 2) for name, bits in fixed.items()}
        nets = {name: bits for name, bits in nets.items() if name not in fixed}
        self.outputs = {name: len(bits) for name, bits in nets.items()}
        for name, width in (self.inputs | self.outputs).items():
            if width > _WORD_BITS:
                raise ValueError(f"unit: port {name} has {width} bits, must be at most {_WORD_BITS}")
        constants = f"#define INPUTS {len(self.inputs)}\n#define OUTPUTS {len(nets)}\n"
        source = constants + _DRIVER.read_text("utf-8") + planes(made, dict.fromkeys(self.inputs, _WORD_BITS), nets)
        self.function = ctypes.CDLL(str(library(source, options=("-O3", "-march=native", "-Wno-psabi")))).run
        self.function.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
        self.function.restype = None

    def __call__(self, **inputs: NDArray[Any]) -> dict[str, NDArray[np.uint32]]:
        """Evaluate the unit on arrays of one shape; the results have that shape.

        Raises
        ------
        TypeError
            If inputs are missing or unknown, or not unsigned integers of at most 32 bits.
        ValueError
            If the shapes differ, or a value does not fit its port.
        """
        if inputs.keys() != self.inputs.keys():
            raise TypeError(f"inputs: got {', '.join(inputs) or 'none'}, must be {', '.join(self.inputs)}")
        words = [_words(inputs[name], name, width) for name, width in self.inputs.items()]
        shape = words[0].shape
        if any(array.shape != shape for array in words):
            raise ValueError(f"inputs: got shapes {', '.join(str(array.shape) for array in words)}, must be the same")
        results = {name: np.empty(shape, np.uint32) for name in self.outputs}
        self.function(words[0].size, _pointers(words), _pointers(list(results.values())))
        return results


def _inputs(unit: wiring.Component) -> dict[str, int]:
    inputs = {}
    for path, member, _ in unit.signature.flatten(unit):
        width = Shape.cast(member.shape).width
        if member.flow is wiring.In and width:
            inputs["__".join(map(str, path))] = width
    return inputs


def _outputs(unit: wiring.Component, ports: Mapping[str, list[int | str]]) -> Iterator[tuple[str, list[int | str]]]:
    for path, member, _ in unit.signature.flatten(unit):
        name, width = "__".join(map(str, path)), Shape.cast(member.shape).width
        if member.flow is not wiring.Out or not width:
            continue
        if isinstance(member.shape, data.StructLayout):
            for key, field in member.shape:
                yield f"{name}.{key}", ports[name][field.offset : field.offset + field.width]
        else:
            yield name, ports[name]


def _words(given: NDArray[Any], name: str, width: int) -> NDArray[np.uint32]:
    array = np.asarray(given)
    if array.dtype.kind != "u" or array.dtype.itemsize > 4:
        raise TypeError(f"{name}: got an array of {array.dtype}, must be unsigned integers of at most 32 bits")
    if width < 8 * array.dtype.itemsize and array.size and int(array.max()) >> width:
        raise ValueError(f"{name}: got {int(array.max()):#x}, must fit in {width} bits")
    return np.ascontiguousarray(array, np.uint32)


def _pointers(arrays: list[NDArray[np.uint32]]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
