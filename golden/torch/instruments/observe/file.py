"""``observations.jsonl``, written as the run goes: after each step all its lines are on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from golden.torch.common.folders import make_folder
from golden.torch.instruments.observe.rows import Row, RunRow, TrialRow, read_rows

__all__ = ["NAME", "ObservationFile"]

NAME = "observations.jsonl"


class ObservationFile:
    """The file of a run.

    Parameters
    ----------
    folder : Path
        Folder of the run; it is made with the first step.
    step : int
        Steps trained already. Lines of the file up to this step stay; those after it, which the run repeats, go, and so
        does a trial of levels, which its end repeats.

    Raises
    ------
    ValueError
        If the file is there, the run goes on with it, and it is damaged.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        self._path = folder / NAME
        found = read_rows(self._path) if step and self._path.is_file() else []
        #: What the file has already.
        self.kept: list[Row] = [
            row for row in found if isinstance(row, RunRow) or (row.step <= step and not isinstance(row, TrialRow))
        ]
        self._file: TextIO | None = None

    def write(self, rows: Iterable[Row]) -> None:
        """Append the lines of a step; the first make the file."""
        if self._file is None:
            self._file = self._made()
        self._file.write("".join(row.line() for row in rows))
        self._file.flush()

    def _made(self) -> TextIO:
        make_folder(self._path.parent, "folder")
        partial = self._path.with_name(f"{NAME}.partial")
        partial.write_text("".join(row.line() for row in self.kept), encoding="utf-8")
        os.replace(partial, self._path)
        return self._path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
