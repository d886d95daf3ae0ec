"""Values to blocks of narrow codes with one scale, and back."""

from __future__ import annotations

from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_array, as_codes, as_floats, as_format
from golden.arrays.conversion import encode
from golden.arrays.rounding import Float64, codes_to_float64
from golden.formats import FloatFormat
from golden.mx.recipes import NVFP4, SCALE_BIAS, SCALE_NAN, BlockFormat, as_recipe
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding

__all__ = [
    "BLOCK",
    "SCALE_BIAS",
    "SCALE_NAN",
    "Quantized",
    "as_block_format",
    "as_blocks",
    "as_tensor_scale",
    "dequantize",
    "quantize",
    "scale_values",
]

#: Values in a block unless told otherwise.
BLOCK = 32

Scales = NDArray[np.uint8]
Codes = NDArray[Any]


class Quantized(NamedTuple):
    """Blocks with a scale of their tensor: a value is ``tensor_scale * scale * element``."""

    scales: NDArray[np.uint8]
    codes: NDArray[Any]
    tensor_scale: np.float32


def as_block_format(element: FloatFormat | BlockFormat | str, argument: str) -> tuple[FloatFormat, BlockFormat | None]:
    """Accept the format of elements, or NVFP4 or its name; return the elements' format, and that of the blocks."""
    if isinstance(element, BlockFormat) and element != NVFP4:
        raise ValueError(f"{argument}: got {element!r}, must be golden.mx.NVFP4, or the format of elements")
    if isinstance(element, BlockFormat) or (isinstance(element, str) and element == NVFP4.name):
        return NVFP4.element, NVFP4
    return as_format(element, argument), None


def as_tensor_scale(
    given: float | np.floating[Any] | None, blocks: BlockFormat | None, *, may_be_nan: bool = False
) -> np.float32 | None:
    """Accept the scale of a tensor, which NVFP4 alone has; that of a tensor with a NaN is NaN in some recipes."""
    if given is None:
        return None
    if blocks is None:
        raise ValueError(f"tensor_scale: got {given!r}, must be None: only element='nvfp4' has a scale of the tensor")
    if not isinstance(given, int | float | np.floating) or isinstance(given, bool):
        raise TypeError(f"tensor_scale: got {given!r}, must be a float")
    with np.errstate(over="ignore"):
        scale = np.float32(given)
    if may_be_nan and np.isnan(scale):
        return scale
    if float(scale) != float(given) or not scale > 0 or not np.isfinite(scale):
        raise ValueError(f"tensor_scale: got {given!r}, must be a positive number of float32")
    return scale


def _as_block(block: int | None, blocks: BlockFormat | None) -> int:
    if block is None:
        return BLOCK if blocks is None else blocks.block
    if blocks is not None and block != blocks.block:
        raise ValueError(f"block: got {block!r}, must be {blocks.block} for {blocks}, or left out")
    if not isinstance(block, int) or isinstance(block, bool):
        raise TypeError(f"block: got {block!r}, must be an int of at least 1")
    if block < 1:
        raise ValueError(f"block: got {block}, must be at least 1")
    return block


