"""Checkpoints on disk: a folder that appears under its name only when everything in it is written.

``step_00000100/`` holds ``weights.safetensors`` (the model's state dictionary), ``state.pt`` (optimizer, scaler, random
generators) and ``checkpoint.json`` (the step, model and settings, and a hash of either file).
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn
from torch.serialization import get_unsafe_globals_in_checkpoint

from golden.torch.cerebras.storage import read, telling_of_a_full_disk
from golden.torch.training.identity import differences

__all__ = ["CheckpointContent", "newest_checkpoint", "prune_checkpoints", "read_checkpoint", "write_checkpoint"]

_EXTRA = "model"  # what get_extra_state() of the model's modules returned and is no tensor, within the state
_WEIGHTS, _STATE, _ABOUT = "weights.safetensors", "state.pt", "checkpoint.json"
_NAME = re.compile(r"step_\d{8,}")
_FIRST_VERSION = ("optimizer", "ranks", "precision")
_YOUNGER = {"blocks"}


def write_checkpoint(folder: Path, step: int, model: nn.Module, state: Any, about: Mapping[str, Any]) -> Path:
    """Write a checkpoint and return its folder, below that of all checkpoints of the run.

    Everything is written and flushed to disk under another name first; one rename then makes the checkpoint. A process
    that dies before leaves a ``.partial`` folder. It is never read; the next checkpoint of that step replaces it. After
    an error, of a full disk or of a state that cannot be read again, nothing bears the name of a checkpoint either.

    The state consists of tensors, arrays, numbers, texts and plain Python containers of them. It is a dictionary if the
    model has an extra state that is no tensor. Tied weights are written once for each name. ``checkpoint.json`` tells
    what `about` says, besides the step.
    """
    whole = folder / f"step_{step:08}"
    partial, old = whole.with_suffix(".partial"), whole.with_suffix(".old")
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        with telling_of_a_full_disk(whole):
            _write(partial, step, model, state, about)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)  # it would stay, and fill the disk
        raise
    if whole.exists():
        whole.rename(old)
    partial.rename(whole)
    _flush(folder)
    shutil.rmtree(old, ignore_errors=True)
    return whole


def _write(partial: Path, step: int, model: nn.Module, state: Any, about: Mapping[str, Any]) -> None:
    partial.mkdir(parents=True)
    of_model = model.state_dict()
    weights = {name: each.detach().clone().contiguous() for name, each in of_model.items() if _is_tensor(each)}
    safetensors.torch.save_file(weights, partial / _WEIGHTS)
    if extra := {name: each for name, each in of_model.items() if not _is_tensor(each)}:
        state = {**state, _EXTRA: extra}
    with (partial / _STATE).open("wb") as file:  # given a path, torch.save does not tell why it failed
        torch.save(state, file)
    _check_readable(partial / _STATE)
    hashes = {name: _hash(partial / name) for name in (_WEIGHTS, _STATE)}
    text = json.dumps({"step": step, **about, "sha256": hashes}, indent=2)
    (partial / _ABOUT).write_text(text + "\n", encoding="utf-8")
    for path in (*partial.iterdir(), partial):
        _flush(path)


def _check_readable(path: Path) -> None:
    """Refuse a state now that no run could go on from later."""
    try:
        read(path, map_location="cpu", mmap=True, weights_only=True)
    except pickle.UnpicklingError as error:
        names = sorted(each for each in get_unsafe_globals_in_checkpoint(path) if not each.startswith("numpy.")) or [
            "an array of objects"
        ]
        raise TypeError(
            f"checkpoint: its state has {', '.join(names)} in it, must be tensors, arrays, numbers, texts and "
            "containers of them; look at the on_save_checkpoint of callbacks, the get_extra_state of the model, and "
            "the settings and state of the optimizer and of schedulers"
        ) from error


def newest_checkpoint(folder: Path) -> Path:
    """Return the checkpoint of the latest step, or raise FileNotFoundError."""
    found = _checkpoints(folder)
    if not found:
        raise FileNotFoundError(f"resume: found no checkpoint in {folder}, must be one to resume from")
    return found[-1]


def prune_checkpoints(folder: Path, keep: int) -> None:
    """Delete all checkpoints but the latest.

    One that goes loses its name first, so that what bears the name of a checkpoint stays whole.
    """
    for path in _checkpoints(folder)[:-keep]:
        old = path.with_suffix(".old")
        shutil.rmtree(old, ignore_errors=True)
        path.rename(old)
        shutil.rmtree(old, ignore_errors=True)


@dataclass(frozen=True)
class CheckpointContent:
    """The content of a checkpoint beside the weights, with its step and its run."""

    state: Any
    step: int
    about: Mapping[str, Any]
    differences: tuple[str, ...]  # between that run and this one, in words


def read_checkpoint(
    path: Path, model: nn.Module, about: Mapping[str, Any] | None = None, *, override: bool = False
) -> CheckpointContent:
    """Load the weights of a checkpoint into a model; return what else it holds.

    Parameters
    ----------
    path : Path
        The folder of the checkpoint.
    model : nn.Module
        The model, as it was when the checkpoint was written.
    about : mapping, optional
        What `write_checkpoint` must have been given; None accepts the weights of any run.
    override : bool
        Whether differences to `about` are accepted; the model must be the same all the same.

    Raises
    ------
    FileNotFoundError
        If `path` is no checkpoint.
    ValueError
        If a file is damaged, or the checkpoint is of another run; then the model is not changed.
    """
    if not (path / _ABOUT).is_file():
        raise FileNotFoundError(
            f"resume: got {path}, must be the folder of a checkpoint, with {_ABOUT} in it{_whole_before(path)}"
        )
    damaged = _damaged(path)
    if damaged:
        raise ValueError(f"resume: {path / damaged[0]} is damaged, its content has changed{_whole_before(path)}")
    found = json.loads((path / _ABOUT).read_text(encoding="utf-8"))
    weights = safetensors.torch.load_file(path / _WEIGHTS)
    its, mine = _shapes(weights), _shapes(model.state_dict())
    if told := differences(its, mine):
        raise ValueError(f"resume: {path} is of another model: {'; '.join(told)}")
    wanted = {} if about is None else json.loads(json.dumps(about))
    told = _named(differences(*_compared(found, wanted)))
    if told and not override:
        raise ValueError(
            f"resume: {path} is of another run: {'; '.join(told)}; go on with the settings and data of that run, or "
            "start a new one, or pass override=True to go on with the ones given here"
        )
    state = read(path / _STATE, map_location="cpu", weights_only=True)
    model.load_state_dict(weights | (state.get(_EXTRA, {}) if isinstance(state, dict) else {}))
    return CheckpointContent(state, found["step"], found, tuple(told))


def _compared(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts of both that a resumed run must share; older checkpoints tell less."""
    names = [name for name in (wanted if "data" in found else _FIRST_VERSION) if name in wanted]
    names = [name for name in names if name not in _YOUNGER or name in found]
    its = {name: found[name] for name in names if name in found}
    if isinstance(its.get("precision"), dict):  # the log at that time was part of it
        its["precision"] = {name: each for name, each in its["precision"].items() if name != "log_loss_scale"}
    mine = {name: wanted[name] for name in names}
    if isinstance(its.get("schedulers"), dict):  # the curves of ours are younger
        told = {number for number, each in its["schedulers"].items() if "curve" in each}
        mine["schedulers"] = {
            number: each if number in told else {name: each[name] for name in each if name != "curve"}
            for number, each in mine["schedulers"].items()
        }
    return its, mine


