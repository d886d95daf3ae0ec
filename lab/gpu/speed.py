"""Speed on a card, beside cuBLAS in fp32 with TF32 off, in one process: python -m lab.gpu.speed.

Square products of each kind of chain; rounding beside a copy; MPTorch, if it is installed; training steps of GPT-2's
shape. In a contest the contestants take turns, so that a card that slows down slows all of them; speeds are relative to
the first contestant. Every row has its goal, and whether it is met. All repetitions are kept after every contest, by
default in docs/results/gpu-speed.json. Without a card, it prints one line that says so.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track

import golden.torch as cstorch
from golden.torch.examples.python_gpt import PythonGpt, Sizes
from lab.gpu import card
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["CONTESTS", "Entry", "main", "mptorch", "products", "raced", "rounding", "rows_of", "table", "training"]

TOOL = "gpu-speed"
#: Half type and level of the timed chains, by name.
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
    """A contestant: the seconds of each run, or the reason for having none, and its goal.

    Parameters
    ----------
    name : str
    seconds : list of float
        Of every repetition, in order.
    goal : float, optional
        The wanted speed relative to the first contestant.
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
        """Return its speed relative to the first; None unless both have run."""
        return first.median / self.median if self.seconds and first.seconds else None

    def is_met(self, first: Entry) -> bool | None:
        """Return whether it is as fast as wanted; None without a goal or a speed."""
        speed = self.speed(first)
        return None if speed is None or self.goal is None else speed >= self.goal


def _strictly_fp32() -> None:
    """Forbid PyTorch to compute fp32 products in TF32."""
    backends: Any = torch.backends  # PyTorch's types know a part of them
    backends.cuda.matmul.fp32_precision = backends.cudnn.conv.fp32_precision = "ieee"


def raced(runs: Mapping[str, Run], repeats: int, goals: Mapping[str, float] | None = None) -> list[Entry]:
    """Time contestants in turns, after warm-up runs; a contestant that fails drops out, with the reason."""
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
            except Exception as error:  # such as a lack of memory: the others may fit
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
    """Time square products by cuBLAS in fp32, then by each kind of chain."""
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
    """Time square products of MPTorch in a format as wide as cbfloat16, and ours; no entries if it is not installed."""
    try:
        library, quant = importlib.import_module("mptorch"), importlib.import_module("mptorch.quant")
        fmt = library.BinaryK(16, 10)  # a sign, 6 bits of exponent and 9 of fraction
        twice, once = quant.SplitMac(fmt, fmt), quant.FusedMac(fmt)
        multiply: Callable[..., object] = quant.qmatmul
    except Exception as error:  # its import compiles it, and its names have changed
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
    """Return a training step; its first run makes the model."""
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


#: The contests, by their titles; each takes a size and a number of repetitions.
CONTESTS: dict[str, Callable[[Any, int], list[Entry]]] = {
    "products": products,
    "rounding": rounding,
    "MPTorch": mptorch,
    "training": lambda sizes, repeats: training(sizes, LETTERS, repeats),
}


def rows_of(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return the rows of a contest for its file."""
    return [
        {
            "name": entry.name,
            "seconds": entry.seconds,
            "median": entry.median if entry.seconds else None,
            "than": entries[0].name,
            "speed": entry.speed(entries[0]),
            "goal": entry.goal,
            "met": entry.is_met(entries[0]),
            "error": entry.error,
        }
        for entry in entries
    ]


def table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Return the table of a contest."""
    shown = []
    for row in rows:
        goal = "" if row["goal"] is None else f"{row['goal']:g}"
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        time = row["error"] or f"{row['median'] * 1e3:.3f}"
        speed = "" if row["speed"] is None else f"{row['speed']:.3f}"
        shown.append((row["name"], time, speed, goal, met))
    than = rows[0]["name"] if rows else ""
    return Table(("", "ms", f"speed, relative to {than}", "goal", "met"), shown, title=title)


@ending_on_interrupt("lab.gpu.speed", "the contests that have ended are kept")
def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 if a contestant failed; missed goals do not count."""
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.speed", description=__doc__)
    parser.add_argument("--contests", nargs="+", choices=CONTESTS, default=list(CONTESTS), help="which to run (all)")
    parser.add_argument("--size", type=int, default=8192, help="of the square matrices (%(default)s)")
    parser.add_argument("--small", type=int, default=2048, help="of those beside MPTorch (%(default)s)")
    parser.add_argument("--values", type=int, default=1 << 28, help="that are rounded (2^28)")
    parser.add_argument("--batch", type=int, default=Sizes.batch, help="sequences of a training step (%(default)s)")
    parser.add_argument("--repeats", type=int, default=11, help="runs of which the median is taken (%(default)s)")
    parser.add_argument("--into", type=Path, help="folder of the result (docs/results)")
    given = parser.parse_args(arguments)
    if card.skipped("bench-gpu"):
        return 0
    _strictly_fp32()
    sizes = {"products": given.size, "rounding": given.values, "MPTorch": given.small,
             "training": replace(Sizes(), batch=given.batch)}  # fmt: skip
    found = card.earlier(TOOL, given.into).get("contests", {})
    for name in given.contests:
        print(f"==> {name}", flush=True)
        rows = rows_of(CONTESTS[name](sizes[name], given.repeats))
        if not rows:
            continue
        found = {**found, name: {"size": str(sizes[name]), "rows": rows}}
        tables = [table(title, each["rows"]) for title, each in found.items()]
        Console().print(table(name, rows).markdown())
        card.keep(TOOL, "lab.gpu.speed", {"contests": found}, tables, given.into)
    failed = [row for name in given.contests for row in found.get(name, {"rows": ()})["rows"] if row["error"]]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