@overload
def quantize(
    values: ArrayLike,
    element: FloatFormat,
    *,
    block: int | None = ...,
    scale: str | None = ...,
    tensor_scale: float | None = ...,
    rounding: Rounding | str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
) -> tuple[Scales, Codes]: ...
@overload
def quantize(
    values: ArrayLike,
    element: BlockFormat,
    *,
    block: int | None = ...,
    scale: str | None = ...,
    tensor_scale: float | None = ...,
    rounding: Rounding | str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
) -> Quantized: ...
@overload
def quantize(
    values: ArrayLike,
    element: str,
    *,
    block: int | None = ...,
    scale: str | None = ...,
    tensor_scale: float | None = ...,
    rounding: Rounding | str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
) -> tuple[Any, ...]: ...
def quantize(
    values: ArrayLike,
    element: FloatFormat | BlockFormat | str,
    *,
    block: int | None = None,
    scale: str | None = None,
    tensor_scale: float | None = None,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    random: ArrayLike | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> tuple[Any, ...]:
    """Quantise values in blocks along the last axis.

    Parameters
    ----------
    values : float16, float32 or float64 array of shape (..., K), or lists
        K is a multiple of `block`.
    element : FloatFormat, str or BlockFormat
        Format of the elements: ``float8_e4m3fn``, ``float8_e5m2``, ``float6_e2m3fn``, ``float6_e3m2fn`` and
        ``float4_e2m1fn`` are the specification's. Or ``golden.mx.NVFP4``, or its name ``"nvfp4"``.
    block : int, optional
        Values that share a scale, 32 unless given; NVFP4 has 16.
    scale : str, optional
        The recipe of the scales, one of `golden.mx.RECIPES`: ``"ocp_floor"`` unless given, for NVFP4
        ``"nvidia_nvfp4"``. Those of other projects compute in float32, to which they round the values first.
    tensor_scale : float, optional
        For NVFP4, the scale of the whole tensor, a positive number of float32; the recipe computes it unless given.
    rounding, random, random_bits
        Of the elements, as of `golden.encode`; `random` broadcasts to `values`.

    Returns
    -------
    scales : uint8 array of shape (..., K / block)
        Codes of ``float8_e8m0fnu``; for NVFP4 of ``float8_e4m3fn``.
    codes : unsigned array of shape (..., K)
        Codes of `element`.
    tensor_scale : float32
        For NVFP4 alone: a value is ``tensor_scale * scale * element``.

    Raises
    ------
    TypeError
        If `values` are not floating point, or another argument is of another type.
    ValueError
        If K is no multiple of `block`, `block` is below 1, `scale` names no recipe for such blocks, or an argument of
        the rounding is wrong.

    Examples
    --------
    >>> scales, codes = quantize([[0.75] + 30 * [0.0] + [-3.1]], "float4_e2m1fn")
    >>> scales.tolist(), codes[0, [0, 31]].tolist()
    ([[126]], [3, 15])
    >>> blocks = quantize([[0.75] + 14 * [0.0] + [-3.0]], "nvfp4")
    >>> blocks.scales.tolist(), blocks.codes[0, [0, 15]].tolist(), float(blocks.tensor_scale)
    ([[126]], [3, 15], 0.0011160714784637094)
    """
    fmt, blocks_of = as_block_format(element, "element")
    block, given_scale = _as_block(block, blocks_of), as_tensor_scale(tensor_scale, blocks_of)
    recipe = as_recipe((blocks_of.recipe if blocks_of else "ocp_floor") if scale is None else scale, fmt, blocks_of)
    with np.errstate(invalid="ignore"):  # where a signalling NaN becomes a quiet one
        given = as_floats(values, "values").astype(np.float64)
    if given.ndim == 0 or given.shape[-1] % block:
        raise ValueError(
            f"values: got shape {given.shape}, must have a multiple of block={block} on the last axis; zeros fill it up"
        )
    blocks = given.reshape(*given.shape[:-1], given.shape[-1] // block, block)
    with np.errstate(all="ignore"):
        found = recipe.compute(blocks, fmt, given_scale)
    options: dict[str, Any] = {"rounding": rounding, "random": random, "random_bits": random_bits}
    scaled = np.asarray(found.values).reshape(given.shape)
    codes = encode(scaled, fmt, overflow="saturate", **options)
    if recipe.name.startswith("triton") and not fmt.has_nan:
        # Its bits of a NaN are those of a very large number.
        sign = np.signbit(given) * np.uint8(fmt.sign_mask)
        codes = np.where(np.isnan(scaled), np.uint8(fmt.max_finite) | sign, codes)
    if found.tensor_scale is None:
        return found.scales, codes
    return Quantized(found.scales, codes, found.tensor_scale)


def as_blocks(
    scales: ArrayLike, codes: ArrayLike, element: FloatFormat, argument: str, blocks: BlockFormat | None = None
) -> tuple[NDArray[np.uint8], Codes]:
    """Accept scales and codes, `argument` before their names; return the scales, and the codes block by block."""
    scale = "float8_e8m0fnu" if blocks is None else blocks.scale
    given = as_array(scales, f"{argument}scales")
    if given.dtype != np.uint8:
        raise TypeError(f"{argument}scales: got an array of {given.dtype}, must be uint8 codes of {scale}")
    elements = as_codes(codes, element, f"{argument}codes")
    fits = given.ndim and given.ndim == elements.ndim and given.shape[:-1] == elements.shape[:-1]
    if not fits or (elements.shape[-1] % given.shape[-1] if given.shape[-1] else elements.shape[-1]):
        raise ValueError(
            f"{argument}scales, {argument}codes: got shapes {given.shape} and {elements.shape}, must be "
            f"(..., K / block) and (..., K), as quantize returns them"
        )
    block = elements.shape[-1] // given.shape[-1] if given.shape[-1] else 0
    if blocks is not None and block not in (0, blocks.block):
        raise ValueError(f"{argument}codes: got blocks of {block}, must be blocks of {blocks.block} for {blocks}")
    return given, elements.reshape(*given.shape, block)


def scale_values(scales: NDArray[np.uint8], blocks: BlockFormat | None = None) -> Float64:
    """Return the values of scales."""
    if blocks is not None:
        return codes_to_float64(scales, blocks.scale)
    values = np.ldexp(1.0, scales.astype(np.int32) - SCALE_BIAS)
    return np.where(scales == SCALE_NAN, np.nan, values)


def dequantize(
    scales: ArrayLike,
    codes: ArrayLike,
    element: FloatFormat | BlockFormat | str,
    *,
    tensor_scale: float | None = None,
) -> NDArray[np.float32]:
    """Return the values of blocks.

    Parameters
    ----------
    scales : uint8 array of shape (..., K / block)
    codes : unsigned array of shape (..., K)
    element : FloatFormat, str or BlockFormat
        As of `quantize`.
    tensor_scale : float, optional
        For NVFP4: the scale of the tensor, a positive number of float32, or the NaN that `quantize` returns for a
        tensor with one; 1 unless given.

    Returns
    -------
    float32 array of shape (..., K)
        Exact; infinite where float32 ends, which takes a value near the largest of float32 and a scale that was rounded
        up. With a scale of the tensor, the exact product of scale and element times it, rounded once to nearest even.

    Raises
    ------
    TypeError, ValueError
        If `scales` are not uint8, `codes` are no codes of `element`, or the shapes do not fit.

    Examples
    --------
    >>> dequantize(np.uint8([128]), np.uint8([1, 15]), "float4_e2m1fn").tolist()
    [1.0, -12.0]
    """
    fmt, blocks_of = as_block_format(element, "element")
    of_tensor = as_tensor_scale(tensor_scale, blocks_of, may_be_nan=True)
    given, blocks = as_blocks(scales, codes, fmt, "", blocks_of)
    with np.errstate(all="ignore"):
        values = codes_to_float64(blocks, fmt) * scale_values(given, blocks_of)[..., np.newaxis]
        if of_tensor is not None:
            values = values * np.float64(of_tensor)
        narrow: NDArray[np.float32] = np.where(np.isnan(values), np.nan, values).astype(np.float32)
    return narrow.reshape(np.shape(codes))
