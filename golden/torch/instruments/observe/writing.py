"""Where observations go: into the file of a run, to TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from golden.flags import EVENTS
from golden.torch.common.arguments import make_folder
from golden.torch.instruments.rows import NAME, ProductRow, Row, RunRow, StepRow, TrialRow, read_rows
from golden.torch.utils.tensorboard import SummaryWriter

__all__ = ["Board", "ObservationFile"]


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
        #: The content of the file so far.
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


class Board:
    """Writes an event file.

    Parameters
    ----------
    folder : Path
        Its folder.
    step : int
        Steps trained already; TensorBoard drops what an earlier file tells of later ones.

    Raises
    ------
    ModuleNotFoundError
        If tensorboardX is not installed.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self._writer = SummaryWriter(str(folder), purge_step=step + 1)

    def write(self, rows: Iterable[Row]) -> None:
        """Write the rows of a step: shares of the counted steps, distances, loss and loss scale."""
        for row in rows:
            if isinstance(row, ProductRow):
                self._write_product(row)
            elif isinstance(row, StepRow):
                self._write_step(row)
        self._writer.flush()

    def _write_step(self, row: StepRow) -> None:
        scalars = {"loss": row.loss, "loss_scale": row.loss_scale, "skipped": float(row.skipped)}
        for name, value in scalars.items():
            if value is not None:
                self._writer.add_scalar(f"observe/{name}", value, row.step)

    def _write_product(self, row: ProductRow) -> None:
        place = f"{row.module or 'model'}/{row.direction}/{row.operation.replace(' ', '_')}"
        steps = max(1, row.products.steps + row.promotions.steps)
        for name in (event for event in EVENTS if event != "inexact"):
            share = (getattr(row.products, name) + getattr(row.promotions, name)) / steps
            self._writer.add_scalar(f"observe_{name}/{place}", share, row.step)
        if row.distance is not None:
            self._writer.add_scalar(f"observe_distance/{place}", row.distance.relative, row.step)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
