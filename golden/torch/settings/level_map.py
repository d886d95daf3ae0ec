"""Level maps: precision levels of the modules of a model by patterns of their paths, such as ``blocks.*.mlp``.

A rule is in force while a module that its pattern matches runs forward, like a `golden.torch.pol` around that module,
so it also reaches the modules and functions that the module calls. The parts of a path, between its dots, match as file
names do (``*``, ``?``, ``[0-3]``); ``**`` stands for any number of parts.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import EllipsisType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import nn

from golden.formats import CBFLOAT16, FloatFormat
from golden.reduction import Reduction
from golden.torch.common.arguments import checked_level
from golden.torch.settings.half_type import HalfType, half_named
from golden.torch.settings.plan import at_level

__all__ = ["LayerSettings", "LevelMap"]

_PASSES = ("fwd", "bwd")
_KEYS = ("level", "fwd", "bwd", "chunk", "half", "inner", "reduction")
#: Names that wrappers put into the paths of the modules within them.
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
_NEAR = 3  # similar names in an error


class LayerSettings(NamedTuple):
    """The settings of a rule while its modules run; None, or ``...`` for the chunk, keeps the surrounding setting."""

    fwd: int | None = None
    bwd: int | None = None
    chunk: int | EllipsisType | None = ...
    half: HalfType | None = None


Table = dict[int, tuple[LayerSettings, ...]]


@dataclass(frozen=True, eq=False)
class LevelMap:
    """A checked level map."""

    #: Pattern and settings of each rule, the least specific first.
    rules: tuple[tuple[str, LayerSettings], ...]
    #: The mapping it was made from, in types that YAML and JSON have.
    document: dict[str, Any]
    #: Tables of models, each with the paths that it was made for.
    _tables: WeakKeyDictionary[nn.Module, tuple[list[tuple[str, int]], Table]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    def __reduce__(self) -> tuple[Any, ...]:  # without the tables, in copies of modules, too
        return LevelMap, (self.rules, self.document)

    @classmethod
    def of(cls, given: object, argument: str = "levels") -> LevelMap:
        """Check a mapping of patterns to levels.

        Parameters
        ----------
        given : mapping
            From a pattern to a level, 0 to 2, of both passes; or to a mapping with one or more of the keys ``level``,
            ``fwd``, ``bwd`` (levels), ``chunk``, ``half`` and ``inner``, as of `golden.torch.precision`; ``half`` may
            be a mapping with a format for ``fwd`` and one for ``bwd``. Or with ``reduction`` alone, the line of one
            that a level stands for.
        argument : str
            Its name in errors.

        Raises
        ------
        TypeError, ValueError
            If it is no such mapping.
        """
        if isinstance(given, LevelMap):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"{argument}: got {given!r}, must be a mapping such as {{'blocks.*.mlp': 2, 'head': 0}}")
        rules, document = {}, {}
        for key, value in given.items():
            pattern = _pattern(key, argument)
            if pattern in rules:
                raise ValueError(f"{argument}: got {pattern!r} twice, must occur once")
            rules[pattern] = _settings(value, pattern, argument)
            document[pattern] = _document(value)
        ordered = sorted(rules.items(), key=lambda rule: _specificity(rule[0]))
        return cls(tuple(ordered), document)

    def table(self, model: nn.Module, argument: str = "levels") -> Table:
        """Return the settings of every module that a rule matches, the most specific last, by its `id`.

        Raises
        ------
        ValueError
            If a rule matches no module.
        """
        paths = _paths(model)
        known = self._tables.get(model)
        if known is not None and known[0] == paths:
            return known[1]
        table: Table = {}
        for pattern, settings in self.rules:
            parts = pattern.split(".")
            matched = {module for path, module in paths if _matches(parts, path.split("."))}
            if not matched:
                raise ValueError(_no_match(pattern, model, [path for path, _ in paths], argument))
            for module in matched:
                table[module] = (*table.get(module, ()), settings)
        self._tables[model] = paths, table
        return table

    def concerns(self, model: nn.Module) -> bool:
        """Return whether a module may be the model that the map is of: it has parameters, or a rule matches in it."""
        if next(model.parameters(), None) is not None:
            return True
        paths = _paths(model)
        return any(_matches(pattern.split("."), path.split(".")) for pattern, _ in self.rules for path, _ in paths)


def _pattern(key: object, argument: str) -> str:
    if isinstance(key, int) and not isinstance(key, bool) and key >= 0:
        return str(key)  # YAML reads the path 0 as a number
    if not isinstance(key, str):
        raise TypeError(f"{argument}: got {key!r} as a pattern, must be a string such as 'blocks.*.mlp', in quotes")
    if not all(key.split(".")):
        raise ValueError(f"{argument}: got {key!r} as a pattern, must be parts of a path with dots between them")
    return key


def _settings(value: object, pattern: str, argument: str) -> LayerSettings:
    where = f"{argument}: {pattern!r}"
    if not isinstance(value, Mapping):
        level = _level(value, where)
        return LayerSettings(level, level)
    for key in value:
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, n=1)
            meant = f"did you mean {near[0]}?" if near else f"must be {', '.join(_KEYS[:-1])} or {_KEYS[-1]}"
            raise ValueError(f"{where} has the unknown key {key!r}, {meant}")
    if not value:
        raise ValueError(f"{where} sets nothing, must have one of {', '.join(_KEYS)}")
    if "reduction" in value:
        if len(value) > 1:
            raise ValueError(f"{where} has {', '.join(map(repr, value))}, must have reduction alone: it says all of it")
        return _of_line(value["reduction"], where)
    both = value.get("level")
    levels = (value.get("fwd", both), value.get("bwd", both))
    if "half" not in value and "inner" in value:
        raise ValueError(f"{where} has inner without half, must have both, as half: float8_e4m3fn")
    half: HalfType | None = None
    chunk: int | EllipsisType | None = ...
    try:
        if "half" in value:
            half = _half(value["half"], value.get("inner"))
        if "chunk" in value:
            chunk = Reduction.for_level(1, half.format if half else CBFLOAT16, chunk=value["chunk"]).chunk
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None
    fwd, bwd = (None if each is None else _level(each, where) for each in levels)
    return LayerSettings(fwd, bwd, chunk, half)


def _of_line(line: Any, where: str) -> LayerSettings:
    try:
        reduction = Reduction.parse(line)
        half, level, chunk = at_level(reduction, None)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{where}: reduction: {str(error).removeprefix('text: ').removeprefix('reduction: ')}"
        ) from None
    if reduction.accumulator is not None or not reduction.is_nearest_even:
        raise ValueError(f"{where}: reduction: got {reduction}, must be without modes and accumulator: see precision")
    return LayerSettings(level, level, chunk, half)


def _half(given: Any, inner: Any) -> HalfType:
    """Return the half type of a name, or of a mapping with a name for each pass; `inner` is of the narrow formats."""
    if not isinstance(given, Mapping):
        return half_named(given, inner=inner, argument="half")
    if set(given) != set(_PASSES):
        raise ValueError(f"half: got {dict(given)!r}, must be a format, or a mapping with one for fwd and one for bwd")
    halves = {run: half_named(given[run], argument=f"half: {run}") for run in _PASSES}
    narrow = [run for run in _PASSES if halves[run].operand is not None]
    if inner is not None:
        for run in narrow or _PASSES[:1]:  # without a narrow one, the error says so
            halves[run] = half_named(given[run], inner=inner, argument="half")
    forward, backward = halves["fwd"], halves["bwd"]
    return forward if backward == forward else replace(forward, backward=backward)


def _level(given: object, where: str) -> int:
    try:
        return checked_level(given, "level")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from None


def _document(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return int(value)
    return {key: _name(each) for key, each in value.items()}


def _name(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {run: _name(value[run]) for run in _PASSES}
    if isinstance(value, FloatFormat | HalfType):
        return value.name
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else value


def _specificity(pattern: str) -> tuple[bool, int, int]:
    """Order patterns: one with ``**`` before others, then by parts and by characters that are not wildcards."""
    parts = pattern.split(".")
    literal = [part for part in parts if not set("*?[") & set(part)]
    return "**" not in parts, len(literal), sum(len(part.replace("*", "").replace("?", "")) for part in parts)


def _matches(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(pattern[1:], path[start:]) for start in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(pattern[1:], path[1:])


def _paths(model: nn.Module) -> list[tuple[str, int]]:
    """Return the paths of the modules in a model, one of several paths included, with their `id`."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        model = model.module
    paths: list[tuple[str, int]] = []
    hidden: str | None = None
    for name, module in model.named_modules(remove_duplicate=False):
        path = ".".join(part for part in name.split(".") if part not in _WRAPPERS)
        if path and not (hidden is not None and name.startswith(hidden)):
            paths.append((path, id(module)))
        if type(module).forward is nn.MultiheadAttention.forward:
            hidden = f"{name}." if name else ""  # it reads their weights, and never runs them
    return paths


def _no_match(pattern: str, model: nn.Module, paths: list[str], argument: str) -> str:
    general = {".".join("*" if part.isdecimal() else part for part in path.split(".")) for path in paths}
    near = difflib.get_close_matches(pattern, [*sorted(general), *paths], n=_NEAR)
    if near:
        told = f"near are {', '.join(map(repr, dict.fromkeys(near)))}"
    elif paths:
        top = dict.fromkeys(path.partition(".")[0] for path in paths)
        told = f"at its top are {', '.join(map(repr, top))}"
    else:
        told = "it has none"
    return (
        f"{argument}: {pattern!r} matches no module of {type(model).__name__}, {told}; a path begins within the model "
        f"that is called, or that model= names"
    )
