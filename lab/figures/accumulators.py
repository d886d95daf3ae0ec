"""One matrix product and one small training run under Cerebras' levels and other machines' accumulators."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.datasets import load_digits

import golden
from golden import BF16, FLOAT8_E4M3FN, Accumulator, FloatFormat, Reduction
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import ROOT, folder_to_write
from tools.results import Table, measured
from tools.style import picture

__all__ = ["Row", "draw", "main", "measure", "table"]

_TOOL, _PICTURE = "accumulators", "accumulators.svg"
_LENGTH, _ROWS = 4096, 32
_STEPS, _BATCH, _HIDDEN, _RATE, _LOSS_SCALE = 400, 64, 64, 0.2, 256.0

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Row:
    """One way to accumulate.

    Parameters
    ----------
    error : float
        Root mean square error of a product relative to the exact product; the operands count as exact.
    loss, accuracy : float
        The trained network's cross-entropy on the training set, and its share of right answers on the test set.
    """

    name: str
    operand: FloatFormat
    error: float
    loss: float
    accuracy: float


def rules() -> dict[str, tuple[FloatFormat, Reduction | Accumulator]]:
    """Return the compared rules with their operand formats, by name."""
    found: dict[str, tuple[FloatFormat, Reduction | Accumulator]] = {}
    for fmt in (BF16, FLOAT8_E4M3FN):
        for level in golden.LEVELS:
            found[f"level {level}, {fmt}"] = fmt, Reduction.for_level(level, fmt)
    for name, rule in golden.accumulators.items():
        found[name] = (BF16 if rule.operand_bits == 16 else FLOAT8_E4M3FN), rule
    return found


def measure(name: str) -> Row:
    """Measure one of `rules`."""
    fmt, rule = rules()[name]
    return Row(name, fmt, _error(fmt, rule), *_train(fmt, rule))


def _multiply(a: Values, b: Values, fmt: FloatFormat, rule: Reduction | Accumulator) -> Values:
    return golden.matmul_values(a.astype(np.float32), b.astype(np.float32), operand=fmt, reduction=rule)


def _error(fmt: FloatFormat, rule: Reduction | Accumulator) -> float:
    rng = np.random.default_rng(0)
    a, b = (golden.quantize(rng.standard_normal(shape), fmt) for shape in ((_ROWS, _LENGTH), (_LENGTH, _ROWS)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.sqrt(np.mean((_multiply(a, b, fmt, rule) - exact) ** 2) / np.mean(exact**2)))


def _train(fmt: FloatFormat, rule: Reduction | Accumulator) -> tuple[float, float]:
    """Train two layers on scikit-learn's digits; every product, forward and backward, is accumulated by the rule."""
    digits = load_digits()
    inputs, labels = (digits.data / 16).astype(np.float32), digits.target
    train, test = slice(0, 1400), slice(1400, None)
    rng = np.random.default_rng(1)
    first = rng.normal(0, 0.15, (64, _HIDDEN)).astype(np.float32)
    second = rng.normal(0, 0.15, (_HIDDEN, 10)).astype(np.float32)

    def forward(x: Values) -> tuple[Values, NDArray[np.float64]]:
        hidden = np.maximum(_multiply(x, first, fmt, rule), 0)
        logits = _multiply(hidden, second, fmt, rule).astype(np.float64)
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return hidden, shifted / shifted.sum(axis=1, keepdims=True)

    for _ in range(_STEPS):
        chosen = rng.integers(0, 1400, _BATCH)
        x, wanted = inputs[chosen], np.eye(10)[labels[chosen]]
        hidden, likely = forward(x)
        back = ((likely - wanted) / _BATCH * _LOSS_SCALE).astype(np.float32)
        to_hidden = _multiply(back, second.T, fmt, rule) * (hidden > 0)
        second -= _RATE / _LOSS_SCALE * _multiply(hidden.T, back, fmt, rule)
        first -= _RATE / _LOSS_SCALE * _multiply(x.T, to_hidden, fmt, rule)
    _, likely = forward(inputs[train])
    loss = -np.mean(np.log(likely[np.arange(1400), labels[train]]))
    _, likely = forward(inputs[test])
    return float(loss), float(np.mean(likely.argmax(axis=1) == labels[test]))


def table(rows: Sequence[Row]) -> Table:
    """Return the table of the page."""
    cells = [
        (f"`{row.name}`", str(row.operand), f"{row.error:.2e}", f"{row.loss:.4f}", f"{100 * row.accuracy:.1f} %")
        for row in rows
    ]
    return Table(("accumulation", "operands", "relative error", "training loss", "test accuracy"), cells, left=2)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a dot for every row: the error of the product, and the loss of the run."""
    with picture(path, 2, figsize=(10, 0.23 * len(rows)), sharey=True) as (_, panels):
        places = np.arange(len(rows))[::-1]
        colours = ["#1b6ca8" if row.operand == BF16 else "#c2571a" for row in rows]
        for axes, values, label in (
            (panels[0], [row.error for row in rows], f"relative error of a product, {_LENGTH} terms"),
            (panels[1], [row.loss for row in rows], f"training loss after {_STEPS} steps"),
        ):
            axes.scatter(values, places, c=colours, s=22, zorder=3)
            axes.grid(axis="y", color="#ddd", lw=0.6)
            axes.set_xlabel(label)
        panels[0].set_xscale("log")
        panels[0].set_yticks(places, [row.name for row in rows], fontsize=7.5)
        panels[1].set_xlim(0, 0.12)  # from 0: the runs hardly differ
        panels[1].set_title("blue: bfloat16 operands; orange: float8_e4m3fn", fontsize=9)


@ending_on_interrupt("lab.figures.accumulators", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.figures.accumulators", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=folder_to_write, default=Path("build/figures"), help="folder (default %(default)s)"
    )
    add_update_docs(parser, _TOOL, "put table and picture into docs/accumulators.md")
    given = parser.parse_args(arguments)
    console, rows = Console(stderr=True), []
    for name in rules():
        rows.append(measure(name))
        console.print(f"{name}: error {rows[-1].error:.2e}, loss {rows[-1].loss:.4f}", highlight=False)
    given.output.mkdir(parents=True, exist_ok=True)
    draw(rows, given.output / _PICTURE)
    print(table(rows).markdown(), end="")
    if given.update_docs:
        draw(rows, ROOT / "docs" / "figures" / _PICTURE)
        publish(measured(_TOOL, ["lab.figures.accumulators"], tables=[table(rows)], pictures=(_PICTURE,)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
