"""What is timed on a card beside what: products, rounding, MPTorch, training steps; each with its goals.

In a contest the contestants take turns, so that a card that slows down slows all of them. The first is the measure.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from rich.progress import track

import golden.torch as cstorch
from golden.torch.examples.python_gpt import PythonGpt, Sizes

__all__ = ["CONTESTS", "Entry", "mptorch", "products", "raced", "rounding", "strictly_fp32", "training"]

#: Half type and level of the chains that are timed, by name.
CHAINS = {
    "level 0, cbfloat16 in fp32": ("cbfloat16", 0),
    "float16, level 1": ("float16", 1),
    "bfloat16, level 1": ("bfloat16", 1),
    "cbfloat16, level 1": ("cbfloat16", 1),
    "cbfloat16, level 2": ("cbfloat16", 2),
}
#: GPT-2's 50,257 letters, in whole multiples of 64.
LETTERS = 50304
_PRODUCT_GOALS = {
    "level 0, cbfloat16 in fp32": 0.85,
    "float16, level 1": 1.3,
    "bfloat16, level 1": 1.3,
    "cbfloat16, level 1": 0.11,
}
_ROUNDED = ("cbfloat16", "bfloat16", "float16")
_WARM_UP = 2

Run = Callable[[], object]


@dataclass
class Entry:
    """A contestant: the seconds of each run, or why it has none; the least speed relative to the first that is wanted.

    Parameters
    ----------
    name : str
    seconds : list of float
        Of every repetition, in order.
    goal : float, optional
    error : str
        Empty if it ran.
    """

    name: str
    seconds: list[float] = field(default_factory=list)
    goal: float | None = None
    error: str = ""

    @property
    def median(self) -> float:
        """The median of its seconds."""
        return statistics.median(self.seconds)

    def speed(self, first: Entry) -> float | None:
        """Return its speed relative to the first; None where one of them has not run."""
        return first.median / self.median if self.seconds and first.seconds else None

    def is_met(self, first: Entry) -> bool | None:
        """Tell whether it is as fast as wanted; None if nothing is wanted, or nothing known."""
        speed = self.speed(first)
        return None if speed is None or self.goal is None else speed >= self.goal


def strictly_fp32() -> None:
    """Keep PyTorch's products in fp32 from TF32."""
    backends: Any = torch.backends  # of which PyTorch's types know a part
    backends.cuda.matmul.fp32_precision = backends.cudnn.conv.fp32_precision = "ieee"


def raced(runs: Mapping[str, Run], repeats: int, goals: Mapping[str, float] | None = None) -> list[Entry]:
    """Time contestants in turns, after runs that warm them up; one that fails is out, and says why."""
    entries = [Entry(name, goal=(goals or {}).get(name)) for name in runs]
    for turn in track(range(_WARM_UP + repeats), "timing", disable=not sys.stderr.isatty()):
        for entry in entries:
            if entry.error:
                continue
            try:
                torch.cuda.synchronize()
                begun = time.perf_counter()
                runs[entry.name]()
                torch.cuda.synchronize()
            except Exception as error:  # such as no memory: the others may fit
                entry.error, entry.seconds = f"{type(error).__name__}: {error}".splitlines()[0], []
                torch.cuda.empty_cache()
            else:
                entry.seconds += [time.perf_counter() - begun] if turn >= _WARM_UP else []
    return entries


def _exact(half: str, level: int, x: torch.Tensor, y: torch.Tensor) -> Run:
    def run() -> object:
        with cstorch.precision(half, level), torch.no_grad():
            return torch.mm(x, y)

    return run


def _matrices(size: int) -> list[torch.Tensor]:
    return [torch.randn(size, size, device="cuda") for _ in range(2)]


def products(size: int, repeats: int) -> list[Entry]:
    """Time square products: those of cuBLAS in fp32, then each kind of chain."""
    x, y = _matrices(size)
    runs = {"cuBLAS, fp32": lambda: torch.mm(x, y), **{name: _exact(*CHAINS[name], x, y) for name in CHAINS}}
    return raced(runs, repeats, _PRODUCT_GOALS)


def rounding(count: int, repeats: int) -> list[Entry]:
    """Time a copy of float32 values, and rounding as many."""
    x = torch.randn(count, device="cuda")
    into = torch.empty_like(x)
    rounded = torch.ops.cbfloat.rounded
    runs: dict[str, Run] = {"copy": lambda: into.copy_(x)}
    own = {f"rounding to {half}": partial(rounded, x, half, torch.float32) for half in _ROUNDED}
    return raced(runs | own, repeats, dict.fromkeys(own, 0.8))


def mptorch(size: int, repeats: int) -> list[Entry]:
    """Time square products of MPTorch in a format as wide as cbfloat16, and ours; nothing where it is not installed."""
    try:
        library, quant = importlib.import_module("mptorch"), importlib.import_module("mptorch.quant")
        fmt = library.BinaryK(16, 10)  # a sign, 6 bits of exponent and 9 of fraction
        twice, once = quant.SplitMac(fmt, fmt), quant.FusedMac(fmt)
        multiply: Callable[..., object] = quant.qmatmul
    except Exception as error:  # it compiles itself when it is imported, and has had other names
        print(f"MPTorch is left out: {type(error).__name__}: {error}".splitlines()[0])
        return []
    x, y = _matrices(size)
    own = "cbfloat16, level 1"
    runs: dict[str, Run] = {
        "MPTorch": lambda: multiply(x, y, twice),
        "MPTorch, fused": lambda: multiply(x, y, once),
        own: _exact(*CHAINS[own], x, y),
    }
    return raced(runs, repeats, {own: 30.0})


def training(sizes: Sizes, letters: int, repeats: int) -> list[Entry]:
    """Time steps of GPT-2's shape: in plain fp32, and on the chains of each half type at level 1."""
    names = ["cbfloat16, level 1", "bfloat16, level 1", "float16, level 1"]
    runs = {"fp32": _step(sizes, letters, None)}
    runs |= {name: _step(sizes, letters, CHAINS[name]) for name in names}
    return raced(runs, repeats, dict.fromkeys(names, 0.25))


def _step(sizes: Sizes, letters: int, chain: tuple[str, int] | None) -> Run:
    """Return a training step; its model is made by its first run."""
    made: list[Any] = []

    def run() -> None:
        if not made:
            torch.manual_seed(0)
            model = PythonGpt(sizes, letters).to("cuda")
            optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
            codes = torch.randint(letters, (sizes.batch, sizes.context + 1), device="cuda")
            made.extend((model, optimizer, cstorch.amp.GradScaler("dynamic"), codes))
        model, optimizer, scaler, codes = made
        optimizer.zero_grad()
        with cstorch.precision(*(chain or ("cbfloat16", 1)), enabled=chain is not None):
            loss = torch.nn.functional.cross_entropy(model(codes[:, :-1]).flatten(0, 1), codes[:, 1:].flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return run


#: The contests, by their titles; of a size each, and a number of repetitions.
CONTESTS: dict[str, Callable[[Any, int], list[Entry]]] = {
    "products": products,
    "rounding": rounding,
    "MPTorch": mptorch,
    "training": lambda sizes, repeats: training(sizes, LETTERS, repeats),
}
