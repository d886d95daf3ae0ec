"""The public surface, found by introspection: what can be called, with which parameters, and one good call of it."""

from __future__ import annotations

import importlib
import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from golden import CB16, CBFLOAT16, FP32, FusedSum, Provenance, Reduction, explain, matmul, reference
from golden.torch import optim
from golden.torch.backend import BackendType
from hdl import FloatConverter
from hdl.verilog import to_verilog

ROOT = Path(__file__).resolve().parents[2]
#: Errors for bad input; RuntimeError and NotImplementedError where a docstring has them.
ERRORS = (TypeError, ValueError, OSError, RuntimeError, NotImplementedError, ImportError, MemoryError)

_CODES = np.full((2, 2), 0x3E00, np.uint16)
_VALUES = np.ones((2, 2), np.float32)
_BLOCKS = np.zeros((2, 1), np.uint8), np.zeros((2, 32), np.uint8)
_NOWHERE = Provenance("none", "none", (), "this test", "nothing", "nothing", "nothing")
_TENSOR = torch.ones(2, 2)
_IMAGE, _KERNEL = torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3)
_LINE, _LINE_KERNEL = torch.ones(1, 2, 5), torch.ones(2, 2, 3)
_VOLUME, _VOLUME_KERNEL = torch.ones(1, 2, 5, 5, 5), torch.ones(2, 2, 3, 3, 3)
_HEADS, _ROW = torch.ones(1, 2, 4, 8), torch.ones(2, 32)
_PARAMETER = nn.Parameter(torch.ones(2, 2))


class _Sum(nn.Linear):
    """A model that gives its loss."""

    def __init__(self) -> None:
        super().__init__(2, 2)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input).sum()


def _device(a: Any, b: Any) -> Any:
    return matmul(a, b, operand=CBFLOAT16, level=0)


