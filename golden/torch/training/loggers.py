"""Files that a run writes as it goes: figures in CSV files and TensorBoard, settings in ``run.yaml``."""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from golden.files import write_whole
from golden.torch.common.arguments import check_count, make_folder
from golden.torch.common.processes import rank
from golden.torch.common.terminal import scale_text
from golden.torch.training.callback import Callback, Logger
from golden.torch.training.run import Run

__all__ = ["CsvLogger", "Logger", "Logging", "ProgressLogger", "RunLog", "RunRecord", "TensorBoardLogger"]


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


_COLUMNS = ("step", "epoch", "loss", "loss_scale", "skipped_steps", "skip_reason", "seconds")


class Logging:
    """The interval at which figures are logged.

    Parameters
    ----------
    log_steps : int
        Steps between two of them.
    """

    def __init__(self, log_steps: int = 1) -> None:
        check_count(log_steps, "log_steps")
        self.log_steps = log_steps


class CsvLogger(Logger):
    """Writes ``log.csv``, a row for each logged step, and ``metrics.csv`` with everything else.

    A resumed run keeps the rows up to its step. The `Trainer` adds one when it has a `model_dir`.
    """

    def __init__(self) -> None:
        self._rows: RunLog | None = None
        self._metrics: RunLog | None = None
        self._folder: Path | None = None

    def on_fit_start(self, trainer: Run, train_dataloader: Any, val_dataloader: Any, loop: Any) -> None:
        """Open the log."""
        if trainer.model_dir is None or rank():
            return
        self._folder = trainer.model_dir
        columns = [each for each in _COLUMNS if each != "loss_scale" or trainer.precision.log_loss_scale]
        self._rows = RunLog(self._folder / "log.csv", columns, trainer.step)
        path = self._folder / "metrics.csv"
        if path.is_file():
            if trainer.step:
                self._metrics = RunLog(path, ("step", "name", "value"), trainer.step)
            else:
                path.unlink()

    def log_step(self, row: Mapping[str, Any], step: int) -> None:
        """Write a row of ``log.csv``."""
        if self._rows is not None:
            self._rows.write(step=step, **row)

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Write rows of ``metrics.csv``."""
        if self._folder is None:
            return
        if self._metrics is None:
            # All rows stay: a validation of an older checkpoint may come after later steps.
            self._metrics = RunLog(self._folder / "metrics.csv", ("step", "name", "value"), sys.maxsize)
        for name, value in metrics.items():
            self._metrics.write(step=step, name=name, value=value)

    def flush(self) -> None:
        """Close the files; each row is on disk already."""
        for each in (self._rows, self._metrics):
            if each is not None:
                each.close()
        self._rows = self._metrics = None


class TensorBoardLogger(Logger):
    """Writes event files for TensorBoard.

    Parameters
    ----------
    summary_dir : path, optional
        Their folder; ``tensorboard`` in the folder of the run unless given.

    Raises
    ------
    ModuleNotFoundError
        If tensorboardX is not installed.
    """

    def __init__(self, summary_dir: str | Path | None = None) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ModuleNotFoundError as error:
            if error.name != "tensorboardX":
                raise
            raise ModuleNotFoundError(
                "TensorBoardLogger needs tensorboardX, which is not installed: pip install 'cbfloat[tensorboard]'",
                name="tensorboardX",
            ) from None
        self._make, self._writer = SummaryWriter, cast(Any, None)
        self._folder = None if summary_dir is None else Path(summary_dir)

    def setup(self, trainer: Run) -> None:
        """Choose the folder."""
        if self._folder is None:
            if trainer.model_dir is None:
                raise ValueError("summary_dir: got None, must be a folder when the Trainer has no model_dir")
            self._folder = trainer.model_dir / "tensorboard"

    def on_fit_start(self, trainer: Run, train_dataloader: Any, val_dataloader: Any, loop: Any) -> None:
        """Begin an event file; TensorBoard drops the rows of an earlier run for the steps that this one repeats."""
        if rank() == 0:
            self._writer = self._make(str(self._folder), purge_step=trainer.step + 1)

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Write scalars; only numbers are written."""
        if self._writer is None:
            self._writer = self._make(str(self._folder))
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        """Write and close the event file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class ProgressLogger(Logger):
    """Prints a line for each logged step and for each validation; without a terminal it replaces the progress bar."""

    def log_step(self, row: Mapping[str, Any], step: int) -> None:
        """Print loss, loss scale and skipped steps."""
        scale = scale_text(row.get("loss_scale", math.nan))
        print(f"step {step}  loss {row['loss']:.4f}  scale {scale}  skipped {row['skipped_steps']}", flush=True)

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Print names and values."""
        told = "  ".join(
            f"{name} {each:.4f}" if isinstance(each, float) else f"{name} {each}" for name, each in metrics.items()
        )
        print(f"step {step}  {told}", flush=True)


class RunRecord(Callback):
    """Writes ``run.yaml`` when a run begins or goes on.

    If it goes on with another file than before, the earlier one is kept as ``run_to_step_00000100.yaml``.

    Parameters
    ----------
    document : mapping
        What was read from the file and the command line.
    notes : sequence of str
        Comments at its top.
    folder : Path
        Where it is written.
    """

    def __init__(self, document: Mapping[str, Any], notes: Sequence[str], folder: Path) -> None:
        self._document, self._notes, self._path = dict(document), tuple(notes), folder / "run.yaml"

    def on_fit_start(self, trainer: Run, train_dataloader: Any, val_dataloader: Any, loop: Any) -> None:
        """Write the file; the checkpoint is loaded and accepted."""
        if rank():
            return
        text = yaml.safe_dump(self._document, sort_keys=False)
        if trainer.step and self._path.is_file() and not _says(self._path, self._document):
            os.replace(self._path, self._path.with_name(f"run_to_step_{trainer.step:08}.yaml"))
        make_folder(self._path.parent, "model_dir")
        write_whole(self._path, ("".join(f"# {note}\n" for note in self._notes) + text).encode())


def _says(path: Path, document: Mapping[str, Any]) -> bool:
    try:
        return bool(yaml.safe_load(path.read_text(encoding="utf-8")) == document)
    except (yaml.YAMLError, ValueError):  # damaged, or not even text
        return False
