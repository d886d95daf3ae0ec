"""Recipes of block scales by name: who computes a scale in which way, and what becomes of NaN, infinity and zeros.

A recipe gives the code of a block's scale, and the factor by which the values of the block are multiplied before they
are rounded to elements. Those of other projects compute in float32, to nearest even, step by step as their code does:
two recipes whose formulas are equal on paper differ in bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import encode
from golden.arrays.rounding import codes_to_float64, largest_value
from golden.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FloatFormat
from golden.nearest import did_you_mean

__all__ = ["NVFP4", "RECIPES", "SCALE_BIAS", "SCALE_NAN", "BlockFormat", "Recipe", "Scaled", "as_recipe"]

#: Bias of a scale of ``float8_e8m0fnu``: its code less its exponent.
SCALE_BIAS = 127

#: The code of a scale of ``float8_e8m0fnu`` that is NaN.
SCALE_NAN = 255

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
_ONE, _LARGEST = np.float32(1), np.finfo(np.float32).max
_INFINITY = 0x7F800000


class Scaled(NamedTuple):
    """Scales of blocks, the values to be rounded to elements, and the scale of the tensor (None: there is none)."""

    scales: NDArray[np.uint8]
    values: NDArray[Any]
    tensor_scale: np.float32 | None = None


@dataclass(frozen=True)
class BlockFormat:
    """A format of blocks whose scales are numbers of a format, with one more scale for the whole tensor.

    Parameters
    ----------
    name : str
    element : FloatFormat
    block : int
        Values that share a scale.
    scale : FloatFormat
        Of the scales.
    recipe : str
        The recipe of scales unless another is named.
    """

    name: str
    element: FloatFormat
    block: int
    scale: FloatFormat
    recipe: str

    def __str__(self) -> str:
        return self.name


#: NVIDIA's format: ``float4_e2m1fn`` in blocks of 16, a ``float8_e4m3fn`` scale per block, a float32 scale per tensor.
NVFP4 = BlockFormat("nvfp4", FLOAT4_E2M1FN, 16, FLOAT8_E4M3FN, "nvidia_nvfp4")


@dataclass(frozen=True)
class Recipe:
    """How the scale of a block is computed.

    Parameters
    ----------
    name : str
    source : str
        Whose rule it is, and where it stands.
    rule : str
        The scale, and its rounding.
    specials : str
        What becomes of NaN, of infinity, and of a block of zeros.
    compute : callable
        From blocks (..., blocks, values of a block), the element format and a scale of the tensor that is given (or
        None) to a `Scaled`.
    format : BlockFormat, optional
        The blocks that it is for; None: those with scales of ``float8_e8m0fnu``.
    elements : tuple of FloatFormat
        The elements that it is for; all of them, if it names none.
    """

    name: str
    source: str
    rule: str
    specials: str
    compute: Callable[[NDArray[Any], FloatFormat, np.float32 | None], Scaled]
    format: BlockFormat | None = None
    elements: tuple[FloatFormat, ...] = ()


# Scaled by any scale, a smaller magnitude is still below every element's smallest digit, and does not become 0.
_TINY = 2.0**-800


def _power_of_two(blocks: NDArray[Any], exponent: NDArray[np.int64], is_number: NDArray[np.bool_]) -> Scaled:
    """Return blocks divided by powers of two; one with a NaN or an infinity has the scale NaN and zeros."""
    exponent = np.clip(exponent, -SCALE_BIAS, SCALE_BIAS)
    scales = np.where(is_number, exponent + SCALE_BIAS, SCALE_NAN).astype(np.uint8)
    numbers = np.where(is_number[..., np.newaxis], blocks.astype(np.float64), 0.0)
    small = (np.abs(numbers) < _TINY) & (numbers != 0)
    numbers = np.where(small, np.copysign(_TINY, numbers), numbers)
    return Scaled(scales, np.ldexp(numbers, -exponent[..., np.newaxis].astype(np.int32)))


def _ocp_floor(blocks: NDArray[Any], element: FloatFormat, _: np.float32 | None) -> Scaled:
    largest = np.abs(blocks.astype(np.float64)).max(axis=-1)
    # The exponent of a number is one below frexp's; 0 has the least.
    exponent = np.where(largest > 0, np.frexp(largest)[1].astype(np.int64) - 1, -(10**6)) - element.emax
    return _power_of_two(blocks, exponent, np.isfinite(largest))


def _round_up(blocks: NDArray[Any], element: FloatFormat, _: np.float32 | None) -> Scaled:
    largest = np.abs(blocks.astype(np.float64)).max(axis=-1)
    fraction, exponent = np.frexp(largest)
    of_element, of_largest = np.frexp(largest_value(element))
    # The least power of two that is at least the quotient: 2^(e - e') where its fraction is not above the other's.
    exponent = exponent.astype(np.int64) - int(of_largest) + (fraction > of_element)
    return _power_of_two(blocks, np.where(largest > 0, exponent, -(10**6)), np.isfinite(largest))


def _float32(blocks: NDArray[Any]) -> Float32:
    return blocks.astype(np.float32)


def _transformer_engine_mx(blocks: NDArray[Any], element: FloatFormat, _: np.float32 | None) -> Scaled:
    values = _float32(blocks)
    largest = np.fmax.reduce(np.abs(values), axis=-1, initial=0)  # which passes over NaNs
    quotient = largest * np.float32(1 / largest_value(element))
    bits = np.asarray(quotient).view(np.uint32)
    field, fraction = bits >> 23, bits & 0x7FFFFF
    goes_up = (fraction > 0) & (field != 0xFE) & ~((field == 0) & (fraction <= 0x400000))
    scales = np.where(np.isinf(quotient), 0xFE, field + goes_up).astype(np.uint8)
    # Its reciprocal has the field 254 - code: 0 for the largest scale. For the smallest, the code says 1.
    reciprocal = np.asarray((np.uint32(254) - scales) << np.uint32(23)).view(np.float32)
    return Scaled(scales, values * np.where(scales == 0, _ONE, reciprocal)[..., np.newaxis])


def _triton_mx(blocks: NDArray[Any], element: FloatFormat, *, up: bool) -> Scaled:
    values = _float32(blocks)
    largest = np.abs(values).max(axis=-1)
    quotient = largest / np.float32(largest_value(element) if up else 2.0**element.emax)
    bits = np.asarray(quotient).view(np.uint32) + np.uint32(0x7FFFFF if up else 0) & np.uint32(_INFINITY)
    return Scaled((bits >> 23).astype(np.uint8), values * _reciprocal(bits.view(np.float32))[..., np.newaxis])


def _reciprocal(scale: Float32) -> Float32:
    """Return 1 / scale in float32, 0 for a scale of 0."""
    return np.where(scale == 0, np.float32(0), _ONE / scale)


def _of_tensor(values: Float32, given: np.float32 | None) -> tuple[np.float32, np.float32]:
    """Return what brings the largest value of a tensor to 448 * 6, and its reciprocal, the scale of the tensor."""
    if given is not None:
        return np.float32(_ONE / given), given
    largest = np.abs(values).max(initial=np.float32(0))
    encoding = np.minimum(np.float32(448 * 6) / largest, _LARGEST)
    encoding = _ONE if encoding == 0 else encoding
    return np.float32(encoding), np.float32(_ONE / encoding)


def _e4m3(scale: Float32) -> tuple[NDArray[np.uint8], Float32]:
    """Return the codes of block scales, to nearest even and at most 448, and their values."""
    codes = encode(scale, FLOAT8_E4M3FN, overflow="saturate")
    return np.asarray(codes), codes_to_float64(np.asarray(codes), FLOAT8_E4M3FN).astype(np.float32)


def _nvfp4(blocks: NDArray[Any], given: np.float32 | None, *, folded: bool) -> Scaled:
    values = _float32(blocks)
    encoding, decoding = _of_tensor(values, given)
    largest = np.abs(values).max(axis=-1)
    six = np.float32(6)
    wanted = largest * (encoding * (_ONE / six)) if folded else largest / six * encoding
    scales, kept = _e4m3(np.minimum(wanted, _LARGEST))
    factor = np.minimum(_ONE / (kept * decoding), _LARGEST)
    return Scaled(scales, values * factor[..., np.newaxis], decoding)


def _triton_nvfp4(blocks: NDArray[Any], given: np.float32 | None) -> Scaled:
    tensor_scale = _ONE if given is None else given
    values = _float32(blocks) / tensor_scale
    scales, kept = _e4m3(np.abs(values).max(axis=-1) / np.float32(6))
    return Scaled(scales, values * _reciprocal(kept)[..., np.newaxis], tensor_scale)


_TE = "TransformerEngine"
_TRITON = "triton_kernels, numerics_details/mxfp.py at 018a674f (downcast_to_mxfp_torch)"
_FP8 = (FLOAT8_E4M3FN, FLOAT8_E5M2)
_MX_TRITON = (FLOAT4_E2M1FN, *_FP8)

_ALL = (
    Recipe(
        "ocp_floor",
        "OCP Microscaling Formats specification, version 1.0, section 6.3",
        "the largest magnitude rounded down to a power of two, over the largest power of two of the element; exact",
        "defined here: a NaN or an infinity gives the scale NaN and codes of +0; zeros give 2^-127",
        _ocp_floor,
    ),
    Recipe(
        "round_up",
        "defined here, after the rule of NVIDIA's recipes: no value saturates",
        "the largest magnitude over the largest value of the element, rounded up to a power of two; exact",
        "as ocp_floor",
        _round_up,
    ),
    Recipe(
        "transformer_engine_mx",
        f"{_TE}, common/util/ptx.cuh (float_to_e8m0, exp2f_rcp)",
        "the largest magnitude times the float32 reciprocal of the element's largest value, rounded up to a power of "
        "two; 2^-127 scales nothing: its values are multiplied by 1",
        "a NaN is passed over by the maximum and stays a NaN; an infinity gives the scale 2^127 and a factor of 0; "
        "zeros give 2^-127",
        _transformer_engine_mx,
        elements=_FP8,
    ),
    Recipe(
        "triton_mx_up",
        f"{_TRITON}, ROUND_UP",
        "the float32 quotient of the largest magnitude and the element's largest value, its bits rounded up to a power "
        "of two; a subnormal quotient becomes 2^-126",
        "a NaN gives the code 0 and a factor of 0; an infinity the code 255 and a factor of 0; zeros the code 0, and "
        "codes of zeros; a NaN among values of an element without one is its largest value",
        lambda blocks, element, _: _triton_mx(blocks, element, up=True),
        elements=_MX_TRITON,
    ),
    Recipe(
        "triton_mx_floor",
        f"{_TRITON}, ROUND_DOWN",
        "the float32 quotient of the largest magnitude and the element's largest power of two, its bits cut to a power "
        "of two; a subnormal quotient becomes 0",
        "a NaN or an infinity gives the code 255 and a factor of 0; otherwise as triton_mx_up",
        lambda blocks, element, _: _triton_mx(blocks, element, up=False),
        elements=_MX_TRITON,
    ),
    Recipe(
        "nvidia_nvfp4",
        "NVIDIA, Pretraining Large Language Models with NVFP4 (arXiv 2509.25149), appendix on quantization",
        "largest magnitude / 6 * (448 * 6 / the tensor's largest magnitude), in float32, to nearest even in E4M3",
        "a NaN makes the scale of the tensor NaN; an infinite tensor has the scale 1, its block 448; zeros the scale 0",
        lambda blocks, _, given: _nvfp4(blocks, given, folded=False),
        format=NVFP4,
    ),
    Recipe(
        "transformer_engine_nvfp4",
        f"{_TE}, custom_recipes/quantization_ref_nvfp4.py at 0a6e0d6a (_quantize_blockwise_reference)",
        "largest magnitude * (448 * 6 / the tensor's largest magnitude * (1 / 6)), in float32, to nearest even in E4M3",
        "as nvidia_nvfp4",
        lambda blocks, _, given: _nvfp4(blocks, given, folded=True),
        format=NVFP4,
    ),
    Recipe(
        "triton_nvfp4",
        f"{_TRITON}, ROUND_NEAREST with scales of E4M3",
        "largest magnitude / 6 in float32, at most 448, to nearest even in E4M3; the scale of the tensor is 1, or one "
        "that is given, by which values are divided first",
        "a NaN gives the scale NaN and codes of the largest value; an infinity the scale 448; zeros the scale 0 and a "
        "factor of 0",
        lambda blocks, _, given: _triton_nvfp4(blocks, given),
        format=NVFP4,
    ),
)

#: The recipes by name, for ``scale=`` of `golden.mx.quantize`.
RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in _ALL})


def as_recipe(scale: str, element: FloatFormat, blocks: BlockFormat | None) -> Recipe:
    """Accept the name of a recipe for blocks of an element; an error names the recipes for them.

    Raises
    ------
    TypeError, ValueError
        If `scale` is no string, there is no such recipe, or it is for other blocks.
    """
    fitting = [
        recipe.name
        for recipe in RECIPES.values()
        if recipe.format == blocks and (not recipe.elements or element in recipe.elements)
    ]
    what = blocks or f"blocks of {element}"
    if not isinstance(scale, str):
        raise TypeError(f"scale: got {scale!r}, must be one of {', '.join(fitting)} for {what}")
    if scale not in fitting:
        raise ValueError(
            f"scale: got {scale!r}, must be one of {', '.join(fitting)} for {what}{did_you_mean(scale, fitting)}"
        )
    return RECIPES[scale]
