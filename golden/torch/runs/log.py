"""The log of a training run: a CSV file with one row for each logged step."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from golden.torch.runs.folders import make_folder

__all__ = ["RunLog"]


class RunLog:
    """Rows appended to a CSV file, each on disk before the next step begins.

    Parameters
    ----------
    path : Path
        The file; its folder is made.
    columns : sequence of str
        Names of the columns, ``step`` first.
    step : int
        Steps trained already. Rows of the file up to this step stay; those after it, which the run repeats, go.
    """

    def __init__(self, path: Path, columns: Sequence[str], step: int = 0) -> None:
        make_folder(path.parent, "model_dir")
        kept: list[dict[str, str]] = []
        if step and path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                kept = [row for row in csv.DictReader(file) if int(row["step"]) <= step]
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, columns, restval="", extrasaction="ignore")
        self._writer.writeheader()
        self._writer.writerows(kept)
        self._file.flush()

    def write(self, **values: Any) -> None:
        """Write a row; a column without a value stays empty, a value without a column is left out."""
        self._writer.writerow(values)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