_EXPLAINED = explain([1, 2], [1, 2], operand="cbfloat16")
#: A good argument for a parameter of this name, of the first module that fits.
GOOD: dict[str, dict[str, Any]] = {
    "golden.reference": {
        "a": [0x3E00], "b": [0x3E00], "acc": 0, "codes": [0, 1], "code": 0, "number": 1, "value": reference.NAN,
        "kind": reference.Class.FINITE,
    },
    "golden.reference.multiply_accumulate": {"a": 0, "b": 0},
    "golden.reference.dot": {"operand": CBFLOAT16},
    "golden.reference.matmul": {"a": [[0]], "b": [[0]], "operand": CBFLOAT16},
    "golden.dot": {"operand": CBFLOAT16},
    "golden.matmul": {"operand": CBFLOAT16},
    "golden.loss_scaling": {"init_scale": 1.0, "loss_scale": np.float32(1), "non_clamped_scale": np.float32(1)},
    "golden.matmul_values": {"a": _VALUES, "b": _VALUES, "operand": CBFLOAT16},
    "golden.multiply_accumulate": {"acc": np.uint32(0), "accumulator": "fp32"},
    "golden.FusedSum": {"terms": 5},
    "golden.check": {"results": np.zeros((2, 2), np.uint32), "like": "nvidia_hopper", "operand": CBFLOAT16},
    "golden.testing": {
        "results": matmul(_CODES, _CODES, operand=CBFLOAT16), "a": _CODES, "b": _CODES,
        "like": str(Reduction.for_level(1, CBFLOAT16)),
    },
    "golden.identify": {"function": _device, "verify": 1},
    "golden.identification": {"function": _device, "verify": 1},
    "golden.Explanation.plot": {"file": "sum.svg"},
    "golden.Accumulator": {"operand_bits": 16, "block": 1, "join": FusedSum(2), "provenance": _NOWHERE},
    "golden.mx": {
        "scales": np.zeros((2, 1), np.uint8), "codes": np.zeros((2, 32), np.uint8), "element": "float8_e5m2",
        "values": np.ones((2, 32), np.float32), "a": _BLOCKS, "b": _BLOCKS,
    },
    "golden.torch": {
        "x": _TENSOR, "y": _TENSOR, "query": _TENSOR, "key": _TENSOR, "value": _TENSOR, "weight": _TENSOR,
        "equation": "ij,jk->ik", "mat_a": _TENSOR, "mat_b": _TENSOR, "module": nn.Identity(), "name": "float16",
        "optimizer": optim.SGD([_PARAMETER], 0.1), "model": nn.Linear(2, 2), "tensor": _TENSOR, "other": _TENSOR,
        "shape": (2,), "data": [1.0], "array": np.ones(3), "closure": print, "step_fn": print, "target": lambda: None,
        "state_dict": {"a": _TENSOR}, "ckpt_path": "state.pt", "writer": None, "backend_type": "CPU",
    },
    "golden.torch.advise": {"model": _Sum(), "batches": [_TENSOR]},
    "golden.torch.bmm": {"x": torch.ones(1, 2, 3), "y": torch.ones(1, 3, 2)},
    "golden.torch.conv1d": {"x": _LINE, "weight": _LINE_KERNEL},
    "golden.torch.conv2d": {"x": _IMAGE, "weight": _KERNEL},
    "golden.torch.conv3d": {"x": _VOLUME, "weight": _VOLUME_KERNEL},
    "golden.torch.conv_transpose1d": {"x": _LINE, "weight": _LINE_KERNEL},
    "golden.torch.conv_transpose2d": {"x": _IMAGE, "weight": _KERNEL},
    "golden.torch.conv_transpose3d": {"x": _VOLUME, "weight": _VOLUME_KERNEL},
    "golden.torch.grouped_mm": {"mat_a": torch.ones(1, 2, 3), "mat_b": torch.ones(1, 3, 2)},
    "golden.torch.scaled_dot_product_attention": {"query": _HEADS, "key": _HEADS, "value": _HEADS},
    "golden.torch.summarize_scalar": {"value": 1.0},
    "golden.torch.mx": {
        "x": _ROW, "weight": _ROW, "element": "float8_e4m3fn", "model": nn.Linear(2, 2), "in_features": 2,
        "out_features": 2,
    },
    "golden.torch.backend": {"backend_type": BackendType.CPU},
    "golden.torch.optim": {
        "params": [_PARAMETER], "lr": 0.1, "optimizer_type": "SGD", "kwargs": {}, "learning_rate": 0.1,
    },
    "golden.torch.optim.lr_scheduler": {"learning_rates": [0.1, 0.2], "milestones": [1]},
    "golden.torch.utils": {"input_fn": lambda: [1], "dataloader": [1], "sample_spec": _TENSOR},
    "golden.torch.utils.data": {"dataloader": [1]},
    "golden.torch.metrics": {"num_classes": 3, "k": 2},
    "golden": {
        "a": _CODES, "b": _CODES, "acc": 0, "codes": _CODES, "values": _VALUES, "name": "fp16", "exponent_bits": 5,
        "fraction_bits": 10, "inner": CBFLOAT16, "chunk": 32, "outer": FP32,
    },
    "hdl": {"element": "float8_e4m3fn", "unit": FloatConverter(source=CB16, destination=FP32)},
    "": {
        "fmt": "cbfloat16", "source": "cbfloat16", "destination": "fp32", "operand": "cbfloat16",
        "accumulator": "cbfloat16", "half": "cbfloat16", "path": "numpy", "level": 1,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Surface:
    """One public function or class."""

    module: str
    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]
    required: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def good(self) -> dict[str, Any]:
        """Good arguments for the required parameters, and for others that are known for this function."""
        known: dict[str, Any] = {}
        for prefix in ("", self.module.split(".")[0], self.module, str(self)):
            known |= GOOD.get(prefix, {})
        wanted = {*self.required, *GOOD.get(str(self), {})}
        return {name: good for name, good in known.items() if name in wanted}


def surface(*modules: str) -> Iterator[Surface]:
    """Yield each export of the modules once, except for enumerations and functions without parameters."""
    seen = set()
    for module in modules:
        exports = importlib.import_module(module)
        for name in exports.__all__:
            call = getattr(exports, name)
            if not callable(call) or id(call) in seen or (isinstance(call, type) and issubclass(call, tuple)):
                continue
            seen.add(id(call))
            yield from one_of_surface(module, name, call)


def one_of_surface(module: str, name: str, call: Callable[..., Any]) -> Iterator[Surface]:
    """Yield a function or class with its parameters, or nothing if a caller gives it no named argument."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        return
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    is_helper = any(each.name == "argument" for each in named)  # which names the argument of another function
    if named and not is_helper and not hasattr(call, "__members__") and not inspect.isabstract(call):
        required = tuple(each.name for each in named if each.default is each.empty)
        yield Surface(module, name, call, tuple(each.name for each in named), required)


def methods() -> Iterator[Surface]:
    """Yield the public methods and functions that no list of exports names."""
    yield from one_of_surface("golden", "Reduction.for_level", Reduction.for_level)
    yield from one_of_surface("golden", "Explanation.table", _EXPLAINED.table)
    yield from one_of_surface("golden", "Explanation.plot", _EXPLAINED.plot)
    yield from one_of_surface("hdl", "verilog.to_verilog", to_verilog)


def state_of(value: object) -> object:
    """Return the state of an argument that a function may not write to."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    # PyTorch counts the writes to a tensor.
    return getattr(value, "_version", None) if not isinstance(value, list | dict | set) else repr(value)


def fault_of(
    error: BaseException, names: tuple[str, ...], *, wrong: Iterable[str] = (), of_pytorch: bool = False
) -> str:
    """Return the fault of an error for bad input, or nothing if it is ours and names an argument.

    A message begins with the name of an argument, or holds the name of one of the `wrong` ones.
    """
    *_, last = traceback.extract_tb(error.__traceback__)
    where = f"{Path(last.filename).name}:{last.lineno}"
    if not isinstance(error, ERRORS):
        return f"{type(error).__name__} at {where}: {error}"
    names_its_file = isinstance(error, OSError) and error.filename is not None
    if of_pytorch or names_its_file:
        return ""
    if not Path(last.filename).is_relative_to(ROOT) or ".venv" in last.filename:
        return f"raised by {last.filename}: {error!r}"
    if not linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise "):
        return f"raised by Python at {where}: {error!r}"
    begins = any(re.match(rf"(\w+, )*{re.escape(name)}\b", str(error)) for name in names)
    if not begins and not any(name in str(error) for name in wrong if len(name) > 1):
        return f"no argument is named at {where}: {error}"
    return ""
