"""The formats that the hardware knows, and how it tells numbers from infinities and NaNs."""

from __future__ import annotations

from amaranth import Value

from golden.formats import FloatFormat

__all__ = ["check_format", "is_special_field"]


def check_format(fmt: FloatFormat, argument: str) -> FloatFormat:
    """Return a format that can be built; name the argument and what is allowed otherwise."""
    if not isinstance(fmt, FloatFormat):
        raise TypeError(f"{argument}: got {fmt!r}, must be a golden.FloatFormat")
    if not fmt.has_inf:
        raise ValueError(
            f"{argument}: got {fmt} (specials {fmt.specials!r}), must have specials 'ieee': no other format can be "
            f"built yet"
        )
    return fmt


def is_special_field(fmt: FloatFormat, field: Value) -> Value:
    """Tell whether an exponent field, in the low bits of a word, is that of infinities and NaNs: all ones."""
    return field[: fmt.exponent_bits].all()
