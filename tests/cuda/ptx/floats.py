"""Floating-point instructions, exactly: sums and products are taken whole and then rounded once.

Arrays come and go as raw bits. A float or a half that is no number is NVIDIA's canonical one. Which NaN an instruction
in double precision returns the description does not say: it is another one each time, as results may not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

__all__ = ["add_64", "from_double", "fused_32", "fused_64_toward_zero", "fused_halves", "product_32", "settled_32"]

Bits = NDArray[Any]
_NAN_32 = np.uint32(0x7FFFFFFF)
_NAN_16 = 0x7FFF
_NANS_64 = np.array([0x7FF8 << 48, 0xFFF8 << 48, 2**63 - 1, 2**64 - 1, 0x7FFC00000000BEEF], np.uint64)


def settled_32(values: NDArray[np.float32]) -> Bits:
    """Return the bits of floats, every NaN the canonical one."""
    return np.where(np.isnan(values), _NAN_32, values.view(np.uint32))


def settled_64(values: NDArray[np.float64]) -> Bits:
    """Return the bits of doubles, the NaNs one after the other of those that a card might return."""
    bits = values.view(np.uint64)
    nans = np.isnan(values)
    return np.where(nans, np.resize(_NANS_64, values.shape), bits) if nans.any() else bits


def _odd_sum(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x + y with 53 bits, the last of them 1 where some were lost: rounding it to fewer rounds the sum once.

    The magnitudes lie between 2^-400 and 2^400, so that nothing is lost below them.
    """
    total = x + y
    part = total - x
    lost = (x - (total - part)) + (y - part)
    lost = np.where(np.isfinite(total), lost, 0.0)
    bits = total.view(np.int64)
    # One towards the lost part, if it is on the other side of the sum: away from zero is up in the bits.
    inward = (lost < 0) != (total < 0)
    cut = np.where((lost != 0) & inward, bits - 1, bits)
    return np.where(lost != 0, cut | 1, bits).view(np.float64)


def from_double(values: NDArray[np.float64], direction: str) -> Bits:
    """Return doubles rounded to floats: ``"rn"`` to nearest even, ``"rz"`` toward zero, ``"rm"`` down, ``"rp"`` up."""
    near = values.astype(np.float32)
    wide = near.astype(np.float64)
    zero = np.float32(0)
    infinite = np.float32(np.inf)
    if direction == "rm":
        near = np.where(wide > values, np.nextafter(near, -infinite), near)
    elif direction == "rp":
        near = np.where(wide < values, np.nextafter(near, infinite), near)
    elif direction == "rz":
        near = np.where(np.abs(wide) > np.abs(values), np.copysign(np.nextafter(near, zero), near), near)
    elif direction != "rn":
        raise ValueError(f"direction: got {direction}, must be rn, rz, rm or rp")
    return settled_32(near)


def fused_32(a: Bits, b: Bits, c: Bits, direction: str) -> Bits:
    """Return a * b + c, rounded once."""
    product = a.view(np.float32).astype(np.float64) * b.view(np.float32)
    addend = c.view(np.float32).astype(np.float64)
    total = _odd_sum(product, addend)
    if direction == "rm":  # an exact zero of numbers of two signs
        total = np.where((total == 0) & (np.signbit(product) != np.signbit(addend)), -0.0, total)
    return from_double(total, direction)


def product_32(a: Bits, b: Bits, direction: str) -> Bits:
    """Return a * b, rounded once."""
    return from_double(a.view(np.float32).astype(np.float64) * b.view(np.float32), direction)


def add_64(a: Bits, b: Bits) -> Bits:
    """Return a + b in double precision, to nearest even."""
    return settled_64(a.view(np.float64) + b.view(np.float64))


_TOWARD_ZERO = gmpy2.context(
    precision=53, round=gmpy2.RoundToZero, emin=-1073, emax=1024, subnormalize=True, trap_invalid=False
)


def _fused_64(a: float, b: float, c: float) -> float:
    return float(_TOWARD_ZERO.fma(gmpy2.mpfr(a), gmpy2.mpfr(b), gmpy2.mpfr(c)))


_FUSED_64: Callable[..., Any] = np.frompyfunc(_fused_64, 3, 1)


def fused_64_toward_zero(a: Bits, b: Bits, c: Bits) -> Bits:
    """Return a * b + c in double precision, rounded once, toward zero: by MPFR."""
    found = _FUSED_64(a.view(np.float64), b.view(np.float64), c.view(np.float64))
    return settled_64(np.asarray(found, np.float64))


def _half_to_double(bits: Bits, brain: bool) -> NDArray[np.float64]:
    if brain:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(np.float16).astype(np.float64)


def _double_to_half(values: NDArray[np.float64], brain: bool) -> Bits:
    if brain:
        # Of 24 bits with the last one odd the rounding to 8 is as of all.
        odd = from_double(values, "rz")
        odd = np.where(odd.view(np.float32).astype(np.float64) != values, odd | 1, odd)
        even = odd + np.uint32(0x7FFF) + (odd >> 16 & 1)
        bits = (np.where(np.isnan(values), np.uint32(0), even) >> 16).astype(np.uint16)
    else:
        bits = values.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(values), np.uint16(_NAN_16), bits)


def fused_halves(a: Bits, b: Bits, c: Bits, *, brain: bool) -> Bits:
    """Return a * b + c of the two float16 or bfloat16 values in each word, each rounded once, to nearest even."""
    x, y, z = (
        _half_to_double(np.ascontiguousarray(each).view(np.uint16), brain) for each in np.broadcast_arrays(a, b, c)
    )
    return _double_to_half(_odd_sum(x * y, z), brain).view(np.uint32)
