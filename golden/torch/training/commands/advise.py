"""The command ``advise``: find the levels for the model and the data of a run file."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import Tensor

from golden.torch.amp.yaml_configuration import yaml_value
from golden.torch.common.arguments import loss_of, outputs_of
from golden.torch.common.processes import world_size
from golden.torch.instruments.advise.measuring import loss_function
from golden.torch.instruments.advise.search import Search
from golden.torch.training.commands.run import Run, built
from golden.torch.training.run_parts import data_from

__all__ = ["add_advise", "advise"]


def add_advise(commands: Any, add_common: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command to a parser."""
    command = commands.add_parser(
        "advise",
        help="find the cheapest level of each layer within a budget of error",
        description="Find the cheapest precision level of each layer, forward and backward, that keeps loss and "
        "gradient within a budget, and with --formats its format; fit takes the file that it writes with --levels.",
    )
    add_common(command)
    command.add_argument(
        "--budget",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="largest change of loss and gradient against level 0, with --formats against fp32 (0.01: one hundredth)",
    )
    command.add_argument(
        "--batches", type=int, default=1, metavar="N", help="batches of the training data to measure on (1)"
    )
    command.add_argument(
        "--checkpoint", metavar="CHECKPOINT", help="take the weights of this checkpoint, a folder step_..."
    )
    command.add_argument(
        "--layers", action="append", metavar="PATTERN", help="choose for these layers alone; may be repeated"
    )
    command.add_argument("--chunks", metavar="LIST", help="chunk lengths to choose from, such as 16,32,64")
    command.add_argument(
        "--formats", metavar="LIST", help="formats to choose from as well, such as cbfloat16,float8_e4m3fn"
    )
    command.add_argument(
        "--costs",
        metavar="MAPPING",
        help="products per cycle by level, such as '{0: 2.0, 1: 3.76, 2: 3.88}', or by format and level",
    )
    command.add_argument(
        "--trials", type=int, default=8, metavar="N", help="combinations that may be run after the first (8)"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="write the level map to this file")


def advise(given: argparse.Namespace, document: dict[str, Any], console: Console) -> None:
    """Search, show the table, write the level map."""
    if given.batches < 1:
        raise ValueError(f"--batches: got {given.batches}, must be at least 1")
    if world_size() > 1:
        raise ValueError("advise: got several processes, must be one")
    if given.output is not None and Path(given.output).is_dir():
        raise _unfit(given.output or "''", "it is a folder")
    if given.output is not None and not Path(given.output).absolute().parent.is_dir():
        raise _unfit(given.output, "its folder does not exist")
    chunks = None if given.chunks is None else _chunks(given.chunks)
    costs = None if given.costs is None else _costs(given.costs)
    run = built(given, document)
    if given.checkpoint is not None:
        run.trainer.load_weights(given.checkpoint)
    console.print(f"[bold]{run.init.model.name}[/bold]")
    for note in run.notes:
        console.print(f"  {note}", soft_wrap=True)
    section, where = run.settings.trainer.fit.train_dataloader, "trainer.fit.train_dataloader"
    loader = data_from(section, run.parts.task, where, run.init.seed, train=True)
    batches = list(itertools.islice(loader, given.batches))
    if not batches:
        raise ValueError(f"{where}: it gives no batch, must give at least one")
    found = Search(
        run.trainer.model,
        batches,
        _loss(run),
        budget=given.budget,
        precision=run.trainer.precision,
        chunks=chunks,
        layers=given.layers,
        costs=costs,
        formats=None if given.formats is None else given.formats.split(","),
        trials=given.trials,
        show=not given.no_progress,
    ).run()
    if given.no_progress:
        console.print(found.table())
        for line in found.lines():
            console.print(line, soft_wrap=True)
    if given.output is not None:
        try:
            Path(given.output).write_text(found.yaml(), encoding="utf-8")
        except OSError as error:
            console.print(found.yaml(), soft_wrap=True)
            raise _unfit(given.output, f"{error.strerror}; the level map stands above") from None
        console.print(f"level map: {given.output}; fit takes it with --levels {given.output}", soft_wrap=True)


def _unfit(output: str, reason: str) -> ValueError:
    return ValueError(f"--output: got {output}, which cannot be written: {reason}")


def _loss(run: Run) -> Callable[[Any], Tensor]:
    model = run.trainer.model
    if run.parts.loss is not None:
        return loss_function(model, run.parts.loss)
    return lambda batch: loss_of(outputs_of(model(batch)))


def _chunks(text: str) -> list[int]:
    try:
        found = [int(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise ValueError(f"--chunks: got {text!r}, must be whole numbers from 1 with commas between them")
    return found


def _costs(text: str) -> Any:
    try:
        return yaml_value(text)
    except ValueError as error:
        raise ValueError(f"--costs: got {text!r}, which {error}") from None
