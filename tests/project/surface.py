"""The public surface, found by introspection: what can be called, with which parameters, and one good call of it."""

from __future__ import annotations

import importlib
import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from golden import CBFLOAT16, FP32, FusedSum, Provenance, reference
from golden.torch import optim
from golden.torch.backend import BackendType

ROOT = Path(__file__).resolve().parents[2]
#: What may come of bad input; RuntimeError and NotImplementedError where a docstring has them.
ERRORS = (TypeError, ValueError, OSError, RuntimeError, NotImplementedError, ImportError)

_CODES = np.full((2, 2), 0x3E00, np.uint16)
_VALUES = np.ones((2, 2), np.float32)
_BLOCKS = np.zeros((2, 1), np.uint8), np.zeros((2, 32), np.uint8)
_NOWHERE = Provenance("none", "none", (), "this test", "nothing", "nothing", "nothing")
_TENSOR = torch.ones(2, 2)
_PARAMETER = nn.Parameter(torch.ones(2, 2))
#: A good argument for a parameter of this name, of the first module that fits.
GOOD: dict[str, dict[str, Any]] = {
    "golden.reference": {
        "a": [0x3E00], "b": [0x3E00], "acc": 0, "codes": [0, 1], "code": 0, "number": 1, "value": reference.NAN,
        "kind": reference.Class.FINITE,
    },
    "golden.reference.multiply_accumulate": {"a": 0, "b": 0},
    "golden.reference.matmul": {"a": [[0]], "b": [[0]]},
    "golden.loss_scaling": {"init_scale": 1.0, "loss_scale": np.float32(1), "non_clamped_scale": np.float32(1)},
    "golden.matmul_values": {"a": _VALUES, "b": _VALUES},
    "golden.multiply_accumulate": {"acc": np.uint32(0), "accumulator": "fp32"},
    "golden.Accumulator": {"operand_bits": 16, "block": 1, "join": FusedSum(2), "provenance": _NOWHERE},
    "golden.mx": {
        "scales": np.zeros((2, 1), np.uint8), "codes": np.zeros((2, 32), np.uint8), "element": "float8_e5m2",
        "values": np.ones((2, 32), np.float32), "a": _BLOCKS, "b": _BLOCKS,
    },
    "golden.torch": {
        "x": _TENSOR, "y": _TENSOR, "query": _TENSOR, "key": _TENSOR, "value": _TENSOR, "weight": _TENSOR,
        "equation": "ij,jk->ik", "mat_a": _TENSOR, "mat_b": _TENSOR, "module": nn.Identity(), "name": "float16",
        "optimizer": optim.SGD([_PARAMETER], 0.1),
    },
    "golden.torch.observe": {"model": nn.Identity()},
    "golden.torch.mx": {"x": _TENSOR, "weight": _TENSOR, "element": "float8_e5m2"},
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
        """Good arguments for the required parameters, as far as they are known."""
        known: dict[str, Any] = {}
        for prefix in ("", self.module.split(".")[0], self.module, str(self)):
            known |= GOOD.get(prefix, {})
        return {name: known[name] for name in self.required if name in known}


def surface(*modules: str) -> Iterator[Surface]:
    """Give what the modules export, each once, except for enumerations and what takes nothing."""
    seen = set()
    for module in modules:
        exports = importlib.import_module(module)
        for name in exports.__all__:
            call = getattr(exports, name)
            if not callable(call) or id(call) in seen or (isinstance(call, type) and issubclass(call, tuple)):
                continue
            if inspect.isabstract(call):
                continue
            seen.add(id(call))
            try:
                parameters = inspect.signature(call).parameters.values()
            except ValueError:
                continue
            named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
            is_helper = any(each.name == "argument" for each in named)  # which names the argument of another function
            if named and not is_helper and not hasattr(call, "__members__"):
                required = tuple(each.name for each in named if each.default is each.empty)
                yield Surface(module, name, call, tuple(each.name for each in named), required)


def fault_of(error: BaseException, names: tuple[str, ...], *, of_pytorch: bool = False) -> str:
    """Tell what is wrong with an error, as one for bad input: nothing if it is ours and names an argument."""
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
    if not any(name in str(error) for name in names):
        return f"no argument is named at {where}: {error}"
    return ""
