"""Detection of NaN and infinity codes, as gates; and checks of the formats that units accept."""

from __future__ import annotations

from amaranth import C, Value

from golden.formats import FloatFormat
from hdl.cores.bundle import Bundle

__all__ = ["check_accumulated", "check_format", "classify", "is_special_field"]


def check_format(fmt: FloatFormat, argument: str) -> FloatFormat:
    """Return a format; raise a TypeError that names the argument for anything else."""
    if not isinstance(fmt, FloatFormat):
        raise TypeError(f"{argument}: got {fmt!r}, must be a golden.FloatFormat")
    return fmt


def check_accumulated(fmt: FloatFormat, argument: str) -> FloatFormat:
    """Return a format that a step supports as operand and accumulator; raise an error for any other."""
    if not check_format(fmt, argument).has_inf:
        raise ValueError(
            f"{argument}: got {fmt} (specials {fmt.specials!r}), must have specials 'ieee'; operands of other formats "
            "are widened to a format that is given as inner"
        )
    if not fmt.subnormals:
        raise ValueError(f"{argument}: got {fmt} without subnormals, must have them; hdl.FloatConverter converts codes")
    return fmt


def is_special_field(fmt: FloatFormat, field: Value) -> Value:
    """Return whether an exponent field, in the low bits of a word, is all ones, as for infinities and NaNs.

    Only for formats with infinities; `classify` serves all.
    """
    return field[: fmt.exponent_bits].all()


def classify(fmt: FloatFormat, code: Value) -> Bundle:
    """Classify a code as NaN, signalling NaN or infinity (NUMERICS section 8).

    Parameters
    ----------
    fmt : FloatFormat
    code : Value
        Of `fmt.width` bits.

    Returns
    -------
    Bundle
        ``is_nan``, ``is_signalling``, ``is_infinite``: one bit each, a constant where the format has none.
    """
    none, magnitude = C(0, 1), code[: fmt.width - 1]
    if fmt.has_inf:
        is_special, fraction = is_special_field(fmt, magnitude[fmt.fraction_bits :]), magnitude[: fmt.fraction_bits]
        is_nan = is_special & fraction.any()
        return Bundle(is_nan=is_nan, is_signalling=is_nan & ~fraction[-1], is_infinite=is_special & ~fraction.any())
    if not fmt.has_nan:
        return Bundle(is_nan=none, is_signalling=none, is_infinite=none)
    is_nan = magnitude.all() if fmt.has_negative_zero else code[-1] & ~magnitude.any()
    return Bundle(is_nan=is_nan, is_signalling=is_nan if fmt.has_merged else none, is_infinite=none)
