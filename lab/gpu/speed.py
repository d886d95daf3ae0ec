"""Speed on a card, beside cuBLAS in fp32 with TF32 off, in one process: python -m lab.gpu.speed.

Medians of products, of rounding against the bandwidth of a copy, and of a training step of GPT-2's shape. Where there
is no card, one line says so.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table

import golden.torch as cstorch
from golden.torch.examples.python_gpt import PythonGpt, Sizes
from lab.gpu.card import keep, skipped

__all__ = ["median_of", "products", "rounding", "training"]

CHAINS = {
    "fp32, level 0 of cbfloat16": ("cbfloat16", 0),
    "cbfloat16, level 1": ("cbfloat16", 1),
    "cbfloat16, level 2": ("cbfloat16", 2),
    "bfloat16, level 1": ("bfloat16", 1),
    "float16, level 1": ("float16", 1),
}
_LETTERS = 50304  # GPT-2's 50257, in whole multiples of 64


def median_of(run: Callable[[], object], repeats: int) -> float:
    """Return the median of the seconds that a function takes on the card, after a run that warms it up."""
    run()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def products(size: int, repeats: int) -> dict[str, float]:
    """Return the seconds of square products: cuBLAS in fp32, then each kind of chain."""
    x, y = (torch.randn(size, size, device="cuda") for _ in range(2))
    found = {"cuBLAS, fp32": median_of(lambda: torch.mm(x, y), repeats)}
    for name, (half, level) in CHAINS.items():
        with cstorch.precision(half, level), torch.no_grad():
            found[name] = median_of(lambda: torch.mm(x, y), repeats)
    return found


def rounding(count: int, repeats: int) -> dict[str, float]:
    """Return the seconds of a copy of float32 values and of rounding as many to cbfloat16."""
    x = torch.randn(count, device="cuda")
    into = torch.empty_like(x)
    given = "cbfloat16", torch.float32
    return {
        "copy": median_of(lambda: into.copy_(x), repeats),
        "rounding": median_of(lambda: torch.ops.cbfloat.rounded(x, *given), repeats),
    }


def training(sizes: Sizes, letters: int, repeats: int) -> dict[str, float]:
    """Return the seconds of a step of GPT-2's shape: plain fp32, and cbfloat16 at level 1."""
    found = {}
    codes = torch.randint(letters, (sizes.batch, sizes.context + 1), device="cuda")
    for name, enabled in (("fp32", False), ("cbfloat16, level 1", True)):
        torch.manual_seed(0)
        model = PythonGpt(sizes, letters).to("cuda")
        optimizer, scaler = torch.optim.AdamW(model.parameters(), 1e-4), cstorch.amp.GradScaler("dynamic")

        def step() -> None:
            optimizer.zero_grad()  # noqa: B023 - it runs within this turn of the loop
            with cstorch.precision("cbfloat16", 1, enabled=enabled):  # noqa: B023
                logits = model(codes[:, :-1])  # noqa: B023
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), codes[:, 1:].flatten())
            scaler.scale(loss).backward()  # noqa: B023
            scaler.step(optimizer)  # noqa: B023
            scaler.update()  # noqa: B023

        found[name] = median_of(step, repeats)
    return found


def _row(table: Table, name: str, seconds: float, ratio: float) -> None:
    table.add_row(name, f"{seconds * 1e3:.3f}", f"{ratio:.3f}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.speed", description=__doc__)
    parser.add_argument("--size", type=int, default=8192, help="of the square matrices (8192)")
    parser.add_argument("--repeats", type=int, default=11, help="runs of which the median is taken (11)")
    given = parser.parse_args(arguments)
    if skipped("bench-gpu"):
        return 0
    torch.backends.cuda.matmul.allow_tf32 = False
    console = Console()
    found = {
        "products": products(given.size, given.repeats),
        "rounding": rounding(1 << 28, given.repeats),
        "training": training(Sizes(), _LETTERS, max(3, given.repeats // 3)),
    }
    for title, seconds in found.items():
        table = Table("", "ms", "speed relative to the first", title=title)
        first = next(iter(seconds.values()))
        for name, each in seconds.items():
            _row(table, name, each, first / each)
        console.print(table)
    keep("gpu-speed.json", {"size": given.size, "repeats": given.repeats, **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
