"""The bundled run on digits in blocks of narrow numbers, by formats and recipes of scales."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence

from rich.console import Console

from golden.torch.training.commands.line import main as golden_torch
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import Table, measured

__all__ = ["CASES", "accuracy", "main"]

_TOOL, _SEEDS, _STEPS = "blocks", (1, 2, 3), 300


def _blocks(element: str, **others: str) -> dict[str, str]:
    """Return settings of the run: operands and gradients of all linear layers in such blocks."""
    given = {"element": element, "gradient_element": element, **others}
    return {f"model.blocks.{key}": value for key, value in given.items()}


#: The compared runs: their settings in ``trainer.init``.
CASES: dict[str, dict[str, str]] = {
    "fp32 of PyTorch": {"precision.enabled": "false"},
    "`cbfloat16`": {},
    "`float8_e4m3fn`, `ocp_floor`": _blocks("float8_e4m3fn"),
    "`float8_e4m3fn`, `round_up`": _blocks("float8_e4m3fn", scale="round_up", gradient_scale="round_up"),
    "`float4_e2m1fn`, `ocp_floor`": _blocks("float4_e2m1fn"),
    "`nvfp4`, `nvidia_nvfp4`": _blocks("nvfp4"),
    "`nvfp4`, `nvidia_nvfp4`, gradients stochastic": _blocks("nvfp4", gradient_rounding="stochastic"),
}


def accuracy(name: str, seed: int, steps: int) -> float:
    """Return the share of right answers on the validation images after a run."""
    settings = {**CASES[name], "seed": str(seed)}
    if "model.blocks.gradient_rounding" in settings:
        settings["model.blocks.seed"] = str(seed)
    words = [word for key, value in settings.items() for word in ("--set", f"trainer.init.{key}={value}")]
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        golden_torch(["fit", "digits_mlp", "--model-dir", folder, "--no-progress", "--steps", str(steps), *words])
    found = re.search(r"accuracy on the validation data: ([\d.]+)", said.getvalue())
    if found is None:
        raise RuntimeError(f"fit: the run {name!r} tells no accuracy:\n{said.getvalue()}")
    return float(found[1])


@ending_on_interrupt("lab.figures.blocks", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.figures.blocks", description=__doc__)
    parser.add_argument("--steps", type=at_least_one, default=_STEPS, help="steps of a run (default %(default)s)")
    add_update_docs(parser, _TOOL, "put the table into docs/training.md")
    given = parser.parse_args(arguments)
    if given.update_docs and given.steps != _STEPS:
        parser.error(f"--update-docs: must be given without --steps: the table is of {_STEPS} steps")
    console, rows = Console(stderr=True), []
    for name in CASES:
        found = [accuracy(name, seed, given.steps) for seed in _SEEDS]
        rows.append((name, f"{statistics.mean(found):.1%}", f"{min(found):.1%} to {max(found):.1%}"))
        console.print(": ".join(rows[-1][:2]), rows[-1][2], highlight=False)
    table = Table(("operands and gradients of all layers", "accuracy, mean", "least and largest"), rows)
    print(table.markdown(), end="")
    if given.update_docs:
        note = f"`digits_mlp` after {_STEPS} steps, seeds {', '.join(map(str, _SEEDS))}; sums in cbfloat16 at level 1."
        seconds = round(time.process_time())  # other work of the machine does not lengthen it
        publish(measured(_TOOL, ["lab.figures.blocks"], note=note, tables=[table], seconds=seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
