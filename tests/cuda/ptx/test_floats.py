"""Floating-point instructions of the machine equal MPFR and NumPy, bit for bit."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cuda.ptx.floats import from_double, fused_32, fused_64_toward_zero, fused_halves, product_32

DIRECTIONS = {"rn": gmpy2.RoundToNearest, "rz": gmpy2.RoundToZero, "rm": gmpy2.RoundDown, "rp": gmpy2.RoundUp}
SPECIAL_32 = np.array(
    [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001], np.uint32
)


def context(digits: int, emin: int, emax: int, direction: str) -> gmpy2.context:
    """Return MPFR's arithmetic of a format: of 2^emax and more nothing is finite, 2^emin is the smallest value."""
    return gmpy2.context(precision=digits, round=DIRECTIONS[direction], emin=emin + 1, emax=emax, subnormalize=True)


def fused_by_mpfr(how: gmpy2.context, *numbers: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return a * b + c as MPFR has it."""
    exact = gmpy2.context(precision=200)
    found = [
        float(how.fma(*(exact.plus(gmpy2.mpfr(float(x), 53)) for x in each))) for each in zip(*numbers, strict=True)
    ]
    return np.array(found)


def any_codes(seed: int, bits: int, count: int) -> list[NDArray[np.unsignedinteger]]:
    """Return three arrays of any bits; a third of the addends are near the product, of the other sign."""
    random = np.random.default_rng(seed)
    unsigned = np.dtype(f"u{bits // 8}")
    return [random.integers(0, 1 << bits, count, np.uint64).astype(unsigned) for _ in range(3)]


def near(a: NDArray[np.floating], b: NDArray[np.floating], random: np.random.Generator) -> NDArray[np.floating]:
    """Return addends that nearly cancel the products."""
    with np.errstate(all="ignore"):
        return (-a * b * (1 + random.integers(-3, 4, a.size) * 2.0**-24)).astype(a.dtype)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_fused_float_in_every_direction_is_mpfr_s(direction: str) -> None:
    a, b, c = any_codes(1, 32, 6000)
    c[:2000] = near(a.view(np.float32), b.view(np.float32), np.random.default_rng(2))[:2000].view(np.uint32)
    special = np.concatenate([SPECIAL_32, SPECIAL_32 | 0x80000000])
    grid = [each.ravel() for each in np.meshgrid(special, special, special)]
    a, b, c = (np.concatenate(pair) for pair in zip((a, b, c), grid, strict=True))
    with np.errstate(all="ignore"):
        found = fused_32(a, b, c, direction)
    wanted = fused_by_mpfr(context(24, -149, 128, direction), *(x.view(np.float32) for x in (a, b, c)))
    bits = np.where(np.isnan(wanted), np.uint32(0x7FFFFFFF), wanted.astype(np.float32).view(np.uint32))
    assert np.array_equal(found, bits)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_product_and_conversion_in_every_direction_are_mpfr_s(direction: str) -> None:
    a, b, _ = any_codes(3, 32, 6000)
    none = np.full(a.size, 0x80000000, np.uint32)  # a product and -0 have the product's sign
    none[np.signbit(a.view(np.float32)) == np.signbit(b.view(np.float32))] = 0
    with np.errstate(all="ignore"):
        assert np.array_equal(product_32(a, b, direction), fused_32(a, b, none, direction))
        doubles = np.ldexp(np.random.default_rng(4).standard_normal(6000), np.arange(6000) % 300 - 160)
        found = from_double(doubles, direction)
    how = context(24, -149, 128, direction)
    wanted = np.array([float(how.plus(gmpy2.mpfr(float(x), 53))) for x in doubles]).astype(np.float32)
    assert np.array_equal(found, wanted.view(np.uint32))


@pytest.mark.parametrize(("brain", "digits", "emin", "emax"), [(False, 11, -24, 16), (True, 8, -133, 128)])
def test_fused_halves_are_mpfr_s(brain: bool, digits: int, emin: int, emax: int) -> None:
    a, b, c = (each[:12000] for each in any_codes(5, 16, 12000))
    bits = 5 if not brain else 8
    c[:4000] = (a[:4000] ^ 0x8000) ^ np.random.default_rng(6).integers(0, 4, 4000, np.uint16)
    b[:4000] = (1 << 14) - (1 << 14 - bits)  # 1.0, so that sums cancel

    def numbers(codes: NDArray[np.uint16]) -> NDArray[np.floating]:
        return (codes.astype(np.uint32) << 16).view(np.float32) if brain else codes.view(np.float16)

    with np.errstate(all="ignore"):
        found = fused_halves(*(each.view(np.uint32) for each in (a, b, c)), brain=brain).view(np.uint16)
        wanted = fused_by_mpfr(context(digits, emin, emax, "rn"), numbers(a), numbers(b), numbers(c))
        held = (wanted.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if brain else (
            wanted.astype(np.float16).view(np.uint16)
        )  # fmt: skip
    assert np.array_equal(found, np.where(np.isnan(wanted), np.uint16(0x7FFF), held))


def test_fused_doubles_toward_zero_are_exact_integers_cut() -> None:
    random = np.random.default_rng(7)
    a, b, c = (random.integers(-(2**53), 2**53, 2000) for _ in range(3))
    c = np.where(random.random(2000) < 0.3, -(a // 2**20), c)
    scaled = np.ldexp(c.astype(np.float64), 30)
    found = fused_64_toward_zero(*(x.astype(np.float64).view(np.uint64) for x in (a, b)), scaled.view(np.uint64))
    for x, y, z, got in zip(a.tolist(), b.tolist(), scaled.tolist(), found.view(np.float64).tolist(), strict=True):
        exact = x * y + int(z)
        lost = max(0, abs(exact).bit_length() - 53)
        assert got == (abs(exact) >> lost << lost) * (1 if exact > 0 else -1)
