"""The command line of the training layer: fit a model as a YAML file says."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import yaml
from rich.console import Console
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import golden
from golden.torch.configuration import MixedPrecision
from golden.torch.examples.task import Task
from golden.torch.progress import scale_text
from golden.torch.ranks import rank, world_size
from golden.torch.run_file import RunFile, example_names, find_run_file
from golden.torch.section import parse
from golden.torch.trainer import Trainer
from golden.torch.yaml_configuration import precision_from_yaml, read_yaml, yaml_value

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m golden.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{fit,examples}")
    fit = commands.add_parser(
        "fit",
        help="train a model",
        description="Train a model. On several processes: torchrun --nproc-per-node 2 -m golden.torch fit ...",
    )
    fit.add_argument("run", help=f"a YAML file, or a bundled run: {', '.join(example_names())}")
    begin = fit.add_mutually_exclusive_group()
    begin.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    begin.add_argument("--restart", action="store_true", help="delete log and checkpoints of an earlier run first")
    fit.add_argument("--steps", type=int, metavar="N", help="steps of the whole run, instead of loop.max_steps")
    fit.add_argument("--model-dir", metavar="FOLDER", help="folder of the run, instead of model_dir")
    fit.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value, as trainer.init.precision.precision_opt_level=2; may be repeated",
    )
    fit.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of PyTorch's own operations (1: small models gain nothing from more); exact products have theirs",
    )
    fit.add_argument("--no-progress", action="store_true", help="show no progress bar")
    commands.add_parser("examples", help="list the bundled runs")
    return parser


def _document(given: argparse.Namespace) -> dict[str, Any]:
    """Read the file and put in what the command line says otherwise."""
    document = read_yaml(find_run_file(given.run))
    changes = [each.partition("=") for each in given.set]
    if given.steps is not None:
        changes.append(("trainer.init.loop.max_steps", "=", str(given.steps)))
    if given.model_dir is not None:
        changes.append(("trainer.init.model_dir", "=", given.model_dir))
    for place, equals, text in changes:
        if not equals:
            raise ValueError(f"--set: got {place!r}, must be KEY=VALUE")
        *sections, key = place.split(".")
        section = document
        for name in sections:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise ValueError(f"--set: got {place}, must be a key within sections; {name} is a value")
        try:
            section[key] = yaml_value(text)
        except ValueError as error:
            raise ValueError(f"--set: got {place}={text}, whose value {error}") from None
    return document


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - data sets of others may use the global generator


def _loaders(task: Task, batch_size: int, seed: int) -> tuple[DataLoader[Any], DataLoader[Any]]:
    parallel = world_size() > 1
    sampler = DistributedSampler[Any](task.train, seed=seed) if parallel else None
    train = DataLoader(task.train, batch_size, shuffle=not parallel, sampler=sampler, drop_last=True)
    return train, DataLoader(task.validation, 256)


def _fit(given: argparse.Namespace, console: Console) -> None:
    if given.threads < 1:
        raise ValueError(f"--threads: got {given.threads}, must be at least 1")
    torch.set_num_threads(given.threads)
    document = _document(given)
    settings = parse(RunFile, document).trainer
    init = settings.init
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        precision = precision_from_yaml(document)
    if given.restart and rank() == 0:
        shutil.rmtree(init.model_dir / "checkpoints", ignore_errors=True)
        for name in ("log.csv", "run.yaml"):
            (init.model_dir / name).unlink(missing_ok=True)
    if world_size() > 1:
        dist.barrier()  # no rank looks for checkpoints while the first deletes them
    _seed(init.seed)
    task = init.model.task()
    train, validation = _loaders(task, settings.fit.train_dataloader.batch_size, init.seed)
    trainer = Trainer(
        task.model,
        init.optimizer.build(task.model.parameters()),
        task.loss,
        precision,
        model_dir=init.model_dir,
        checkpoint_steps=init.checkpoint.steps,
        log_steps=init.logging.log_steps,
        progress=not given.no_progress,
    )
    notes = [*_about(task, precision), *task.notes, *(f"warning: {each.message}" for each in caught)]
    if rank() == 0:
        console.print(f"[bold]{init.model.name}[/bold]")
        for note in notes:
            console.print(f"  {note}", soft_wrap=True)
        _keep(document, notes, init.model_dir / "run.yaml", resume=given.resume)
    _seed(init.seed + rank())  # every rank drops out its own units
    started = time.perf_counter()
    losses = trainer.fit(train, steps=init.loop.max_steps, resume=given.resume)
    seconds = time.perf_counter() - started
    result = trainer.evaluate(validation, task.measure)
    if rank() == 0:
        last = f", mean loss of the last {len(losses[-20:])} steps {np.mean(losses[-20:]):.4f}" if losses else ""
        skipped, scale = trainer.scaler.get_num_skipped_steps(), scale_text(trainer.scaler.get_scale())
        console.print(f"  {trainer.step} steps in {seconds:.1f} s{last}")
        console.print(f"  loss scale {scale}, {skipped} steps skipped")
        console.print(f"  [bold]{task.measure_name} on the validation data: {result:.4f}[/bold]")
        console.print(f"  log and checkpoints: {init.model_dir}", soft_wrap=True)


def _keep(document: dict[str, Any], notes: list[str], path: Path, resume: bool) -> None:
    """Write what a run was started with, once."""
    if resume or path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"# {note}\n" for note in notes) + yaml.safe_dump(document, sort_keys=False)
    path.write_text(text, encoding="utf-8")


def _about(task: Task, precision: MixedPrecision) -> list[str]:
    parameters = sum(each.numel() for each in task.model.parameters())
    if precision.enabled:
        scaling = precision.loss_scaling_factor if precision.scales_loss else "none"
        numbers = f"{precision.fp16_type} at level {precision.precision_opt_level}, loss scaling {scaling}"
    else:
        numbers = "fp32 of PyTorch"
    info = golden.kernel_info()
    versions = f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}"
    return [
        f"{parameters:,} parameters, {len(task.train):,} training examples, {numbers}",  # type: ignore[arg-type]
        f"products by {info['path']}, {info['threads']} threads, {world_size()} ranks; {versions}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments`, those of the process unless given; return the exit status.

    Raises
    ------
    SystemExit
        With status 2 and a message on bad input, with status 0 after ``--help``.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command == "examples":
        print("\n".join(example_names()))
        return 0
    console = Console(highlight=False)
    parallel = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if parallel:
        dist.init_process_group("gloo")
    try:
        _fit(given, console)
    except (FileNotFoundError, FileExistsError, TypeError, ValueError) as error:
        parser.error(str(error))
    finally:
        if parallel:
            dist.destroy_process_group()
    return 0
