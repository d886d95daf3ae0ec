"""Microscaling: blocks of narrow codes that share a scale (OCP Microscaling Formats specification, version 1.0).

A block of 32 values is stored as one scale and 32 codes of an element format; a value is ``scale * element``. Scales
are ``float8_e8m0fnu``: code ``c`` is 2**(c - 127), and 255 is NaN; there is no zero and no sign.

The specification gives the formats and the block of 32. The scale of a block is its largest magnitude rounded down to a
power of two, over the largest power of two of the element format. Elements beyond the largest value saturate, and a NaN
scale makes the whole block NaN. This package defines the points that the specification leaves open: exponents outside
of the scale's range are clamped to it, so that a block of zeros has the least scale; a block with a NaN or an infinity
has the scale NaN and codes of +0; and a dot product has a fixed order and fixed roundings.

`RECIPES` has other rules for the scale, each with its source. `NVFP4` has blocks of 16 with scales of
``float8_e4m3fn``, and one scale in float32 for the tensor (NUMERICS section 13).
"""

from golden.mx.blocks import BLOCK, SCALE_BIAS, SCALE_NAN, Quantized, dequantize, quantize
from golden.mx.products import dot
from golden.mx.recipes import NVFP4, RECIPES, BlockFormat, Recipe

__all__ = [
    "BLOCK",
    "NVFP4",
    "RECIPES",
    "SCALE_BIAS",
    "SCALE_NAN",
    "BlockFormat",
    "Quantized",
    "Recipe",
    "dequantize",
    "dot",
    "quantize",
]
