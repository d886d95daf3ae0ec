"""Single steps and conversions against a judge of a few lines: the nearer of the two neighbours, in exact fractions."""

import bisect
from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden import Flag, FloatFormat, multiply_accumulate, reference
from golden.formats import SIXTEEN_BIT_FORMATS

from .judges import ascending_values, power
from .strategies import codes

ALL = pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)


@lru_cache(maxsize=8)
def table(fmt: FloatFormat) -> list[Fraction]:
    """Values by code; in place of infinity, the value that would come next with a larger exponent range."""
    return [*(Fraction(value) for value in ascending_values(fmt)[:-1].tolist()), power(fmt.emax + 1)]


def nearest(exact: Fraction, fmt: FloatFormat) -> tuple[int, Flag]:
    """Round a number that is not zero; the code past the largest finite one is that of infinity."""
    values, magnitude = table(fmt), abs(exact)
    above = min(bisect.bisect_left(values, magnitude), len(values) - 1)
    below = max(above - 1, 0)
    to_above, to_below = abs(values[above] - magnitude), abs(magnitude - values[below])
    even = above if above % 2 == 0 else below
    code = even if to_above == to_below else above if to_above < to_below else below
    flags = Flag(0)
    if code == fmt.inf:
        flags |= Flag.OVERFLOW | Flag.INEXACT
    elif values[code] != magnitude:
        flags |= Flag.INEXACT
        # Rounded with digits to spare below, all from half an ulp under the smallest normal up reaches it.
        if magnitude < power(fmt.emin) - power(fmt.emin - fmt.fraction_bits - 2):
            flags |= Flag.UNDERFLOW
    return code + (exact < 0) * fmt.sign_mask, flags


def value(code: int, fmt: FloatFormat) -> Fraction:
    sign, magnitude = divmod(code, fmt.sign_mask)
    return -table(fmt)[magnitude] if sign else table(fmt)[magnitude]


@ALL
@settings(max_examples=600)
@given(data=st.data())
def test_step_of_finite_codes_is_the_nearest_neighbour(fmt, data):
    finite = codes(fmt).filter(lambda code: code % fmt.sign_mask < fmt.inf)
    a, b, acc = data.draw(st.tuples(finite, finite, finite))
    exact = value(a, fmt) * value(b, fmt) + value(acc, fmt)
    step = reference.multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)
    array_step = multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt, return_flags=True)
    assert step == array_step
    if exact:
        assert step == nearest(exact, fmt)
    else:
        assert step[0] in (0, fmt.sign_mask)
        assert step[1] == 0


@ALL
@settings(max_examples=300)
@given(data=st.data())
def test_convert_of_finite_codes_is_the_nearest_neighbour(fmt, data):
    source = data.draw(st.sampled_from(SIXTEEN_BIT_FORMATS))
    code = data.draw(codes(source).filter(lambda code: 0 < code % source.sign_mask < source.inf))
    assert reference.convert(code, source, fmt) == nearest(value(code, source), fmt)


@ALL
@settings(max_examples=300)
@given(data=st.data())
def test_reference_encode_of_a_rational_is_the_nearest_neighbour(fmt, data):
    # Denominators other than powers of two: no float64 holds these.
    digits = st.integers(1, 10**12)
    exponent = data.draw(st.integers(fmt.emin - fmt.fraction_bits - 2, fmt.emax + 1))
    number = Fraction(data.draw(digits), data.draw(digits)) * power(exponent) * data.draw(st.sampled_from([1, -1]))
    assert reference.encode(number, fmt) == nearest(number, fmt)[0]


@ALL
def test_judge_of_a_tie_takes_the_even_neighbour(fmt):
    one, ulp = fmt.one, power(-fmt.fraction_bits)
    assert nearest(1 + ulp / 2, fmt)[0] == one
    assert nearest(1 + ulp * 3 / 2, fmt)[0] == one + 2
    assert nearest(1 + ulp / 2 + power(-200), fmt)[0] == one + 1
