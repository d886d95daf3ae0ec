"""Microscaling: blocks of narrow codes that share a scale (OCP Microscaling Formats specification, version 1.0).

A block of 32 values is stored as one scale and 32 codes of an element format; a value is ``scale * element``. Scales
are ``float8_e8m0fnu``: code ``c`` is 2**(c - 127), and 255 is NaN; there is no zero and no sign.

The specification gives the formats and the block of 32. The scale of a block is its largest magnitude rounded down to a
power of two, over the largest power of two of the element format. Elements beyond the largest value saturate, and a NaN
scale makes the whole block NaN. This package defines the points that the specification leaves open: exponents outside
of the scale's range are clamped to it, so that a block of zeros has the least scale; a block with a NaN or an infinity
has the scale NaN and codes of +0; and a dot product has a fixed order and fixed roundings.
"""

from golden.mx.blocks import BLOCK, SCALE_BIAS, SCALE_NAN, dequantize, quantize
from golden.mx.products import dot

__all__ = ["BLOCK", "SCALE_BIAS", "SCALE_NAN", "dequantize", "dot", "quantize"]
