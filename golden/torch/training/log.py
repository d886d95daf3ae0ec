"""The log of a training run: a CSV file with one row for each logged step."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from golden.torch.common.folders import make_folder

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

    Raises
    ------
    ValueError
        If the file is no log.
    """

    def __init__(self, path: Path, columns: Sequence[str], step: int = 0) -> None:
        make_folder(path.parent, "model_dir")
        kept = _rows(path, step) if step and path.is_file() else []
        partial = path.with_name(f"{path.name}.partial")  # the rows are on disk in one file or the other all the time
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(kept)
        os.replace(partial, path)
        self._file = path.open("a", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, columns, restval="", extrasaction="ignore")

    def write(self, **values: Any) -> None:
        """Write a row; a column without a value stays empty, a value without a column is left out."""
        self._writer.writerow(values)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _rows(path: Path, step: int) -> list[dict[str, str]]:
    """Read the rows up to a step; the last one may be cut off, if the computer stopped while it was written."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if rows and None in rows[-1].values():
            rows.pop()
        return [row for row in rows if int(row["step"]) <= step]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise ValueError(
            f"model_dir: {path} is damaged, must have rows with a step ({error}); mend it, or move it away to go on "
            "with a new one"
        ) from None
