"""``observations.jsonl``, written as the run goes: after each step all its lines are on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from golden.torch.observing.rows import Row, RunRow, read_rows

__all__ = ["NAME", "ObservationFile"]

NAME = "observations.jsonl"


class ObservationFile:
    """The file of a run.

    Parameters
    ----------
    folder : Path
        Folder of the run; it is made.
    step : int
        Steps trained already. Lines of the file up to this step stay; those after it, which the run repeats, go.

    Raises
    ------
    ValueError
        If the file is there, the run goes on with it, and it is damaged.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / NAME
        found = read_rows(path) if step and path.is_file() else []
        #: What the file has already.
        self.kept: list[Row] = [row for row in found if isinstance(row, RunRow) or row.step <= step]
        partial = path.with_name(f"{NAME}.partial")
        partial.write_text("".join(row.line() for row in self.kept), encoding="utf-8")
        os.replace(partial, path)
        self._file = path.open("a", encoding="utf-8")

    def write(self, rows: Iterable[Row]) -> None:
        """Append the lines of a step."""
        self._file.write("".join(row.line() for row in rows))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
