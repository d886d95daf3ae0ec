"""Values to blocks of narrow codes with one scale, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_array, as_codes, as_floats, as_format
from golden.arrays.conversion import encode
from golden.arrays.rounding import Float64, codes_to_float64
from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding

__all__ = ["BLOCK", "SCALE_BIAS", "SCALE_NAN", "as_blocks", "dequantize", "quantize", "scale_values"]

#: Values in a block unless told otherwise.
BLOCK = 32

#: Bias of a scale: its code less its exponent.
SCALE_BIAS = 127

#: The code of a scale that is NaN.
SCALE_NAN = 255

Scales = NDArray[np.uint8]
Codes = NDArray[Any]

# Scaled by any scale, a smaller magnitude is still below every element's smallest digit, and does not become 0.
_TINY = 2.0**-800


def _as_block(block: int) -> int:
    if not isinstance(block, int) or isinstance(block, bool):
        raise TypeError(f"block: got {block!r}, must be an int of at least 1")
    if block < 1:
        raise ValueError(f"block: got {block}, must be at least 1")
    return block


def quantize(
    values: ArrayLike,
    element: FloatFormat | str,
    *,
    block: int = BLOCK,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    random: ArrayLike | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> tuple[Scales, Codes]:
    """Quantise values in blocks along the last axis.

    Parameters
    ----------
    values : float16, float32 or float64 array of shape (..., K), or lists
        K is a multiple of `block`.
    element : FloatFormat or str
        Format of the elements: ``float8_e4m3fn``, ``float8_e5m2``, ``float6_e2m3fn``, ``float6_e3m2fn`` and
        ``float4_e2m1fn`` are the specification's.
    block : int
        Values that share a scale, 32 unless given.
    rounding, random, random_bits
        Of the elements, as of `golden.encode`; `random` broadcasts to `values`.

    Returns
    -------
    scales : uint8 array of shape (..., K / block)
        Codes of ``float8_e8m0fnu``.
    codes : unsigned array of shape (..., K)
        Codes of `element`.

    Raises
    ------
    TypeError
        If `values` are not floating point, or another argument is of another type.
    ValueError
        If K is no multiple of `block`, `block` is below 1, or an argument of the rounding is wrong.

    Examples
    --------
    >>> scales, codes = quantize([[0.75] + 30 * [0.0] + [-3.1]], "float4_e2m1fn")
    >>> scales.tolist(), codes[0, [0, 31]].tolist()
    ([[126]], [3, 15])
    """
    element, block = as_format(element, "element"), _as_block(block)
    with np.errstate(invalid="ignore"):  # where a signalling NaN becomes a quiet one
        given = as_floats(values, "values").astype(np.float64)
    if given.ndim == 0 or given.shape[-1] % block:
        raise ValueError(
            f"values: got shape {given.shape}, must have a multiple of block={block} on the last axis; zeros fill it up"
        )
    blocks = given.reshape(*given.shape[:-1], given.shape[-1] // block, block)
    largest = np.abs(blocks).max(axis=-1)
    is_number = np.isfinite(largest)
    # The exponent of a number is one below frexp's; 0 has the least.
    exponent = np.where(largest > 0, np.frexp(largest)[1].astype(np.int64) - 1, -(10**6)) - element.emax
    exponent = np.clip(exponent, -SCALE_BIAS, SCALE_BIAS)
    scales = np.where(is_number, exponent + SCALE_BIAS, SCALE_NAN).astype(np.uint8)
    numbers = np.where(is_number[..., np.newaxis], blocks, 0.0)
    small = (np.abs(numbers) < _TINY) & (numbers != 0)
    numbers = np.where(small, np.copysign(_TINY, numbers), numbers)
    scaled = np.ldexp(numbers, -exponent[..., np.newaxis].astype(np.int32)).reshape(given.shape)
    options: dict[str, Any] = {"rounding": rounding, "random": random, "random_bits": random_bits}
    return scales, encode(scaled, element, overflow="saturate", **options)


def as_blocks(
    scales: ArrayLike, codes: ArrayLike, element: FloatFormat, argument: str
) -> tuple[NDArray[np.uint8], Codes]:
    """Accept scales and codes, `argument` before their names; return the scales, and the codes block by block."""
    given = as_array(scales, f"{argument}scales")
    if given.dtype != np.uint8:
        raise TypeError(f"{argument}scales: got an array of {given.dtype}, must be uint8 codes of float8_e8m0fnu")
    elements = as_codes(codes, element, f"{argument}codes")
    fits = given.ndim and given.ndim == elements.ndim and given.shape[:-1] == elements.shape[:-1]
    if not fits or (elements.shape[-1] % given.shape[-1] if given.shape[-1] else elements.shape[-1]):
        raise ValueError(
            f"{argument}scales, {argument}codes: got shapes {given.shape} and {elements.shape}, must be "
            f"(..., K / block) and (..., K), as quantize returns them"
        )
    block = elements.shape[-1] // given.shape[-1] if given.shape[-1] else 0
    return given, elements.reshape(*given.shape, block)


def scale_values(scales: NDArray[np.uint8]) -> Float64:
    """Return the values of scales."""
    values = np.ldexp(1.0, scales.astype(np.int32) - SCALE_BIAS)
    return np.where(scales == SCALE_NAN, np.nan, values)


def dequantize(scales: ArrayLike, codes: ArrayLike, element: FloatFormat | str) -> NDArray[np.float32]:
    """Return the values of blocks.

    Parameters
    ----------
    scales : uint8 array of shape (..., K / block)
    codes : unsigned array of shape (..., K)
    element : FloatFormat or str
        As of `quantize`.

    Returns
    -------
    float32 array of shape (..., K)
        Exact; infinite where float32 ends, which blocks of float32 values do not reach.

    Raises
    ------
    TypeError, ValueError
        If `scales` are not uint8, `codes` are no codes of `element`, or the shapes do not fit.

    Examples
    --------
    >>> dequantize(np.uint8([128]), np.uint8([1, 15]), "float4_e2m1fn").tolist()
    [1.0, -12.0]
    """
    element = as_format(element, "element")
    given, blocks = as_blocks(scales, codes, element, "")
    with np.errstate(all="ignore"):
        values = codes_to_float64(blocks, element) * scale_values(given)[..., np.newaxis]
        narrow: NDArray[np.float32] = np.where(np.isnan(values), np.nan, values).astype(np.float32)
    return narrow.reshape(np.shape(codes))
