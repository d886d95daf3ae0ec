"""The arguments of the kernels, field by field as golden/cuda/source/product.h declares them."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_uint32, c_void_p

from golden.formats import SPECIALS, FloatFormat

__all__ = [
    "AXES",
    "STAGE",
    "Blocks",
    "Elementwise",
    "Packing",
    "Product",
    "Softmax",
    "SourceFields",
    "TargetFields",
    "target",
]

#: Axes of a batch that the kernels know.
AXES = 4

#: Products that are copied into shared memory at once; panels hold whole stages.
STAGE = 16

_Axes = c_int64 * AXES


class TargetFields(ctypes.Structure):
    """A format and the exponent by which its values are scaled."""

    _fields_ = [
        ("exponent_bits", c_int32),
        ("fraction_bits", c_int32),
        ("bias", c_int32),
        ("specials", c_int32),
        ("exponent", c_int32),
    ]


class SourceFields(ctypes.Structure):
    """Where the elements of a batch of matrices lie."""

    _fields_ = [
        ("data", c_void_p),
        ("rows", c_void_p),
        ("columns", c_void_p),
        ("row_stride", c_int64),
        ("column_stride", c_int64),
        ("axes", _Axes),
        ("memory", c_int32),
        ("padding", c_int32),
    ]


class Packing(ctypes.Structure):
    """The argument of `pack`."""

    _fields_ = [
        ("source", SourceFields),
        ("lengths", _Axes),
        ("lanes", c_int64),
        ("k", c_int64),
        ("width", c_int64),
        ("depth", c_int64),
        ("panels", c_void_p),
        ("largest", c_void_p),
        ("target", TargetFields),
        ("halves", c_int32),
    ]


class Product(ctypes.Structure):
    """The argument of `multiply_128`, `multiply_64` and `multiply_32`."""

    _fields_ = [
        ("lengths", _Axes),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("depth", c_int64),
        ("chunk", c_int64),
        ("row_tiles", c_int64),
        ("column_tiles", c_int64),
        ("a", c_void_p),
        ("b", c_void_p),
        ("largest_a", c_void_p),
        ("largest_b", c_void_p),
        ("a_axes", _Axes),
        ("b_axes", _Axes),
        ("initial", SourceFields),
        ("result", c_void_p),
        ("result_row", c_int64),
        ("result_column", c_int64),
        ("result_axes", _Axes),
        ("result_memory", c_int32),
        ("initial_target", TargetFields),
        ("inner", TargetFields),
        ("outer", TargetFields),
        ("destination", TargetFields),
        ("inner_limit", c_float),
        ("outer_limit", c_float),
        ("join_factor", c_float),
        ("safe", c_float),
        ("product_factor", c_float),
        ("smallest", c_float),
        ("growth", c_float),
        ("mode", c_int32),
        ("last_mode", c_int32),
        ("key", c_uint32 * 2),
        ("call", c_uint32),
        ("random_bits", c_int32),
        ("first_index", c_uint32),
        ("batch_index", c_uint32),
        ("row_index", c_uint32),
    ]


class Elementwise(ctypes.Structure):
    """The argument of `round_values`: contiguous values, rounded to a format and stored as another memory has them."""

    _fields_ = [
        ("values", c_void_p),
        ("result", c_void_p),
        ("count", c_int64),
        ("memory", c_int32),
        ("result_memory", c_int32),
        ("target", TargetFields),
        ("mode", c_int32),
        ("key", c_uint32 * 2),
        ("call", c_uint32),
        ("random_bits", c_int32),
        ("first_index", c_uint32),
        ("step", c_uint32),
    ]


class Blocks(ctypes.Structure):
    """The argument of `round_blocks`: rows of contiguous values, rounded to blocks of elements with one scale."""

    _fields_ = [
        ("values", c_void_p),
        ("result", c_void_p),
        ("length", c_int64),
        ("block", c_int64),
        ("blocks", c_int64),
        ("memory", c_int32),
        ("target", TargetFields),
        ("emax", c_int32),
        ("lanes", c_int32),
    ]


class Softmax(ctypes.Structure):
    """The argument of `softmax16`: rows of contiguous values, each softmax'ed as NUMERICS section 6 has it."""

    _fields_ = [
        ("values", c_void_p),
        ("result", c_void_p),
        ("exponentials", c_void_p),
        ("rows", c_int64),
        ("length", c_int64),
        ("memory", c_int32),
        ("result_memory", c_int32),
        ("target", TargetFields),
        ("padding", c_int32),
    ]


def target(fmt: FloatFormat, exponent: int = 0) -> TargetFields:
    """Return a format, its values times 2^`exponent`, as the kernels have it.

    Raises
    ------
    ValueError
        If the format has no subnormals, or infinity and NaN in one code.
    """
    if not fmt.subnormals or fmt.has_merged:
        raise ValueError(f"fmt: got {fmt}, must have subnormals and no merged specials on a card; NumPy has others")
    specials = SPECIALS.index(fmt.specials)
    return TargetFields(fmt.exponent_bits, fmt.fraction_bits, fmt.bias, specials, exponent)
