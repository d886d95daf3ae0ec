"""Run files of the older form (``runconfig``, ``model``, ``optimizer``, ``train_input``), read as files of today."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

from golden.torch.amp.yaml_configuration import OLDER_PRECISION
from golden.torch.common.arguments import unknown_key

__all__ = ["as_today", "is_older", "older_place"]

_SECTIONS = ("runconfig", "model", "optimizer", "train_input", "eval_input")
# Key of runconfig, with its place below trainer of today.
_RUNCONFIG = {
    "model_dir": "init.model_dir",
    "seed": "init.seed",
    "target_device": "init.device",
    "num_steps": "init.loop.num_steps",
    "max_steps": "init.loop.max_steps",
    "num_epochs": "init.loop.num_epochs",
    "steps_per_epoch": "init.loop.steps_per_epoch",
    "eval_frequency": "init.loop.eval_frequency",
    "eval_steps": "init.loop.eval_steps",
    "checkpoint_steps": "init.checkpoint.steps",
    "max_checkpoints": "init.checkpoint.keep",
    "autoload_last_checkpoint": "init.checkpoint.autoload_last_checkpoint",
    "save_initial_checkpoint": "init.checkpoint.save_initial_checkpoint",
    "log_steps": "init.logging.log_steps",
    "checkpoint_path": "fit.ckpt_path",
}
# Keys of runconfig that only a cluster of wafers, or the program that ran it, could use.
_WITHOUT_EFFECT = """
    mode compile_dir compile_only validate_only num_csx num_wgt_servers num_workers_per_csx num_act_servers
    mgmt_address mgmt_namespace credentials_path mount_dirs python_paths job_labels job_priority job_time_sec
    disable_version_check logging wsc_log_level
"""
_OPTIMIZER = {"learning_rate": "lr", "weight_decay_rate": "weight_decay"}


def is_older(document: Mapping[str, Any]) -> bool:
    """Return whether a run file has the older form."""
    return "trainer" not in document and any(name in document for name in _SECTIONS)


def as_today(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a run file of the older form as one of today, and the keys that have no effect here."""
    sections: dict[str, Mapping[str, Any]] = {}
    for name, section in document.items():
        if name not in _SECTIONS:
            raise ValueError(unknown_key("", name, _SECTIONS).removeprefix("."))
        if section is not None and not isinstance(section, Mapping):
            raise ValueError(f"{name}: got {section!r}, must be a mapping of keys to values")
        sections[name] = section or {}
    for name in ("runconfig", "model", "optimizer", "train_input"):
        if name not in sections:
            raise ValueError(f"{name}: is missing, must be given")
    init: dict[str, Any] = {"loop": {}, "model": _model(sections["model"]), "precision": _precision(sections)}
    fit: dict[str, Any] = {"train_dataloader": _input(sections["train_input"])}
    trainer = {"init": init, "fit": fit}
    without_effect = []
    for key, value in sections["runconfig"].items():
        if key in _RUNCONFIG:
            *above, last = _RUNCONFIG[key].split(".")
            place: dict[str, Any] = trainer
            for each in above:
                place = place.setdefault(each, {})
            place[last] = value
        elif key in _WITHOUT_EFFECT.split():
            without_effect.append(f"runconfig.{key}")
        elif key not in OLDER_PRECISION["runconfig"]:
            known = (*_RUNCONFIG, *_WITHOUT_EFFECT.split(), *OLDER_PRECISION["runconfig"])
            raise ValueError(unknown_key("runconfig", key, known))
    settings = {key: value for key, value in sections["optimizer"].items() if key not in OLDER_PRECISION["optimizer"]}
    if "optimizer_type" not in settings:
        raise ValueError("optimizer.optimizer_type: is missing, must be given, such as SGD or AdamW")
    if "grad_accum_steps" in settings:
        init["loop"]["grad_accum_steps"] = settings.pop("grad_accum_steps")
    kind, rate = settings.pop("optimizer_type"), settings.get("learning_rate")
    if isinstance(rate, (Mapping, list)):
        init["schedulers"] = _schedulers(settings.pop("learning_rate"))
    if {"beta1", "beta2"} & settings.keys():
        settings["betas"] = [settings.pop("beta1", 0.9), settings.pop("beta2", 0.999)]
    init["optimizer"] = {kind: {_OPTIMIZER.get(key, key): value for key, value in settings.items()}}
    if sections.get("eval_input"):
        fit["val_dataloader"] = _input(sections["eval_input"])
    return {"trainer": trainer}, without_effect


