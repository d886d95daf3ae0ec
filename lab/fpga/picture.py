"""The picture of frequency and area against pipeline stages, for units that differ in nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from golden.formats import BF16, CBFLOAT16, FP16, FloatFormat
from lab.fpga.result import Report, Result

__all__ = ["PICTURE", "draw", "drawn", "has_picture"]

#: File of docs/figures.
PICTURE = "frequency_by_stages.svg"
_MAC = re.compile(r"mac_cbfloat16_stages_(\d+)")
_CONVERTERS = {fmt: re.compile(rf"float32_to_{fmt}_stages_(\d+)") for fmt in (CBFLOAT16, FP16, BF16)}


def _by_stages(report: Report, name: re.Pattern[str]) -> dict[int, Result]:
    found = ((name.fullmatch(result.name), result) for result in report.results)
    return dict(sorted((int(match[1]), result) for match, result in found if match))


def has_picture(report: Report) -> bool:
    """Return whether every line of the picture has two points or more."""
    return all(len(_by_stages(report, name)) > 1 for name in (_MAC, *_CONVERTERS.values()))


def drawn(report: Report) -> set[str]:
    """Return the names of the multiply-accumulate units in the picture, which need no row of a table."""
    return {result.name for result in _by_stages(report, _MAC).values()} if has_picture(report) else set()


def draw(report: Report, path: Path) -> None:
    """Draw frequency and area of the multiply-accumulate unit, and the converters' frequency, against the stages."""
    from tools.style import COLOURS, picture, plain

    with picture(path, 3, figsize=(11.5, 3.6)) as (figure, (frequency, area, converters)):
        figure.get_layout_engine().set(wspace=0.06)
        mac = _by_stages(report, _MAC)
        _frequencies(frequency, mac, CBFLOAT16)
        frequency.set_title("multiply-accumulate unit, cbfloat16", fontsize=10)
        for kind, name, line in (("COMB", "LUTs", "-"), ("FF", "flip-flops", "--")):
            numbers = [result.area.get(kind, 0) for result in mac.values()]
            area.plot(list(mac), numbers, line, color=COLOURS[CBFLOAT16], label=name)
        area.legend(loc="lower right", frameon=False)
        area.set_title("its area", fontsize=10)
        area.set_ylabel("cells")
        for number, (fmt, pattern) in enumerate(_CONVERTERS.items()):
            _frequencies(converters, _by_stages(report, pattern), fmt)
            converters.text(
                0.97, 0.05 + 0.08 * number, f"to {fmt}", color=COLOURS[fmt], transform=converters.transAxes, ha="right"
            )
        converters.set_title("converters from float32", fontsize=10)
        for axes in (frequency, area, converters):
            axes.set_xlabel("pipeline stages")
            axes.set_ylim(bottom=0)
            plain(axes)
        frequency.set_xticks(range(1, max(mac) + 1, 2))
        area.set_xticks(range(1, max(mac) + 1, 2))
        converters.set_xticks(sorted({stages for name in _CONVERTERS.values() for stages in _by_stages(report, name)}))


def _frequencies(axes: Any, results: dict[int, Result], fmt: FloatFormat) -> None:
    from tools.style import median_and_range

    median_and_range(axes, list(results), [result.frequencies for result in results.values()], fmt, marker="o", ms=3)
    axes.set_ylabel("MHz, median and range of the seeds")
