"""Hypothesis strategies: the format itself is drawn, then codes that lie at its edges more often than chance has it."""

from __future__ import annotations

from hypothesis import strategies as st

from golden import FloatFormat

from .judges import fraction_patterns


@st.composite
def formats(draw: st.DrawFn, max_width: int = 32) -> FloatFormat:
    """Any valid format; the limits of the bias are those that keep every value inside float32."""
    exponent_bits = draw(st.integers(2, 8))
    fraction_bits = draw(st.integers(1, min(23, max_width - 1 - exponent_bits)))
    biases = st.integers(2**exponent_bits - 129, 150 - fraction_bits)
    bias = draw(st.none() | biases)
    return FloatFormat(f"e{exponent_bits}m{fraction_bits}", exponent_bits, fraction_bits, bias)


@st.composite
def codes(draw: st.DrawFn, fmt: FloatFormat) -> int:
    """A code of the format: any, or one with an edge field and a patterned fraction."""
    if draw(st.booleans()):
        return draw(st.integers(0, 2**fmt.width - 1))
    top = fmt.exponent_field_max
    field = draw(st.sampled_from([0, 1, 2, top // 2, top - 1, top]) | st.integers(0, top))
    fraction = draw(st.sampled_from(fraction_patterns(fmt.fraction_bits)))
    return (draw(st.integers(0, 1)) << fmt.exponent_bits | field) << fmt.fraction_bits | fraction
