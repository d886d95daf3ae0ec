"""A unit without feedback, evaluated on 512 vectors at once, from and into NumPy arrays.

`tools.compiled` evaluates one vector after another. Here every gate of the netlist is one instruction for 512 vectors:
a converter takes some hundreds of them, which makes hundreds of millions of conversions a second on one core.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Shape
from amaranth.lib import data, wiring
from numpy.typing import NDArray

from hdl.verilog import to_verilog
from tools.programs import YOSYS
from tools.sliced.gates import ZERO, Ordered, cells_of, circuit, driver, in_order

__all__ = ["Sliced"]

#: The folder in which the gates stay for inspection; each netlist's folder is named after its hash.
FOLDER = Path(__file__).resolve().parents[2] / "build" / "sliced"

_TOP = "unit"
_WORD_BITS = 32

# A register with a tied enable passes its input on in every cycle: in a pipeline without feedback, fed the same input
# for ever, it is a wire. Any other cell with a memory stays and is refused.
_REGISTERS_TO_WIRES = """
module \\$dff (CLK, D, Q);
  parameter WIDTH = 0;
  parameter CLK_POLARITY = 1'b1;
  input CLK;
  input [WIDTH-1:0] D;
  output [WIDTH-1:0] Q;
  assign Q = D;
endmodule
"""


class _Unit(ctypes.Structure):
    _fields_ = [
        *(("circuit", ctypes.c_void_p), ("inputs", ctypes.c_uint64), ("outputs", ctypes.c_uint64)),
        ("result", ctypes.c_void_p),
    ]


class Sliced:
    """A unit, compiled from its generated Verilog; call it with one array for each input that is not tied.

    The call lets other Python threads run and shares no state with other calls.

    Parameters
    ----------
    unit : wiring.Component
        Combinational, or a pipeline without feedback. Its registers become wires: it gives at once the outputs that the
        pipeline gives `latency` cycles after the input.
    **tied : int
        The value of each input that never changes: for a pipeline ``rst=0``, valid and ready 1.

    Attributes
    ----------
    inputs, outputs : dict of str to int
        Width of every port that is not tied; a struct at an output is one port for each field, ``port.field``.
    constants : dict of str to int
        Outputs that do not depend on any input: for a pipeline, its valid and ready. They are not in `outputs`.
    function : ctypes function
        ``function(unit, count, inputs, outputs)`` in C, on arrays of pointers to 32-bit words.
    unit : int
        The address of its first argument.
    gates : int
        Number of gates in the netlist.

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
        module = _module_of(verilog, ties, FOLDER / mark)
        self.inputs = {name: width for name, width in inputs.items() if name not in tied}
        ports = {name: port["bits"] for name, port in module["ports"].items()}
        nets = dict(_outputs(unit, ports))
        fixed = {name: bits for name, bits in nets.items() if all(isinstance(net, str) for net in bits)}
        self.constants = {name: int("".join(map(str, reversed(bits))), 2) for name, bits in fixed.items()}
        nets = {name: bits for name, bits in nets.items() if name not in fixed}
        self.outputs = {name: len(bits) for name, bits in nets.items()}
        for name, width in (self.inputs | self.outputs).items():
            if width > _WORD_BITS:
                raise ValueError(f"unit: port {name} has {width} bits, must be at most {_WORD_BITS}")
        ordered = _ordered(module, {name: ports[name] for name in self.inputs}, [*nets.values()])
        self.gates = len(ordered.rows)
        result = [[ordered.number[net] for net in bits] + [ZERO] * (_WORD_BITS - len(bits)) for bits in nets.values()]
        self._circuit, self._result = circuit(len(ordered.number), ordered.rows), np.array(result, np.uint32)
        sizes = len(self.inputs), len(nets)
        self._unit = _Unit(ctypes.addressof(self._circuit), *sizes, self._result.ctypes.data)
        self.function, self.unit = _function(), ctypes.addressof(self._unit)

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
        self.function(self.unit, words[0].size, _pointers(words), _pointers(list(results.values())))
        return results


@cache
def _function() -> Any:
    function = driver().run
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
    function.restype = None
    return function


def _module_of(verilog: str, tied: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Have Yosys turn a module into gates and registers into wires; `tied`: inputs, as Verilog writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.v").write_text(verilog, encoding="utf-8")
    (folder / "registers.v").write_text(_REGISTERS_TO_WIRES, encoding="utf-8")
    ties = [f"delete -input w:{name}; connect -set {name} {value}" for name, value in tied.items()]
    script = [
        f"read_verilog unit.v; hierarchy -top {_TOP}; proc; flatten -noscopeinfo; cd {_TOP}; setattr -unset init w:*",
        *ties,
        # Enables and resets become constants and vanish. `opt` would pull conditions into registers of other kinds.
        "opt_expr; opt_clean; techmap -map registers.v; opt_expr; opt_clean; techmap; opt",
        "abc -g AND,OR,XOR,ANDNOT,ORNOT,XNOR,MUX; opt_clean; write_json gates.json",
    ]
    YOSYS.run(["-q", "-p", "; ".join(script)], folder, "yosys.log")
    module: dict[str, Any] = json.loads((folder / "gates.json").read_text(encoding="utf-8"))["modules"][_TOP]
    return module


def _ordered(module: dict[str, Any], inputs: Mapping[str, list[int | str]], outputs: list[list[int | str]]) -> Ordered:
    """Return the gates; every input has 32 planes."""
    cells, others = cells_of(module)
    for name, kind, _ in others:
        raise ValueError(f"verilog: got cell {name} of type {kind}, must be a pipeline without feedback")
    used = {*itertools.chain(*(pins for _, pins in cells.values()), *outputs)}
    if strays := used - {"0", "1", *itertools.chain(*inputs.values())} - cells.keys():
        raise ValueError(
            f"inputs: got {', '.join(inputs)}, but {len(strays)} nets depend on others or on nothing: "
            "tie the inputs that are no port of the unit's signature, such as rst"
        )
    unused = {name: [(name, bit) for bit in range(len(bits), _WORD_BITS)] for name, bits in inputs.items()}
    try:
        return in_order(cells, [*itertools.chain(*([*bits, *unused[name]] for name, bits in inputs.items()))])
    except CycleError as loop:
        raise ValueError(f"verilog: got a loop of {len(loop.args[1]) - 1} gates, must be without feedback") from None


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
