"""Checks that several parts share: of arguments, folders and outputs of models. Errors name the argument."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from golden.reduction import LEVELS

__all__ = [
    "check_count",
    "check_flags",
    "check_is",
    "check_items",
    "check_mapping",
    "check_name",
    "checked_level",
    "length_of",
    "loss_of",
    "make_folder",
    "naming",
    "outputs_of",
    "unknown_key",
]


def check_flags(**given: object) -> None:
    """Raise TypeError for the first argument that is neither True nor False."""
    for argument, value in given.items():
        if not isinstance(value, bool):
            raise TypeError(f"{argument}: got {value!r}, must be True or False")


def check_items(given: object, argument: str, kind: str) -> list[Any]:
    """Return the items of an argument as a list; TypeError for a single object or text."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | type):
        raise TypeError(f"{argument}: got {given!r}, must be a list of {kind}")
    try:
        return list(given)
    except (TypeError, RuntimeError, NotImplementedError):  # an array or a tensor without axes or values
        raise TypeError(f"{argument}: got {given!r}, must be a list of {kind}") from None


def check_mapping(given: object, argument: str, kind: str) -> dict[str, Any]:
    """Return a copy of a mapping by names; TypeError if it is none."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{argument}: got {given!r}, must be a mapping of {kind}")
    return dict(given)


def check_name(given: object, argument: str = "name") -> str | None:
    """Return a name or None; TypeError if it is anything else."""
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, must be a string or None")
    return given


@contextmanager
def naming(arguments: str) -> Iterator[None]:
    """Begin what PyTorch says of arguments that it has under other names with the names that they have here."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        raise type(error)(f"{arguments}: {error}") from None
    except OverflowError as error:
        raise ValueError(f"{arguments}: {error}") from None


def checked_level(level: object, argument: str) -> int:
    """Return a precision optimization level, or raise an error that names the fault."""
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"{argument}: got {level!r}, must be 0, 1 or 2")
    if level not in LEVELS:
        raise ValueError(
            f"{argument}: got {level}, must be 0 (fp32), 1 (16 bits in a chunk, fp32 across) or 2 (16 bits)"
        )
    return level


def unknown_key(place: str, key: object, known: Collection[str]) -> str:
    """Return the message for a key that means nothing: with the nearest known one, or else all of them."""
    near = difflib.get_close_matches(str(key), known, n=1)
    meant = f"; did you mean {near[0]}?" if near else f", must be one of {', '.join(sorted(known))}"
    return f"{place}.{key}: is not a known key{meant}"


def check_count(given: Any, argument: str, least: int = 1, most: int | None = None) -> int:
    """Return a number of steps, classes and so on, or raise an error that names the fault."""
    if not isinstance(given, int) or isinstance(given, bool):
        to = "" if most is None else f" to {most}"
        raise TypeError(f"{argument}: got {given!r}, must be an int from {least}{to}")
    if given < least or (most is not None and given > most):
        must = f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"{argument}: got {given}, must be {must}")
    return given


def check_is(given: Any, kind: type, argument: str) -> None:
    """Raise an error unless `given` is None or an object of this kind."""
    if given is not None and not isinstance(given, kind):
        raise TypeError(f"{argument}: got {given!r}, must be a {kind.__name__} or None")


def length_of(given: Any) -> int | None:
    """Return a length, None if there is none (a generator, a data loader of a stream)."""
    try:
        return len(given)
    except TypeError:
        return None


def make_folder(folder: Path, argument: str) -> None:
    """Make a folder and those above it; the error, of the kind that the system raised, names the argument."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"{argument}: got {folder}, where nothing can be written: {error.strerror}") from None


def outputs_of(result: Any) -> dict[str, Any]:
    """Return the output of a model as a dictionary; it may be a loss, a pair of loss and outputs, or a dictionary."""
    if isinstance(result, Tensor):
        return {"loss": result} if result.numel() == 1 else {"output": result}
    if isinstance(result, dict):
        return result
    if isinstance(result, (list, tuple)) and result:
        return {"loss": result[0], "logits": result[1] if len(result) == 2 else result[1:]}
    return {"output": result}


def loss_of(outputs: dict[str, Any]) -> Tensor:
    """Return the loss among the outputs of a model, or raise ValueError unless it is a tensor of one element."""
    loss = outputs.get("loss", outputs.get("output"))
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        raise ValueError(f"loss: got {got}, must be a tensor of one element")
    return loss
