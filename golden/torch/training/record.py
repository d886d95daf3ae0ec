"""``run.yaml`` beside the log: always what the run was started with, or resumed with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from golden.torch.common.arguments import make_folder
from golden.torch.common.processes import rank
from golden.torch.training.callback import Callback
from golden.torch.training.run import Run

__all__ = ["RunRecord"]


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
        partial = self._path.with_name("run.yaml.partial")
        partial.write_text("".join(f"# {note}\n" for note in self._notes) + text, encoding="utf-8")
        os.replace(partial, self._path)


def _says(path: Path, document: Mapping[str, Any]) -> bool:
    try:
        return bool(yaml.safe_load(path.read_text(encoding="utf-8")) == document)
    except (yaml.YAMLError, ValueError):  # damaged, or not even text
        return False
