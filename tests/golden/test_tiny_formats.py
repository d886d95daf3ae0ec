"""Formats of six to eight bits, where every step can be tried, against int64 arithmetic and the exact reference."""

import numpy as np
import pytest

from golden import FloatFormat, multiply_accumulate, reference

from .judges import INEXACT, INVALID, OVERFLOW, UNDERFLOW, all_codes, ascending_values, assert_same_bits

E3M2, E3M3, E4M3 = FloatFormat("e3m2", 3, 2), FloatFormat("e3m3", 3, 3), FloatFormat("e4m3", 4, 3)
PAIRS = [(E3M2, E3M2), (E3M3, E3M3), (E3M2, E4M3), (E4M3, E3M2)]


class Integers:
    """Steps of two tiny formats on int64: every value and every product is a whole multiple of one power of two."""

    def __init__(self, operand: FloatFormat, accumulator: FloatFormat) -> None:
        smallest_product = 2 * (operand.emin - operand.fraction_bits)
        quarter_ulp = accumulator.emin - accumulator.fraction_bits - 2
        self.unit = min(smallest_product, quarter_ulp)
        self.operand, self.accumulator = operand, accumulator
        beyond = 2.0 ** (accumulator.emax + 1)  # what would follow the largest finite value
        self.values = self.scaled(np.append(ascending_values(accumulator)[:-1], beyond), self.unit)

    @staticmethod
    def scaled(values, unit):
        exact = values * 2.0**-unit
        assert (exact == np.trunc(exact)).all()
        return exact.astype(np.int64)

    def round(self, exact):
        """Codes without their sign and flags of integers that are not negative."""
        above = np.minimum(np.searchsorted(self.values, exact), len(self.values) - 1)
        below = np.maximum(above - 1, 0)
        to_above, to_below = self.values[above] - exact, exact - self.values[below]
        take_above = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
        code = np.where(take_above, above, below)
        code = np.where(exact >= self.values[-1], len(self.values) - 1, code)
        overflow = code == self.accumulator.inf
        inexact = (self.values[code] != exact) | overflow
        fmt = self.accumulator
        reaches_normal = (1 << (fmt.emin - self.unit)) - (1 << (fmt.emin - fmt.fraction_bits - 2 - self.unit))
        underflow = inexact & (exact < reaches_normal)
        return code, inexact * INEXACT + overflow * OVERFLOW + underflow * UNDERFLOW

    def step(self, a, b, acc):
        """Codes and flags of every combination of finite codes; the sign is the leading bit of each."""
        operand, fmt = self.operand, self.accumulator
        smallest = operand.emin - operand.fraction_bits
        table = self.scaled(ascending_values(operand)[:-1], smallest)
        product = table[a % operand.sign_mask] * table[b % operand.sign_mask] << (2 * smallest - self.unit)
        product_sign = (a // operand.sign_mask + b // operand.sign_mask) % 2
        addend, addend_sign = self.values[acc % fmt.sign_mask], acc // fmt.sign_mask
        exact = np.where(product_sign, -product, product) + np.where(addend_sign, -addend, addend)
        both_negative_zeros = (product == 0) & (addend == 0) & (product_sign == 1) & (addend_sign == 1)
        code, flags = self.round(np.abs(exact))
        return code + ((exact < 0) | both_negative_zeros) * fmt.sign_mask, flags


def every_combination(operand, accumulator):
    factors, sums = all_codes(operand), all_codes(accumulator)
    return (grid.ravel() for grid in np.meshgrid(factors, factors, sums, indexing="ij"))


@pytest.mark.parametrize(("operand", "accumulator"), PAIRS, ids=[f"{x}-{y}" for x, y in PAIRS])
def test_step_of_every_finite_combination_is_the_integer_judges(operand, accumulator):
    a, b, acc = every_combination(operand, accumulator)
    got, flags = multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator, return_flags=True)
    finite = (a % operand.sign_mask < operand.inf) & (b % operand.sign_mask < operand.inf)
    finite &= acc % accumulator.sign_mask < accumulator.inf
    a, b, acc, got, flags = (x[finite].astype(np.int64) for x in (a, b, acc, got, flags))
    wanted, wanted_flags = Integers(operand, accumulator).step(a, b, acc)
    assert_same_bits(got, wanted, a, b, acc)
    assert_same_bits(flags, wanted_flags, a, b, acc)


@pytest.mark.parametrize(("operand", "accumulator"), PAIRS, ids=[f"{x}-{y}" for x, y in PAIRS])
def test_step_of_every_special_combination_follows_the_rules(operand, accumulator):
    a, b, acc = every_combination(operand, accumulator)
    x, y, z = a % operand.sign_mask, b % operand.sign_mask, acc % accumulator.sign_mask
    special = (x >= operand.inf) | (y >= operand.inf) | (z >= accumulator.inf)
    a, b, acc, x, y, z = (codes[special].astype(np.int64) for codes in (a, b, acc, x, y, z))
    x_inf, y_inf, z_inf = x == operand.inf, y == operand.inf, z == accumulator.inf
    any_nan = (x > operand.inf) | (y > operand.inf) | (z > accumulator.inf)
    signalling = sum((c > f.inf) & (c < f.nan) for c, f in ((x, operand), (y, operand), (z, accumulator))) > 0
    product_sign = (a // operand.sign_mask + b // operand.sign_mask) % 2
    infinity_times_zero = (x_inf & (y == 0)) | ((x == 0) & y_inf)
    opposed = ~any_nan & (x_inf | y_inf) & z_inf & (product_sign != acc // accumulator.sign_mask)
    invalid = signalling | infinity_times_zero | opposed
    sign = np.where(x_inf | y_inf, product_sign, acc // accumulator.sign_mask)
    wanted = np.where(invalid | any_nan, accumulator.nan, accumulator.inf + sign * accumulator.sign_mask)
    codes = (each.astype(np.uint16) for each in (a, b, acc))
    got, flags = multiply_accumulate(*codes, operand=operand, accumulator=accumulator, return_flags=True)
    assert_same_bits(got, wanted, a, b, acc)
    assert_same_bits(flags, invalid * INVALID, a, b, acc)


@pytest.mark.long
def test_step_of_every_combination_of_e3m2_is_the_references():
    a, b, acc = every_combination(E3M2, E3M2)
    got, flags = multiply_accumulate(a, b, acc, operand=E3M2, accumulator=E3M2, return_flags=True)
    for triple, code, raised in zip(np.stack([a, b, acc], 1).tolist(), got.tolist(), flags.tolist(), strict=True):
        assert reference.multiply_accumulate(*triple, operand=E3M2, accumulator=E3M2) == (code, raised), triple
