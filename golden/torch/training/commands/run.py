"""The actions of the command line: build a run from its file, train or validate it, and report."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from rich.console import Console

import golden
from golden.arrays.backends import forced
from golden.kernels.library import keep_threads
from golden.torch.amp.configuration import MixedPrecision
from golden.torch.amp.yaml_configuration import precision_from_yaml, read_yaml, yaml_value
from golden.torch.common.processes import rank, seed_everything, world_size
from golden.torch.common.section import parse
from golden.torch.common.terminal import scale_text
from golden.torch.observing import NAME as OBSERVATIONS
from golden.torch.products.functions.products import current_plan
from golden.torch.training.loggers import RunRecord
from golden.torch.training.older_form import as_today, is_older
from golden.torch.training.run_file import Dataloader, Init, RunFile, find_run_file
from golden.torch.training.run_parts import Parts, callbacks_of, data_from, loggers_of, optimizer_from, parts_of
from golden.torch.training.run_schedules import schedulers_from
from golden.torch.training.trainer import Trainer

__all__ = ["Run", "built", "fit", "read_document", "validate"]

_LENGTHS = ("num_steps", "max_steps", "num_epochs")


def read_document(given: argparse.Namespace) -> dict[str, Any]:
    """Read the file and apply the overrides of the command line."""
    document = read_yaml(find_run_file(given.run))
    older = is_older(document)
    if given.levels is not None:
        _set_levels(document, given.levels, older)
    changes = [each.partition("=") for each in given.set]
    steps = getattr(given, "steps", None)
    if steps is not None:
        if steps < 1:
            raise ValueError(f"--steps: got {steps}, must be at least 1")
        loop = "runconfig" if older else "trainer.init.loop"
        section = _section_at(document, loop.split("."), loop)
        for name in _LENGTHS:
            section.pop(name, None)
        changes.append((f"{loop}.max_steps", "=", str(steps)))
    if given.model_dir is not None:
        changes.append(("runconfig.model_dir" if older else "trainer.init.model_dir", "=", given.model_dir))
    for place, equals, text in changes:
        if not equals:
            raise ValueError(f"--set: got {place!r}, must be KEY=VALUE")
        *sections, key = place.split(".")
        section = _section_at(document, sections, place)
        try:
            section[key] = yaml_value(text)
        except ValueError as error:
            raise ValueError(f"--set: got {place}={text}, whose value {error}") from None
    return document


def _set_levels(document: dict[str, Any], path: str, older: bool) -> None:
    """Put in the level map of a file."""
    try:
        given = read_yaml(path)
    except OSError as error:
        raise ValueError(f"--levels: got {path}, which cannot be read: {error.strerror}") from None
    if set(given) != {"levels"}:
        raise ValueError(f"--levels: got {path} with the keys {', '.join(map(str, given))}, must have levels alone")
    if older:
        raise ValueError("--levels: got a level map for a file in the older form, must be with one that has a trainer")
    place = "trainer.init.precision"
    _section_at(document, place.split("."), place)["levels"] = given["levels"]


def _section_at(document: dict[str, Any], names: list[str], place: str) -> dict[str, Any]:
    section = document
    for name in names:
        section = section.setdefault(name, {})
        if not isinstance(section, dict):
            raise ValueError(f"--set: got {place}, must be a key within sections; {name} is a value")
    return section


@dataclass
class Run:
    """A run as its file says."""

    settings: RunFile
    parts: Parts
    trainer: Trainer
    notes: list[str]

    @property
    def init(self) -> Init:
        """The arguments of the Trainer in the file."""
        return self.settings.trainer.init

    def validation(self) -> Any:
        """Return the validation data of ``trainer.fit`` or of a bundled model, or None."""
        section, where = self.settings.trainer.fit.val_dataloader, "trainer.fit.val_dataloader"
        if section is None and self.parts.task is None:
            return None
        return data_from(section or Dataloader(), self.parts.task, where, self.init.seed, train=False)


def built(given: argparse.Namespace, document: dict[str, Any]) -> Run:
    """Build the run of a document."""
    if given.threads < 1:
        raise ValueError(f"--threads: got {given.threads}, must be at least 1")
    keep_threads()  # exact products have theirs
    torch.set_num_threads(given.threads)
    today, without_effect = as_today(document) if is_older(document) else (document, [])
    settings = parse(RunFile, today)
    init = settings.trainer.init
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        precision = precision_from_yaml(document)
    seed_everything(init.seed)
    parts = parts_of(init)
    notes = _about(parts, precision)
    notes += [f"{key} has no effect here" for key in without_effect]
    notes += [f"warning: {each.message}" for each in caught]
    trainer = Trainer(
        parts.model,
        optimizer_from(init, parts.model),
        parts.loss,
        precision,
        model_dir=init.model_dir,
        device=init.device,
        backend=init.backend,
        schedulers=schedulers_from(init),
        loop=init.loop.settings(),
        checkpoint=init.checkpoint.settings(),
        log_steps=init.logging.log_steps,
        loggers=loggers_of(init),
        callbacks=[RunRecord(document, notes, init.model_dir), *callbacks_of(init)],
        seed=init.seed,
        progress=not given.no_progress,
        observe=None if init.observe is None else init.observe.model_dump(),
    )
    return Run(settings, parts, trainer, notes)


def fit(given: argparse.Namespace, document: dict[str, Any], console: Console) -> None:
    """Train the model of a run file."""
    run = built(given, document)
    init, trainer, section = run.init, run.trainer, run.settings.trainer.fit
    train = data_from(section.train_dataloader, run.parts.task, "trainer.fit.train_dataloader", init.seed, train=True)
    validation = run.validation()
    if given.restart and rank() == 0:
        _delete_run(init.model_dir)
    if world_size() > 1:
        dist.barrier()  # no process looks for checkpoints while the first deletes them
    if rank() == 0:
        console.print(f"[bold]{init.model.name}[/bold]")
        for note in run.notes:
            console.print(f"  {note}", soft_wrap=True)
    resume: bool | Path = given.resume if given.resume_from is None else Path(given.resume_from)
    if not resume and section.ckpt_path is not None:
        resume = section.ckpt_path
    during = validation if section.val_dataloader is not None else None
    started = time.perf_counter()
    losses = trainer.fit(train, during, resume=resume, override=given.override)
    seconds = time.perf_counter() - started
    result = _measured(run, validation)
    if rank() == 0:
        last = f", mean loss of the last {len(losses[-20:])} steps {np.mean(losses[-20:]):.4f}" if losses else ""
        skipped, scale = trainer.scaler.get_num_skipped_steps(), scale_text(trainer.scaler.get_scale())
        in_all = f" ({trainer.step} in all)" if len(losses) != trainer.step else ""
        console.print(f"  {len(losses)} steps in {seconds:.1f} s{in_all}{last}")
        console.print(f"  loss scale {scale}, {skipped} steps skipped")
        for line in result:
            console.print(f"  [bold]{line}[/bold]")
        console.print(f"  log and checkpoints: {init.model_dir}", soft_wrap=True)


def validate(given: argparse.Namespace, document: dict[str, Any], console: Console) -> None:
    """Validate the model of a run file with the weights of a checkpoint."""
    run = built(given, document)
    trainer, settings = run.trainer, run.settings.trainer
    checkpoint = given.checkpoint
    sections: list[tuple[str, Dataloader]] = []
    if settings.validate_ is not None:
        sections.append(("trainer.validate.val_dataloader", settings.validate_.val_dataloader))
        checkpoint = checkpoint or settings.validate_.ckpt_path
    elif settings.validate_all is not None:
        several = settings.validate_all.val_dataloaders
        many = several if isinstance(several, list) else [several]
        sections += [(f"trainer.validate_all.val_dataloaders.{number}", each) for number, each in enumerate(many)]
        paths = settings.validate_all.ckpt_paths
        checkpoint = checkpoint or (paths[-1] if isinstance(paths, list) and paths else paths)
    loaders = [data_from(each, run.parts.task, where, run.init.seed, train=False) for where, each in sections]
    if not loaders:
        default = run.validation()
        if default is None:
            raise ValueError("trainer.validate.val_dataloader: is missing, must be given")
        loaders = [default]
    path = trainer.load_weights(checkpoint or True)
    if rank() == 0:
        console.print(f"[bold]{run.init.model.name}[/bold] with the weights of {path}", soft_wrap=True)
    for loader in loaders:
        trainer.last_validation = None
        for line in _measured(run, loader):
            if rank() == 0:
                console.print(f"  {line}")


def _measured(run: Run, validation: Any) -> list[str]:
    """Measure the model on validation data, and say it."""
    task = run.parts.task
    if validation is None:
        return []
    if task is not None:
        return [f"{task.measure_name} on the validation data: {run.trainer.evaluate(validation, task.measure):.4f}"]
    last = run.trainer.last_validation
    # At the end of a run it is done already.
    result = last[1] if last and last[0] == run.trainer.step else run.trainer.validate(validation)
    return [f"{name.removeprefix('val_')} on the validation data: {value:.4f}" for name, value in result.items()]


def _delete_run(folder: Path) -> None:
    """Delete the files of an earlier run in its folder."""
    for name in ("checkpoints", "tensorboard"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in (
        *folder.glob("run_to_step_*.yaml"),
        *(folder / name for name in ("log.csv", "metrics.csv", "run.yaml", OBSERVATIONS)),
    ):
        path.unlink(missing_ok=True)


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


def _about(parts: Parts, precision: MixedPrecision) -> list[str]:
    parameters = f"{sum(each.numel() for each in parts.model.parameters()):,} parameters"
    examples = f", {len(parts.task.train):,} training examples" if parts.task is not None else ""  # type: ignore[arg-type]
    if precision.enabled:
        scaling = precision.loss_scaling_factor if precision.scales_loss else "none"
        rule = "" if precision.reduction is not None else f" at level {precision.precision_opt_level}"
        numbers = f"{precision.fp16_type}{rule}, loss scaling {scaling}"
        with precision.autocast():
            products = [f"each product: {current_plan().reduction}"]
    else:
        numbers, products = "fp32 of PyTorch", []
    info, chosen = golden.kernel_info(), forced()
    by = f"{info['path']}, {_count(int(info['threads']), 'thread')}"
    if chosen is not None and chosen.name != "kernels":
        by = f"the back end {chosen.name}"
    processes = _count(world_size(), "process", "processes")
    versions = f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}"
    return [
        f"{parameters}{examples}, {numbers}",
        *products,
        f"products by {by}, {processes}; {versions}",
        *(parts.task.notes if parts.task is not None else ()),
    ]