def _named(told: list[str]) -> list[str]:
    """Drop differences that follow from others: settings of another optimizer, data of other processes."""
    follows = {"optimizer is ": "optimizer_settings.", "ranks is ": "data."}
    left_out = tuple(after for cause, after in follows.items() if any(each.startswith(cause) for each in told))
    kept = [each for each in told if not (left_out and each.startswith(left_out))]
    return [each.replace("optimizer_settings.", "optimizer.", 1) for each in kept]


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, the latest step last."""
    found = [path for path in folder.glob("step_*") if _NAME.fullmatch(path.name)]
    return sorted(found, key=_step_of)


def _step_of(path: Path) -> int:
    return int(path.name.removeprefix("step_"))


def _damaged(path: Path) -> list[str]:
    """Name the files of a checkpoint that differ from their recorded hashes."""
    try:
        found = json.loads((path / _ABOUT).read_text(encoding="utf-8"))
        return [name for name in (_WEIGHTS, _STATE) if _hash(path / name) != found["sha256"][name]]
    except (OSError, KeyError, TypeError, ValueError):
        return [_ABOUT]


def _whole_before(path: Path) -> str:
    """Say which checkpoint of an earlier step is whole, and how to go on from it."""
    if not _NAME.fullmatch(path.name):
        return ""
    earlier = [each for each in _checkpoints(path.parent) if _step_of(each) < _step_of(path)]
    for each in reversed(earlier):
        if not _damaged(each):
            return (
                f"; the newest whole one before it is {each}: pass resume={str(each)!r} to go on from there, or "
                "delete the folder to resume from the checkpoint before it"
            )
    return "; no checkpoint before it is whole: start a new run"


def _is_tensor(given: Any) -> bool:
    return isinstance(given, torch.Tensor)


def _shapes(state: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{each.dtype} of shape {tuple(each.shape)}" for name, each in state.items() if _is_tensor(each)}


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
