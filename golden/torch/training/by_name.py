"""Objects of a run file by name: classes of PyTorch and of this package, or anything by its path ``module:Class``."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import BaseModel

from golden.nearest import did_you_mean
from golden.torch.common.arguments import unknown_key

__all__ = ["build", "find", "fits", "is_import_path", "parameters_of", "single"]

_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_WHOLE = ("config", "params")  # how a class of the Model Zoo calls its one parameter


class _Config(dict[str, Any]):
    """Settings as a mapping whose keys can be read as attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name}: is not among the settings {', '.join(self)}") from None


def is_import_path(name: str) -> bool:
    """Return whether a name is an import path, ``module:Class``."""
    return ":" in name


def find(name: Any, places: Sequence[ModuleType | Mapping[str, type]], where: str) -> list[Callable[..., Any]]:
    """Return the classes that some modules offer under this name, or the target of an import path.

    Parameters
    ----------
    name : str
        The name, as a file has it.
    places : sequence of modules or mappings
        Where to look for a name without a colon; all that is found is returned. A module offers the classes of its
        ``__all__``, or those defined in it and below it; not what it merely imports. A mapping has classes by names.
    where : str
        Its place in the file, for errors.

    Raises
    ------
    ValueError
        If there is no such thing; the message names the nearest.
    """
    if not isinstance(name, str):
        raise ValueError(f"{where}: got {name!r}, must be a name or an import path module:Class")
    if is_import_path(name):
        module_name, _, attribute = name.partition(":")
        try:
            module = importlib.import_module(module_name)
        except (ImportError, ValueError) as error:
            raise ValueError(
                f"{where}: got {name!r}, whose module {module_name!r} cannot be imported: {error}"
            ) from None
        found = getattr(module, attribute, None)
        if not callable(found):
            meant = did_you_mean(attribute, vars(module))
            raise ValueError(f"{where}: got {name!r}, but {module_name} has no class or function {attribute!r}{meant}")
        return [found]
    offered = [_classes(place) for place in places]
    matches = [classes[name] for classes in offered if name in classes]
    if not matches:
        known = set().union(*offered)
        raise ValueError(f"{unknown_key(where, name, known)} (an import path has a colon, as module:Class)")
    return list(dict.fromkeys(matches))


def single(given: Any, where: str) -> tuple[Any, dict[str, Any]]:
    """Return name and settings of an entry ``Name: {setting: value}``."""
    if isinstance(given, str):
        return given, {}
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(f"{where}: got {given!r}, must be one name with its settings under it")
    ((name, settings),) = given.items()
    if settings is None or settings is True:
        settings = {}
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}.{name}: got {settings!r}, must be a mapping of settings to values")
    return name, dict(settings)


def parameters_of(target: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or a function by their names.

    A class that hands all of them on to its base has the parameters of the base, under its own names for them (see
    `golden.torch.optim.lr_scheduler`).
    """
    found = dict(inspect.signature(target).parameters)
    if inspect.isclass(target) and all(each.kind in _ANY for each in found.values()):
        own_names = {its: name for name, its in getattr(target, "renamed", {}).items()}
        for base in target.__mro__:
            of_base = list(inspect.signature(vars(base).get("__init__", target)).parameters.items())[1:]
            if any(each.kind not in _ANY for _, each in of_base):
                return {own_names.get(name, name): each for name, each in of_base}
    return found


def build(targets: Sequence[Callable[..., Any]], settings: Mapping[str, Any], where: str, *given: Any) -> Any:
    """Call the first of some classes or functions that takes these settings.

    Parameters
    ----------
    targets : sequence of callables
        The candidates. One whose only required parameter is called ``config`` or ``params`` gets all settings in one
        mapping, as the classes of the Model Zoo do.
    settings : mapping
        Its arguments by their names.
    where : str
        The place in the file, for errors.
    *given : object
        Arguments before the settings.

    Raises
    ------
    ValueError
        If a setting is unknown, missing or refused; the message names its place.
    """
    problems = []
    for target in targets:
        known, required, takes_all = _arguments(target, len(given))
        if _takes_all_in_one(required, settings):
            return _called(target, where, *given, _as_config(target, required[0], settings))
        unknown = [] if takes_all else [name for name in settings if name not in known]
        missing = [name for name in required if name not in settings]
        if not unknown and not missing:
            return _called(target, where, *given, **settings)
        text = unknown_key(where, unknown[0], known) if unknown else f"{where}.{missing[0]}: is missing, must be given"
        is_far = bool(unknown) and not difflib.get_close_matches(unknown[0], known)
        problems.append((len(unknown), is_far, len(missing), text))
    raise ValueError(min(problems)[-1])  # of the one that is nearest


def fits(target: Callable[..., Any], settings: Mapping[str, Any], given: int) -> bool:
    """Return whether `build` would call this class or function, with a number of arguments before the settings."""
    known, required, takes_all = _arguments(target, given)
    return _takes_all_in_one(required, settings) or (
        (takes_all or settings.keys() <= set(known)) and settings.keys() >= set(required)
    )


def _arguments(target: Callable[..., Any], given: int) -> tuple[list[str], list[str], bool]:
    """Return the parameters that may be set, those that must be, and whether any other may be, too."""
    parameters = list(parameters_of(target).items())[given:]
    known = [name for name, each in parameters if each.kind not in _ANY]
    required = [name for name, each in parameters if name in known and each.default is inspect.Parameter.empty]
    return known, required, any(each.kind is each.VAR_KEYWORD for _, each in parameters)


def _takes_all_in_one(required: Sequence[str], settings: Mapping[str, Any]) -> bool:
    return len(required) == 1 and required[0] in _WHOLE and required[0] not in settings


def _as_config(target: Callable[..., Any], name: str, settings: Mapping[str, Any]) -> Any:
    """Return settings in one: the model of pydantic that a class asks for, or a mapping."""
    function = target.__init__ if inspect.isclass(target) else target
    try:
        wanted = get_type_hints(function).get(name)
    except (NameError, TypeError):  # an annotation that cannot be read
        wanted = None
    if inspect.isclass(wanted) and issubclass(wanted, BaseModel):
        return wanted(**settings)
    return _Config(settings)


def _called(target: Callable[..., Any], where: str, *arguments: Any, **settings: Any) -> Any:
    try:
        return target(*arguments, **settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {getattr(target, '__name__', target)} refuses its settings: {error}") from error


def _classes(place: ModuleType | Mapping[str, type]) -> Mapping[str, type]:
    """Return the classes that a module or a mapping offers."""
    if isinstance(place, Mapping):
        return place
    listed = getattr(place, "__all__", None)
    names = [name for name in vars(place) if not name.startswith("_")] if listed is None else listed
    classes = {name: getattr(place, name) for name in names if inspect.isclass(getattr(place, name))}
    if listed is None:
        below = f"{place.__name__}."
        classes = {name: each for name, each in classes.items() if f"{each.__module__}.".startswith(below)}
    return classes
