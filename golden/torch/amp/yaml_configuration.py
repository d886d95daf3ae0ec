"""The precision of a training run from a YAML file of the documents, in its newer form or its older one.

Newer, ``trainer.init.precision`` has the keys of `MixedPrecision`. Older, they are spread over three sections::

    runconfig: {precision_opt_level: 1}
    model: {mixed_precision: true, fp16_type: cbfloat16}
    optimizer: {loss_scaling_factor: dynamic, max_gradient_norm: 1.0}
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from golden.torch.amp.configuration import MixedPrecision
from golden.torch.common.arguments import unknown_key

__all__ = ["OLDER_PRECISION", "precision_from_yaml", "read_yaml", "yaml_value"]

#: Aliases let a few lines stand for more than any memory holds.
_MOST_VALUES, _DEEPEST = 10**6, 100
_KEYS = tuple(field.name for field in dataclasses.fields(MixedPrecision))
# Section and key of the older form, with the name of today.
OLDER_PRECISION = {
    "runconfig": {"precision_opt_level": "precision_opt_level"},
    "model": {"mixed_precision": "enabled", "fp16_type": "fp16_type"},
    "optimizer": {
        name: name
        for name in (
            "loss_scaling_factor",
            "initial_loss_scale",
            "steps_per_increase",
            "min_loss_scale",
            "max_loss_scale",
            "max_gradient_norm",
            "max_gradient_value",
            "log_loss_scale",
        )
    },
}


class _Loader(yaml.SafeLoader):
    """YAML with the numbers of version 1.2, where 1e-3 is one, and without repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping; a key that stands there twice is an error."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} cannot be a key", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands here twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def yaml_value(text: str) -> Any:
    """Read a text as YAML, with the numbers of version 1.2.

    Raises
    ------
    ValueError
        If it is no YAML, where the message names line and column, or has more levels or values than a run file needs.
    """
    try:
        value = yaml.load(text, Loader=_Loader)
        count, depth = _extent(value, {})
    except RecursionError:
        raise ValueError(f"is nested too deeply, must have at most {_DEEPEST} levels") from None
    except yaml.MarkedYAMLError as error:
        what = ": ".join(each for each in (error.context, error.problem) if each)
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f", in line {mark.line + 1}, column {mark.column + 1}"
        raise ValueError(f"is not YAML: {what}{place}") from None
    except (yaml.YAMLError, ValueError) as error:  # of characters, or of a date that is none
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from None
    if depth > _DEEPEST:
        raise ValueError(f"is nested too deeply, must have at most {_DEEPEST} levels; an alias must not contain itself")
    if count > _MOST_VALUES:
        raise ValueError(f"has too many values, must have at most {_MOST_VALUES}, each alias counts as its values")
    return value


def _extent(value: Any, known: dict[int, tuple[float, float]]) -> tuple[float, float]:
    """Return how many values there are in a value, and how deep: both infinite if it contains itself."""
    if not isinstance(value, dict | list | set | tuple):
        return 1, 0
    if id(value) not in known:
        known[id(value)] = math.inf, math.inf
        inner = [_extent(each, known) for each in (value.values() if isinstance(value, dict) else value)]
        known[id(value)] = 1 + sum(count for count, _ in inner), 1 + max((depth for _, depth in inner), default=0)
    return known[id(value)]


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file whose top is a mapping.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no YAML, or no mapping; the message names line and column.
    """
    try:
        document = yaml_value(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not text in UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path}: got {document!r} at its top, must be a mapping of keys to values")
    return document


def precision_from_yaml(source: str | Path | Mapping[str, Any]) -> MixedPrecision:
    """Read the precision of a run.

    Parameters
    ----------
    source : path or mapping
        A YAML file, or what was read from one. Its other sections are left alone.

    Returns
    -------
    MixedPrecision
        Keys that are missing have the defaults of `MixedPrecision`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TypeError, ValueError
        If a key is unknown or a value wrong, if both forms are used, or neither. In the older form, whose sections hold
        other things too, an unknown key is one that looks like a misspelt one.
    """
    if not isinstance(source, str | Path | Mapping):
        raise TypeError(f"source: got {source!r}, must be a path or a mapping")
    if "\0" in str(source):
        raise ValueError(f"source: got {source!r}, must be a path or a mapping")
    document = source if isinstance(source, Mapping) else read_yaml(source)
    newer = _section(_section(document, "trainer", ""), "init", "trainer.")
    older = {name: _section(document, name, "") for name in OLDER_PRECISION}
    used = [name for name, section in older.items() if section.keys() & OLDER_PRECISION[name].keys()]
    if "precision" in newer and used:
        raise ValueError(f"{used[0]}: has keys of the precision beside trainer.init.precision, must be in one place")
    if "precision" in newer:
        section = _section(newer, "precision", "trainer.init.")
        for key in section:
            if key not in _KEYS:
                raise ValueError(unknown_key("trainer.init.precision", key, _KEYS))
        return _built(section, {key: f"trainer.init.precision.{key}" for key in _KEYS})
    given: dict[str, Any] = {}
    for name, section in older.items():
        for key, value in section.items():
            if key in OLDER_PRECISION[name]:
                given[OLDER_PRECISION[name][key]] = value
            elif difflib.get_close_matches(str(key), OLDER_PRECISION[name], n=1, cutoff=0.85):
                raise ValueError(unknown_key(name, key, OLDER_PRECISION[name]))
    if not given:
        raise ValueError("trainer.init.precision: is missing, must be given (or the keys of the older form)")
    places = {today: f"{name}.{key}" for name, keys in OLDER_PRECISION.items() for key, today in keys.items()}
    return _built(given, places)


def _section(parent: Mapping[str, Any], name: str, above: str) -> Mapping[str, Any]:
    section = parent.get(name)
    if section is not None and not isinstance(section, Mapping):
        raise ValueError(f"{above}{name}: got {section!r}, must be a mapping of keys to values")
    return section or {}


def _built(given: Mapping[str, Any], places: Mapping[str, str]) -> MixedPrecision:
    """Build the configuration; an error names the place in the file."""
    try:
        return MixedPrecision(**given)
    except (TypeError, ValueError) as error:
        name, _, rest = str(error).partition(":")
        raise type(error)(f"{places.get(name, name)}:{rest}") from None