def older_place(message: str) -> str:
    """Return an error about a file of today with the places of the older form instead."""
    lines = []
    for line in message.splitlines():
        place, colon, rest = line.partition(":")
        for today, older in _PLACES:
            if place == today or place.startswith(f"{today}."):
                rest_of_place = place.removeprefix(today)
                if today == "trainer.init.optimizer":
                    rest_of_place, rest = _of_optimizer(rest_of_place, rest)
                place = older + rest_of_place
                break
        lines.append(place + colon + rest)
    return "\n".join(lines)


def _of_optimizer(place: str, told: str) -> tuple[str, str]:
    """Return place and message in the older form's words. Today, the name of the class is a level by itself."""
    _, kind, *names = place.split(".") if place else ("", "")
    if not names:
        return (".optimizer_type", told.replace(" is", f" {kind} is", 1)) if kind else ("", told)
    for name, older in _OLDER_NAMES.items():
        told = re.sub(rf"(?<![\w.]){name}(?!\w)", older, told)
    return "." + _OLDER_NAMES.get(names[-1], names[-1]), told


_OLDER_NAMES = {"betas": "beta1 and beta2", **{today: older for older, today in _OPTIMIZER.items()}}

_PLACES = [
    ("trainer.init.optimizer", "optimizer"),
    ("trainer.init.schedulers", "optimizer.learning_rate"),
    ("trainer.init.loop.grad_accum_steps", "optimizer.grad_accum_steps"),
    *((f"trainer.{today}", f"runconfig.{older}") for older, today in _RUNCONFIG.items()),
    ("trainer.init.loop", "runconfig"),
    ("trainer.init.model", "model"),
    ("trainer.fit.train_dataloader", "train_input"),
    ("trainer.fit.val_dataloader", "eval_input"),
]


def _model(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in OLDER_PRECISION["model"]}


def _precision(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        today: sections[name][key]
        for name, keys in OLDER_PRECISION.items()
        for key, today in keys.items()
        if key in sections.get(name, {})
    }


def _input(section: Mapping[str, Any]) -> dict[str, Any]:
    # The data types of the older form's inputs are settled by the precision.
    return {key: value for key, value in section.items() if key != "to_float16"}


def _schedulers(given: Any) -> list[dict[str, Any]]:
    """Return schedulers that are written as a learning rate, ``{scheduler: Linear, ...}``, or several of them.

    Several follow each other; with ``main_scheduler: chained`` they all run at once.
    """
    entries = given if isinstance(given, list) and given else [given]
    made: list[dict[str, Any]] = []
    lengths, main = [], set()
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("scheduler"), str):
            raise ValueError(
                f"optimizer.learning_rate: got {entry!r}, must be a number, or have a scheduler and its settings"
            )
        settings = {key: value for key, value in entry.items() if key not in ("scheduler", "main_scheduler", "steps")}
        if "steps" in entry:
            settings["total_iters"] = entry["steps"]
        name = entry["scheduler"]
        made.append({name if name.endswith(("LR", "Scheduler")) else f"{name}LR": settings})
        lengths.append(settings.get("total_iters"))
        if entry.get("main_scheduler"):
            main.add(str(entry["main_scheduler"]).lower().removesuffix("lr"))
    if len(made) == 1:
        return made
    if main == {"chained"}:
        return [{"ChainedScheduler": {"schedulers": made}}]
    if main - {"sequential"}:
        raise ValueError(
            f"optimizer.learning_rate: got main_scheduler {' and '.join(sorted(main))}, must be sequential or chained, "
            "and the same everywhere"
        )
    for entry, length in zip(entries[:-1], lengths, strict=False):
        if not isinstance(length, int) or isinstance(length, bool):
            raise ValueError(
                f"optimizer.learning_rate: got total_iters {length!r} of scheduler {entry['scheduler']}, must be the "
                "number of its steps, after which the next scheduler begins"
            )
    return [{"SequentialLR": {"schedulers": made, "milestones": list(itertools.accumulate(lengths[:-1]))}}]
