"""Definitions of a unit's parameters: checks, command-line options and descriptions."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Annotated, Any, ClassVar

from golden.formats import FloatFormat, format_named
from golden.reduction import LEVELS
from golden.rounding import MOST_RANDOM_BITS, SUBNORMALS, Rounding, as_rounding
from hdl.cores.specials import check_format

__all__ = [
    "REQUIRED",
    "Choice",
    "Definition",
    "Even",
    "Format",
    "Formats",
    "Levels",
    "PowerOfTwo",
    "RandomBits",
    "Roundings",
    "Stages",
    "Subnormals",
    "Switch",
    "Whole",
    "shown",
]

#: Stands for the default of a required parameter.
REQUIRED = dataclasses.MISSING


def shown(value: Any, between: str = ", ") -> str:
    """Return a parameter's value as text; members of a tuple are listed."""
    return between.join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclasses.dataclass(frozen=True)
class Definition(ABC):
    """The definition of a parameter: its meaning and its allowed values.

    Parameters
    ----------
    meaning : str
        A noun phrase, such as ``16-bit accumulators``.
    note : str
        Further sentences for the reference.
    is_rare : bool
        Whether the header of generated Verilog lists it only if it differs from its default.
    """

    #: The type shown in the reference.
    type_name: ClassVar[str]
    #: The notation for several values on a command line.
    written: ClassVar[str] = ""

    meaning: str
    _: dataclasses.KW_ONLY
    note: str = ""
    is_rare: bool = False

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The allowed values, as text after a colon."""

    @abstractmethod
    def check(self, name: str, value: Any, given: Any) -> Any:
        """Return the checked parameter in the form that the unit stores.

        Parameters
        ----------
        name : str
            Its name, for the error.
        value : Any
            The given value.
        given : hdl.parameters.Parameters
            All parameters; the ones before this one are already checked.

        Raises
        ------
        TypeError, ValueError
            Naming the parameter, what was given and what is allowed.
        """

    def default_text(self, default: Any) -> str:
        """Return a default as text for the command line and the reference."""
        return shown(default, ",")

    def option(self, name: str, default: Any) -> tuple[str, dict[str, Any]]:
        """Return the option of the command line, and its arguments for ``add_argument``."""
        words = f"{self.meaning}{self.written}: {self.allowed}"
        if default is REQUIRED:
            return _option(name), {"required": True, "help": words}
        return _option(name), {"default": default, "help": f"{words} (default {self.default_text(default)})"}

    def parse(self, name: str, text: str) -> Any:
        """Return the value of a command-line argument.

        Raises
        ------
        ValueError
            Naming the parameter, what was given and what is allowed.
        """
        return text


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclasses.dataclass(frozen=True)
class Format(Definition):
    """One format."""

    type_name = "FloatFormat"

    @property
    def allowed(self) -> str:
        return "a format, such as float32"

    def check(self, name: str, value: Any, given: Any) -> FloatFormat:
        return _with_a_name(name, check_format(value, name))

    def parse(self, name: str, text: str) -> FloatFormat:
        return _format(name, text)


def _with_a_name(name: str, fmt: FloatFormat) -> FloatFormat:
    """Return a format whose name stays within a comment of the Verilog; raise a ValueError for any other."""
    if not str(fmt).isprintable():
        raise ValueError(f"{name}: got a format named {str(fmt)!r}, must be a name of printable characters")
    return fmt


def _format(name: str, text: str) -> FloatFormat:
    try:
        return format_named(text.strip())
    except ValueError as error:
        raise ValueError(str(error).replace("name:", f"{name}:", 1)) from None


@dataclasses.dataclass(frozen=True)
class Formats(Definition):
    """Distinct operand formats, each of at most `widest` bits."""

    type_name = "sequence of FloatFormat"
    written = ", comma-separated"

    widest: int

    @property
    def allowed(self) -> str:
        return f"different formats of at most {self.widest} bits"

    def check(self, name: str, value: Any, given: Any) -> tuple[FloatFormat, ...]:
        formats = _as_tuple(name, value, FloatFormat)
        if not formats:
            raise ValueError(f"{name}: got none, must be at least one FloatFormat")
        for fmt in formats:
            if not isinstance(fmt, FloatFormat):
                raise TypeError(f"{name}: got {fmt!r}, must be golden.FloatFormats")
            if fmt.width > self.widest:
                raise ValueError(f"{name}: got {fmt} of {fmt.width} bits, must be at most {self.widest} bits wide")
            if not fmt.subnormals:
                raise ValueError(f"{name}: got {fmt} without subnormals, must have them; FloatConverter converts codes")
            if fmt.has_inf and not fmt.has_one:
                raise ValueError(f"{name}: got {fmt} with bias {fmt.bias}, must hold 1.0: promotions multiply by it")
            _with_a_name(name, fmt)
        if len(set(map(str, formats))) != len(formats):
            raise ValueError(f"{name}: got {shown(formats)}, must be different formats, each with a name of its own")
        return formats

    def parse(self, name: str, text: str) -> tuple[FloatFormat, ...]:
        return tuple(_format(name, each) for each in text.split(","))


@dataclasses.dataclass(frozen=True)
class Levels(Definition):
    """Some of the precision levels."""

    type_name = "sequence of int"
    written = ", comma-separated"

    @property
    def allowed(self) -> str:
        return f"some of {shown(LEVELS)}"

    def check(self, name: str, value: Any, given: Any) -> tuple[int, ...]:
        levels = _as_tuple(name, value, int)
        if any(isinstance(level, bool) or not isinstance(level, int) for level in levels):
            raise TypeError(f"{name}: got {levels}, must be ints, some of {LEVELS}")
        if not levels or not set(levels) <= set(LEVELS) or len(set(levels)) != len(levels):
            raise ValueError(f"{name}: got {levels}, must be some of {LEVELS}, each once")
        return tuple(sorted(levels))

    def parse(self, name: str, text: str) -> tuple[int, ...]:
        try:
            return tuple(int(number) for number in text.split(","))
        except ValueError:
            raise ValueError(f"{name}: got {text!r}, must be numbers such as 0,1,2") from None


@dataclasses.dataclass(frozen=True)
class Roundings(Definition):
    """Some of the rounding modes."""

    type_name = "sequence of Rounding or str"
    written = ", comma-separated"

    @property
    def allowed(self) -> str:
        return f"some of {shown(tuple(Rounding))}, each once"

    def check(self, name: str, value: Any, given: Any) -> tuple[Rounding, ...]:
        given_modes = _as_tuple(name, [value] if isinstance(value, str) else value, Rounding)
        modes = tuple(as_rounding(mode, name) for mode in given_modes)
        if not modes or len(set(modes)) != len(modes):
            raise ValueError(f"{name}: got {shown(modes) or 'none'}, must be {self.allowed}")
        return tuple(sorted(modes, key=lambda mode: mode.value))

    def parse(self, name: str, text: str) -> tuple[str, ...]:
        return tuple(each.strip() for each in text.split(","))


def _as_tuple(name: str, given: Any, kind: type) -> tuple[Any, ...]:
    """Accept one value or several."""
    if isinstance(given, kind):
        return (given,)
    if not isinstance(given, str):
        with suppress(TypeError):  # a zero-dimensional array is an Iterable that cannot be iterated over
            return tuple(given)
    raise TypeError(f"{name}: got {given!r}, must be a sequence of {kind.__name__}")


class _Number(Definition):
    """A whole number."""

    type_name = "int"

    def check(self, name: str, value: Any, given: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name}: got {value!r}, must be an int")
        if not self.holds(value):
            raise ValueError(f"{name}: got {value}, must be {self.allowed}")
        return value

    @abstractmethod
    def holds(self, value: int) -> bool:
        """Return whether a number is allowed."""

    def option(self, name: str, default: Any) -> tuple[str, dict[str, Any]]:
        option, arguments = super().option(name, default)
        return option, {"type": int, **arguments}


@dataclasses.dataclass(frozen=True)
class Whole(_Number):
    """A number from `least` to `most`."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        return f"from {self.least} to {self.most}"

    def holds(self, value: int) -> bool:
        return self.least <= value <= self.most


