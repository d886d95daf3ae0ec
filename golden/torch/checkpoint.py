"""Checkpoints on disk: a folder that appears under its name only when everything in it is written.

``step_00000100/`` holds ``weights.safetensors`` (the model's state dictionary), ``state.pt`` (optimizer, scaler, random
generators) and ``checkpoint.json`` (the step, what was trained with what, and a hash of either file).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

__all__ = ["newest_checkpoint", "read_checkpoint", "write_checkpoint"]

_WEIGHTS, _STATE, _ABOUT = "weights.safetensors", "state.pt", "checkpoint.json"
_NAME = re.compile(r"step_\d{8,}")


def write_checkpoint(folder: Path, step: int, model: nn.Module, state: Any, about: Mapping[str, Any]) -> Path:
    """Write a checkpoint and return its folder.

    Everything is written and flushed to disk under another name first; one rename then makes the checkpoint. A process
    that dies before leaves a ``.partial`` folder, which nobody reads and the next checkpoint of that step replaces.

    Parameters
    ----------
    folder : Path
        Where the checkpoints of the run are; made if it does not exist.
    step : int
        Steps trained.
    model : nn.Module
        Whose state dictionary is written; tied weights are written once for each name.
    state : object
        Tensors and plain Python containers.
    about : mapping
        What ``checkpoint.json`` shall tell, besides the step.
    """
    whole = folder / f"step_{step:08}"
    partial, old = whole.with_suffix(".partial"), whole.with_suffix(".old")
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir(parents=True)
    weights = {name: tensor.detach().clone().contiguous() for name, tensor in model.state_dict().items()}
    safetensors.torch.save_file(weights, partial / _WEIGHTS)
    torch.save(state, partial / _STATE)
    hashes = {name: _hash(partial / name) for name in (_WEIGHTS, _STATE)}
    text = json.dumps({"step": step, **about, "sha256": hashes}, indent=2)
    (partial / _ABOUT).write_text(text + "\n", encoding="utf-8")
    for path in (*partial.iterdir(), partial):
        _flush(path)
    if whole.exists():
        whole.rename(old)
    partial.rename(whole)
    _flush(folder)
    shutil.rmtree(old, ignore_errors=True)
    return whole


def newest_checkpoint(folder: Path) -> Path:
    """Return the checkpoint of the latest step.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    found = [path for path in folder.glob("step_*") if _NAME.fullmatch(path.name)]
    if not found:
        raise FileNotFoundError(f"resume: found no checkpoint in {folder}, must be one to resume from")
    return max(found, key=lambda path: int(path.name.removeprefix("step_")))


def read_checkpoint(path: Path, model: nn.Module, about: Mapping[str, Any]) -> tuple[Any, int]:
    """Load the weights of a checkpoint into a model; return its state and its step.

    Parameters
    ----------
    path : Path
        The folder of the checkpoint.
    model : nn.Module
        The model, as it was when the checkpoint was written.
    about : mapping
        What `write_checkpoint` must have been given.

    Raises
    ------
    FileNotFoundError
        If `path` is no checkpoint.
    ValueError
        If a file is damaged, or the checkpoint is of another run; then the model is not changed.
    """
    if not (path / _ABOUT).is_file():
        raise FileNotFoundError(f"resume: got {path}, must be the folder of a checkpoint, with {_ABOUT} in it")
    try:
        found = json.loads((path / _ABOUT).read_text(encoding="utf-8"))
        damaged = [name for name in (_WEIGHTS, _STATE) if _hash(path / name) != found["sha256"][name]]
    except (OSError, KeyError, TypeError, ValueError):
        damaged = [_ABOUT]
    if damaged:
        raise ValueError(
            f"resume: {path / damaged[0]} is damaged, it is not what was written; delete the folder to resume from the "
            "checkpoint before it"
        )
    weights = safetensors.torch.load_file(path / _WEIGHTS)
    _check_same(found, json.loads(json.dumps(about)), path)
    its, mine = _shapes(weights), _shapes(model.state_dict())
    _check_same(its, mine | dict.fromkeys(its.keys() - mine.keys(), "nothing"), path)
    state = torch.load(path / _STATE, weights_only=True)
    model.load_state_dict(weights)
    return state, found["step"]


def _check_same(found: Mapping[str, Any], wanted: Mapping[str, Any], path: Path, prefix: str = "") -> None:
    """Raise an error that names the first thing that the checkpoint has otherwise than the run."""
    for name in wanted:
        mine, its = wanted[name], found.get(name, "nothing")
        if isinstance(mine, dict) and isinstance(its, dict):
            _check_same(its, mine, path, f"{prefix}{name}.")
        elif mine != its:
            raise ValueError(
                f"resume: {path} is of another run: {prefix}{name} is {its} there and {mine} here; go on with what the "
                "run had, or start a new one"
            )


def _shapes(weights: Mapping[str, torch.Tensor]) -> dict[str, str]:
    return {name: f"{each.dtype} of shape {tuple(each.shape)}" for name, each in weights.items()}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    """Wait until a file or a folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
