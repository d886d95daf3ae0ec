"""A floating-point number as an Amaranth shape: constants from Python floats, decimal values in waveforms."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from amaranth import Cat, Const, Format, Mux, Shape, ShapeCastable, Value, ValueCastable, unsigned

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.cores.rounding import increment
from hdl.cores.specials import check_format, classify

__all__ = ["FloatShape", "FloatView"]


class FloatShape(ShapeCastable):
    """The shape of a code of a format.

    ``Signal(FloatShape(CBFLOAT16), init=1.5)`` and ``Const(1.5, FloatShape(CBFLOAT16))`` take Python floats (rounded to
    nearest, ties to even); the simulator gives Python floats back and waveforms show decimal numbers.

    Parameters
    ----------
    fmt : FloatFormat
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self.fmt = check_format(fmt, "fmt")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatShape) and self.fmt == other.fmt

    def __hash__(self) -> int:
        return hash(self.fmt)

    def __repr__(self) -> str:
        return f"FloatShape({self.fmt})"

    def as_shape(self) -> Shape:
        """Return ``unsigned(fmt.width)``."""
        return unsigned(self.fmt.width)

    def __call__(self, target: Any) -> FloatView:
        return FloatView(self, target)

    def const(self, init: float | int | None) -> Const:
        """Return the code nearest to a Python number (None is +0)."""
        return Const(self._code(0.0 if init is None else init), self.as_shape())

    def _code(self, number: float) -> int:
        if not isinstance(number, (int, float)):
            raise TypeError(f"init: got {number!r}, must be a Python number")
        fmt = self.fmt
        if math.isnan(number):
            if not fmt.has_nan:
                raise ValueError(f"init: got {number!r}, must be a number: {fmt} has no NaN")
            return fmt.nan
        sign = int(math.copysign(1, number) < 0)
        if math.isinf(number):
            if not (fmt.has_inf or fmt.has_merged):
                raise ValueError(f"init: got {number!r}, must be finite: {fmt} has no infinity")
            return fmt.overflow(sign)
        exponent = math.frexp(number)[1] - 1 if number else fmt.emin
        exponent = max(exponent, fmt.emin) if fmt.subnormals else exponent
        kept, rest = divmod(abs(Fraction(number)) / Fraction(2) ** (exponent - fmt.fraction_bits), 1)
        round_bit, below = divmod(2 * rest, 1)
        mode = Rounding.NEAREST_EVEN
        kept += increment(mode, round_bit=round_bit, sticky=int(below > 0), lowest=kept % 2, sign=sign)
        # A subnormal has exponent emin and no leading bit: both cases, and the carry of a rounding, are one sum.
        magnitude = (exponent - fmt.emin - fmt.normal_zero_field << fmt.fraction_bits) + kept
        if magnitude > fmt.max_finite:
            return fmt.overflow(sign)
        if magnitude < fmt.min_normal and not fmt.subnormals:
            magnitude = 0
        return magnitude | sign * fmt.sign_mask if magnitude or fmt.has_negative_zero else 0

    def from_bits(self, raw: int) -> float:
        """Return the Python float of a code."""
        fmt = self.fmt
        fraction = raw & (1 << fmt.fraction_bits) - 1
        field = raw >> fmt.fraction_bits & fmt.exponent_field_max
        if not fmt.is_finite(raw):
            magnitude = math.nan if fmt.is_nan(raw) else math.inf
        else:
            is_normal = raw & fmt.sign_mask - 1 >= fmt.min_normal
            significand = fraction * (is_normal or fmt.subnormals) + (is_normal << fmt.fraction_bits)
            magnitude = math.ldexp(significand, max(field - fmt.bias, fmt.emin) - fmt.fraction_bits)
        return -magnitude if raw & fmt.sign_mask else magnitude

    def format(self, value: FloatView, format_spec: str) -> Format:
        """Show the number in decimal, with the digits that its smallest subnormal needs.

        The text has two pieces, because Amaranth would write a format of one piece into the netlist.
        """
        if format_spec:
            raise ValueError(f"format_spec: got {format_spec!r}, a float takes none")
        view = FloatView(self, value)
        what = classify(self.fmt, Value.cast(view))
        is_special = what.is_nan | what.is_infinite
        sign = Mux(view.sign, _text("-"), 0)
        prefix = Mux(what.is_nan, _text("nan"), Mux(what.is_infinite, Cat(sign, _text("inf")), sign))
        return Format("{:s}{:s}", prefix | Const(0, 32), Mux(is_special, 0, _decimal_text(view, self.fmt)))


def _text(string: str) -> Const:
    return Const(int.from_bytes(string.encode(), "little"), 8 * len(string))


def _decimal_text(view: FloatView, fmt: FloatFormat) -> Value:
    """Return the characters of the magnitude as a fixed-point number, the first one in the lowest byte."""
    lowest = fmt.emin - fmt.fraction_bits
    places = max(1, math.ceil(-lowest * math.log10(2)))
    if fmt.normal_zero_field:
        hidden, places_up = Value.cast(view)[:-1].any(), view.exponent_field
    else:
        hidden = view.exponent_field != 0
        places_up = Mux(hidden, view.exponent_field - 1, 0)[: fmt.exponent_bits]
    fraction = view.fraction if fmt.subnormals else view.fraction & hidden.replicate(fmt.fraction_bits)
    # units of the smallest last place: [hidden | fraction] << (max(exponent_field, 1) - 1)
    units = Cat(fraction, hidden) << places_up
    scaled = units * 10**places >> -lowest if lowest < 0 else units * (10**places << lowest)
    whole_digits = max(1, math.ceil((fmt.emax + 1) * math.log10(2)))
    digits = [((scaled // 10**k) % 10 + _text("0"))[:8] for k in range(places + whole_digits)]
    for k in range(places + 1, len(digits)):  # no leading zeros
        digits[k] = Mux(scaled >= 10**k, digits[k], 0)
    return Cat(*reversed(digits[places:]), _text("."), *reversed(digits[:places]))


class FloatView(ValueCastable):
    """A signal seen as a floating-point code: fields ``sign``, ``exponent_field`` and ``fraction``."""

    def __init__(self, shape: FloatShape, target: Any) -> None:
        if not isinstance(shape, FloatShape):
            raise TypeError(f"shape: got {shape!r}, must be a FloatShape")
        self._shape = shape
        try:
            self._target = Value.cast(target)
        except TypeError as error:
            raise TypeError(f"target: got {target!r}, must be a value of {shape.fmt.width} bits ({error})") from None
        if len(self._target) != shape.fmt.width:
            raise ValueError(f"target: got {len(self._target)} bits, must be {shape.fmt.width} for {shape.fmt}")

    def shape(self) -> FloatShape:
        """Return the `FloatShape`."""
        return self._shape

    def as_value(self) -> Value:
        """Return the bits."""
        return self._target

    @property
    def sign(self) -> Value:
        """The top bit."""
        return self._target[-1]

    @property
    def exponent_field(self) -> Value:
        """The stored, biased exponent."""
        return self._target[self._shape.fmt.fraction_bits : -1]

    @property
    def fraction(self) -> Value:
        """The stored bits of the significand, without the leading one."""
        return self._target[: self._shape.fmt.fraction_bits]

    def eq(self, other: Any) -> Any:
        """Assign a code, or a Python float rounded to the format."""
        if isinstance(other, (int, float)):
            other = self._shape.const(other)
        return self._target.eq(other)