#: A parameter of units with stochastic rounding.
RandomBits = Annotated[
    int,
    Whole("bits of a random number", 1, MOST_RANDOM_BITS, note="Only the mode ``stochastic`` takes one.", is_rare=True),
]


@dataclasses.dataclass(frozen=True)
class Even(Whole):
    """An even number from `least` to `most`."""

    @property
    def allowed(self) -> str:
        return f"an even number {super().allowed}"

    def holds(self, value: int) -> bool:
        return super().holds(value) and value % 2 == 0


@dataclasses.dataclass(frozen=True)
class PowerOfTwo(_Number):
    """A power of two from `least` to `most`, which keeps a unit to a size that can be generated."""

    least: int
    most: int = 4096

    @property
    def allowed(self) -> str:
        return f"a power of two from {self.least} to {self.most}"

    def holds(self, value: int) -> bool:
        return self.least <= value <= self.most and not value & (value - 1)


@dataclasses.dataclass(frozen=True)
class Stages(Definition):
    """A number of register ranks from 1 to `most`; None stands for the recommended depth."""

    type_name = "int, optional"

    most: int
    recommended: str

    @property
    def allowed(self) -> str:
        return f"from 1 to {self.most}"

    def check(self, name: str, value: Any, given: Any) -> int:
        default: int = given.recommended_stages
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name}: got {value!r}, must be an int {self.allowed}, or None for {default}")
        if not 1 <= value <= self.most:
            raise ValueError(f"{name}: got {value}, must be {self.allowed} ({default} unless given)")
        return value

    def default_text(self, default: Any) -> str:
        return self.recommended

    def option(self, name: str, default: Any) -> tuple[str, dict[str, Any]]:
        option, arguments = super().option(name, default)
        return option, {"type": int, **arguments}


@dataclasses.dataclass(frozen=True)
class Switch(Definition):
    """An optional part; on a command line, ``--no-...`` leaves out a part that is built by default."""

    type_name = "bool"

    @property
    def allowed(self) -> str:
        return "True or False"

    def check(self, name: str, value: Any, given: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name}: got {value!r}, must be {self.allowed}")
        return value

    def option(self, name: str, default: Any) -> tuple[str, dict[str, Any]]:
        if default:
            words = f"build the {self.meaning} out"
            return _option(f"no_{name}"), {"dest": name, "action": "store_false", "help": words}
        return _option(name), {"action": "store_true", "help": f"build {self.meaning} in"}


@dataclasses.dataclass(frozen=True)
class Choice(Definition):
    """One of several words."""

    type_name = "str"

    choices: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return f"one of {shown(self.choices)}"

    def check(self, name: str, value: Any, given: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise ValueError(f"{name}: got {value!r}, must be {self.allowed}")
        return value

    def option(self, name: str, default: Any) -> tuple[str, dict[str, Any]]:
        option, arguments = super().option(name, default)
        return option, {"choices": self.choices, **arguments}


#: A parameter of units that round (NUMERICS section 12).
Subnormals = Annotated[
    str,
    Choice(
        "what becomes of subnormal operands and results",
        SUBNORMALS,
        note="``flush`` makes them zeros of their sign, and the unit smaller.",
        is_rare=True,
    ),
]
