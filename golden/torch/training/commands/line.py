"""The command line of the training layer: train, validate, report on a run, or advise on the levels of a model."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TextIO

import torch
import torch.distributed as dist
from rich.console import Console

import golden
from golden.arrays.backends import as_backend
from golden.torch.training.commands.advise import add_advise, advise
from golden.torch.training.commands.report import add_report, report
from golden.torch.training.commands.run import fit, read_document, validate
from golden.torch.training.interruption import RunStopped
from golden.torch.training.older_form import is_older, older_place
from golden.torch.training.run_file import about_example, example_names

__all__ = ["main"]

# Words of errors for a caller from Python -> words of the command line.
_OPTIONS = {
    "pass resume=True to go on with it": "pass --resume to go on with it, or --restart to delete it",
    "pass resume=": "pass --resume-from ",
    "pass override=True": "pass --override",
    "within the model that is called, or that model= names": "within the model",
    "or choose another folder, or delete this one": "or choose another folder with --model-dir",
}
_PLACES = {
    "resume": "--resume",
    "override": "--override",
    "ckpt_path": "--resume-from",
    "model_dir": "--model-dir",
    "train_dataloader": "trainer.fit.train_dataloader",
    "val_dataloader": "trainer.fit.val_dataloader",
    "backend": "trainer.init.backend",
    "device": "trainer.init.device",
    "loss": "trainer.init.model",
    "loop.max_steps": "trainer.init.loop.max_steps",
    "loop.num_epochs": "trainer.init.loop.num_epochs",
    "levels": "trainer.init.precision.levels",
    "precision": "trainer.init.precision",
    "budget": "--budget",
    "batches": "--batches",
    "formats": "--formats",
    "layers": "--layers",
    "chunks": "--chunks",
    "costs": "--costs",
    "trials": "--trials",
    "steps": "--steps",
}
# Words about a checkpoint for commands that take only its weights.
_WEIGHTS_ONLY = {
    "--resume-from": "--checkpoint",
    "--resume:": "--checkpoint:",
    "must be one to resume from": "must be one: train first, or name the folder of a run with --model-dir",
    "to go on from there": "to take that one",
    "to resume from the checkpoint before it": "to take the checkpoint before it",
}
_STOPPED = {
    "fit": "nothing is saved beyond the checkpoints that are there",
    "validate": "nothing was measured to the end",
    "report": "no page is written",
    "advise": "no level map is written",
}
_ACTIONS = {"fit": fit, "validate": validate, "advise": advise}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m golden.torch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="{fit,validate,report,advise,examples}")
    training = commands.add_parser(
        "fit",
        help="train a model",
        description="Train a model. On several processes: torchrun --nproc-per-node 2 -m golden.torch fit ...",
    )
    _add_common(training)
    begin = training.add_mutually_exclusive_group()
    begin.add_argument("--resume", action="store_true", help="continue from the newest checkpoint")
    begin.add_argument("--resume-from", metavar="CHECKPOINT", help="continue from this checkpoint, a folder step_...")
    begin.add_argument("--restart", action="store_true", help="first delete log and checkpoints of an earlier run")
    training.add_argument(
        "--override", action="store_true", help="resume although settings or data have changed; the new ones are used"
    )
    training.add_argument("--steps", type=int, metavar="N", help="steps of the run, in place of the length in the file")
    validation = commands.add_parser("validate", help="validate a model with the weights of a checkpoint")
    _add_common(validation)
    validation.add_argument(
        "--checkpoint",
        metavar="CHECKPOINT",
        help="the checkpoint, a folder step_...; the newest of the run unless given",
    )
    add_report(commands)
    add_advise(commands, _add_common)
    commands.add_parser("examples", help="list the bundled runs")
    parser.epilog = "\n".join(
        [
            "examples:",
            "  %(prog)s fit digits_mlp --steps 200 --model-dir build/digits    # train",
            "  %(prog)s validate digits_mlp --model-dir build/digits           # measure its newest checkpoint",
            "  %(prog)s fit --help                                             # the options of a command",
        ]
    )
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", help=f"a YAML file, or a bundled run: {', '.join(example_names())}")
    command.add_argument("--model-dir", metavar="FOLDER", help="folder of the run, in place of model_dir")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value, such as trainer.init.precision.precision_opt_level=2; may be repeated",
    )
    command.add_argument(
        "--levels", metavar="FILE", help="take the level map of a file that advise has written, or of one like it"
    )
    command.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of PyTorch's own operations (1: small models gain nothing from more); exact products have theirs",
    )
    command.add_argument(
        "--backend",
        metavar="NAME",
        help=f"what computes exact products: {', '.join(golden.backends())}, or one that another package brings, such "
        "as simulated (hdl.engine); the fastest unless given",
    )
    command.add_argument("--no-progress", action="store_true", help="show no progress bar")


def _in_words_of_the_command_line(message: str) -> str:
    """Return an error with options and places of the file where it names arguments of Python."""
    for python, option in _OPTIONS.items():
        message = message.replace(python, option)
    argument, colon, rest = message.partition(":")
    return _PLACES.get(argument, argument) + colon + rest


def _with_its_folder(error: Exception, folder: str | None) -> str:
    """Return the message of an error, which of the system's own does not say that it is about --model-dir."""
    where = getattr(error, "filename", None)
    if folder is None or where is None or not Path(where).is_relative_to(folder):
        return str(error)
    return f"--model-dir: got {folder}, where nothing can be written: {getattr(error, 'strerror', None)}"


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
    *,
    older: bool = False,
) -> None:
    text = _in_words_of_the_command_line(str(message))
    print(f"warning: {older_place(text) if older else text}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments`, from the process unless given; return the exit status.

    Raises
    ------
    SystemExit
        With status 2 and a message on bad input, with status 0 after ``--help``.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command == "examples":
        names = example_names()
        for name in names:
            print(f"{name:<{max(map(len, names))}}  {about_example(name)}")
        return 0
    try:
        return report(given, parser) if given.command == "report" else _run(given, parser)
    except KeyboardInterrupt:  # in fit before the first step, or for the second time
        print(f"stopped by Ctrl-C at once: {_STOPPED[given.command]}", file=sys.stderr)
        return 130


def _products_by(name: str | None) -> AbstractContextManager[None]:
    """Have a back end of this name compute all products."""
    return nullcontext() if name is None else golden.backend(as_backend(name, "--backend"))


def _run(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run a command that takes a run file; return the exit status."""
    console = Console(highlight=False)
    parallel = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if parallel:
        on_cards = torch.cuda.is_available()
        if on_cards:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_cards else "gloo")
    older = False
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            document = read_document(given)
            older = is_older(document)
            warnings.showwarning = partial(_show_warning, older=older)
            with _products_by(given.backend):
                _ACTIONS[given.command](given, document, console)
    except (OSError, TypeError, ValueError, FloatingPointError, ModuleNotFoundError, NotImplementedError) as error:
        message = _with_its_folder(error, given.model_dir)
        if given.backend is not None and message.startswith("backend: got") and ", but " in message:
            message = f"--{message}"  # which serves no such product
        message = _in_words_of_the_command_line(message)
        if given.command != "fit":  # these take weights only, from --checkpoint
            for training, here in _WEIGHTS_ONLY.items():
                message = message.replace(training, here)
        elif given.resume_from is not None and message.startswith("--resume:"):
            message = message.replace("--resume:", "--resume-from:", 1)
        parser.error(older_place(message) if older else message)
    except RunStopped as stopped:
        return int(stopped.code or 0)
    finally:
        if parallel:
            dist.destroy_process_group()
    return 0
