"""The picture of an explained reduction."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from golden.exact_rounding import ulp
from golden.exact_steps import Kind, Step
from golden.files import write_whole

__all__ = ["check_picture", "draw"]

_PICTURES = (".svg", ".png", ".pdf")
_LOST, _KEPT, _SUM = "#c0392b", "#2c7fb8", "#333333"


def check_picture(file: str | Path) -> Path:
    """Return the path of a picture that can be drawn, as far as that is known beforehand; as `Explanation.plot`."""
    if not isinstance(file, str | Path):
        raise TypeError(f"file: got {file!r}, must be the path of a picture")
    path = Path(file)
    if path.suffix not in _PICTURES:
        raise ValueError(f"file: got {str(file)!r}, must end in {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("plot needs matplotlib: pip install 'cbfloat[figures]'")
    path.parent.stat()  # that it is there
    return path


def draw(title: str, steps: Sequence[Step], file: Path) -> None:
    """Draw the accumulator, its addends and the error so far into a file; errors as in `Explanation.plot`."""
    import matplotlib
    from matplotlib import pyplot

    products = [step for step in steps if step.kind is Kind.PRODUCT and step.exact is not None]
    if not products:
        raise ValueError("explanation: got no product with a finite sum, there is nothing to draw")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": file.stem, "font.size": 10}):
        figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 5.5), sharex=True, height_ratios=(3, 2))
        _draw_sizes(above, products)
        _draw_error(below, steps, products)
        above.set_title(title, fontsize=10, loc="left")
        figure.tight_layout()
        picture = io.BytesIO()
        figure.savefig(picture, format=file.suffix[1:], metadata={"Date": None} if file.suffix == ".svg" else None)
        pyplot.close(figure)
    write_whole(file, picture.getvalue())


def _draw_sizes(axes: Any, products: list[Step]) -> None:
    """Draw addends against half an ulp of the accumulator: an addend below that line is lost."""
    places = [step.index for step in products]
    # An accumulator of 0 loses nothing, and its ulp is so small that the axis would hide all others.
    befores = [(step.value_before, step.accumulator) for step in products]
    halves = [float(ulp(before, fmt) / 2) if before else float("nan") for before, fmt in befores]
    sums = [abs(float(step.value_after or 0)) for step in products]
    lost = [step for step in products if step.is_swamped]
    kept = [step for step in products if step.addend and not step.is_swamped]
    axes.plot(places, sums, color=_SUM, drawstyle="steps-post", label="accumulator")
    axes.plot(places, halves, color=_SUM, drawstyle="steps-mid", linestyle=":", label="half an ulp of it")
    for steps, colour, label in ((kept, _KEPT, "product"), (lost, _LOST, f"product, swamped ({len(lost)})")):
        sizes = [abs(float(step.addend or 0)) for step in steps]
        axes.plot([step.index for step in steps], sizes, ".", color=colour, label=label)
    axes.set_yscale("log", base=2)
    axes.set_ylabel("magnitude")
    axes.legend(loc="lower center", ncols=4, frameon=False, bbox_to_anchor=(0.5, -0.2), fontsize=9)
    axes.grid(visible=True, alpha=0.3)


def _draw_error(axes: Any, steps: Sequence[Step], products: list[Step]) -> None:
    """Draw the sum of all rounding errors so far, promotions included."""
    places: list[int] = []
    errors: list[float] = []
    so_far, product = Fraction(0), 0
    for step in steps:
        so_far -= step.lost or 0
        product = step.index if step.kind is Kind.PRODUCT else product
        places.append(product)
        errors.append(float(so_far))
    axes.plot(places, errors, color=_LOST, drawstyle="steps-post")
    axes.axhline(0, color=_SUM, linewidth=0.8)
    axes.set_ylabel("error so far")
    axes.set_xlabel(f"product, 0 to {products[-1].index}")
    axes.grid(visible=True, alpha=0.3)
