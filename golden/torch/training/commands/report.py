"""The command ``report``: one page about what runs observed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction

__all__ = ["add_report", "report"]


def add_report(commands: _SubParsersAction[ArgumentParser]) -> None:
    """Add the command to a parser."""
    command = commands.add_parser(
        "report",
        help="write a page about what low precision did in a run",
        description="Write one HTML page, which needs no network, about what low precision did inside a model: what to "
        "change, the worst layers, a heat map, exponents against the formats' ranges, the timeline. Several runs are "
        "compared on the same page.",
    )
    command.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folder of a run with observations.jsonl, or that file"
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the page; report.html in the folder of the first run unless given",
    )


def report(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the page; return the exit status. The process ends if a run cannot be read or the page not be written."""
    from golden.torch.instruments.report.page import write_report
    from golden.torch.instruments.report.reading import run_file

    try:
        files = [run_file(place) for place in given.runs]
        output = given.output or files[0].parent / "report.html"
        console = Console(stderr=True)
        bar = Progress(
            TextColumn("reading observations"),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        with bar:
            task = bar.add_task("", total=sum(file.stat().st_size for file in files))
            write_report(given.runs, output, lambda size: bar.advance(task, size))
    except (OSError, ValueError) as error:
        parser.error(f"--{error}" if str(error).startswith("output:") else str(error))
    print(output)
    return 0
