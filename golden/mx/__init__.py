"""Microscaling: blocks of narrow codes that share a scale (OCP Microscaling Formats specification, version 1.0).

A block of 32 values is stored as one scale and 32 codes of an element format; a value is ``scale * element``. Scales
are ``float8_e8m0fnu``: code ``c`` is 2**(c - 127), and 255 is NaN; there is no zero and no sign.

From the specification: the formats, the block of 32, the scale of a block (its largest magnitude rounded down to a
power of two, over the largest power of two of the element format), elements beyond the largest value saturate, and a
NaN scale makes the whole block NaN. It leaves open what is defined here: exponents outside of the scale's range are
clamped to it, so that a block of zeros has the least scale; a block with a NaN or an infinity has the scale NaN and
codes of +0; and the order and the roundings of a dot product.
"""

from golden.mx.blocks import BLOCK, SCALE_BIAS, SCALE_NAN, dequantize, quantize
from golden.mx.products import dot

__all__ = ["BLOCK", "SCALE_BIAS", "SCALE_NAN", "dequantize", "dot", "quantize"]
