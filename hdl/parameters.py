"""The parameters of a unit, defined once for its constructor, command line, Verilog header and documents.

A unit's parameters are a dataclass below `Parameters`; each field is annotated with its `hdl.definitions.Definition`::

    registers: Annotated[int, PowerOfTwo("16-bit accumulators", least=2)] = 16
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from hdl.definitions import REQUIRED, Definition

__all__ = ["Parameters", "built_from", "documented"]

Given = ParamSpec("Given")
Checked = TypeVar("Checked")
Unit = TypeVar("Unit")
Documented = TypeVar("Documented", bound=type)


class Parameters:
    """The base class of every unit's parameters, which are checked on construction.

    Subclasses are dataclasses, frozen and keyword-only.
    """

    def __init_subclass__(cls) -> None:
        documented(cls)(cls)

    def __post_init__(self) -> None:
        for name, definition in self.definitions().items():
            object.__setattr__(self, name, definition.check(name, getattr(self, name), self))

    @classmethod
    def definitions(cls) -> Mapping[str, Definition]:
        """Return the definition of every parameter by name; additions of a subclass come first."""
        hints = get_type_hints(cls, include_extras=True)
        fields = [list(inspect.get_annotations(each)) for each in cls.__mro__]
        names = [
            name for at, own in enumerate(fields) for name in own if not any(name in base for base in fields[at + 1 :])
        ]
        return {name: each for name in names for each in get_args(hints[name]) if isinstance(each, Definition)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of every parameter, `hdl.definitions.REQUIRED` for one that must be given."""
        return {name: getattr(cls, name, REQUIRED) for name in cls.definitions()}

    def arguments(self) -> dict[str, Any]:
        """Return the value of every parameter, by its name."""
        return {name: getattr(self, name) for name in self.definitions()}


def built_from(
    parameters: Callable[Given, Checked],
) -> Callable[[Callable[[Unit, Checked], None]], Callable[Concatenate[Unit, Given], None]]:
    """Convert a constructor that takes checked parameters into one with a keyword for each parameter.

    Each parameter becomes an attribute of the unit; ``parameters`` holds all of them.

    Parameters
    ----------
    parameters : class
        A subclass of `Parameters`.
    """

    def decorate(initialise: Callable[[Unit, Checked], None]) -> Callable[Concatenate[Unit, Given], None]:
        @functools.wraps(initialise)
        def __init__(self: Unit, /, *args: Given.args, **given: Given.kwargs) -> None:
            checked: Any = parameters(*args, **given)
            self.parameters = checked  # type: ignore[attr-defined]
            for name, value in checked.arguments().items():
                setattr(self, name, value)
            initialise(self, checked)

        hints, known = get_type_hints(parameters), inspect.signature(parameters).parameters
        shown = [known[name].replace(annotation=hints[name]) for name in known]
        unit, *_ = inspect.signature(initialise).parameters.values()
        __init__.__signature__ = inspect.Signature([unit, *shown])  # type: ignore[attr-defined]
        return __init__

    return decorate


def documented(parameters: type[Parameters]) -> Callable[[Documented], Documented]:
    """Insert the section of parameters into a class's docstring, between its prose and its other sections."""

    def document(unit: Documented) -> Documented:
        text = inspect.cleandoc(unit.__doc__ or "")
        prose, underline, rest = text.partition("\n----")
        heading = ""
        if underline:
            prose, _, heading = prose.rpartition("\n\n")
        others = f"\n\n{heading}{underline}{rest}" if underline else ""
        unit.__doc__ = f"{prose}\n\n{_section(parameters)}{others}\n"
        return unit

    return document


def _section(parameters: type[Parameters]) -> str:
    lines = ["Parameters", "----------"]
    for name, default in parameters.defaults().items():
        definition = parameters.definitions()[name]
        given = "" if default is REQUIRED else f", default {definition.default_text(default)}"
        text = f"{definition.meaning[0].upper()}{definition.meaning[1:]}: {definition.allowed}. {definition.note}"
        lines += [f"{name} : {definition.type_name}{given}", textwrap.indent(textwrap.fill(text, 112), "    ")]
    return "\n".join(lines)
