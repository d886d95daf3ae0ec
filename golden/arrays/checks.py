"""Check and convert the arguments of the public array functions."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden import formats
from golden.code_arrays import code_dtype
from golden.formats import FloatFormat

__all__ = [
    "as_array",
    "as_codes",
    "as_flag",
    "as_floats",
    "as_format",
    "as_values",
    "code_dtype",
    "refuse_mask",
    "same_shape",
]


def as_format(fmt: FloatFormat | str, argument: str, *, with_infinity: bool = False) -> FloatFormat:
    """Accept a format or the name of one; one that is computed in must have infinities."""
    given = formats.as_format(fmt, argument)
    if with_infinity and not given.has_inf:
        raise ValueError(
            f"{argument}: got {given} (specials {given.specials!r}), must have infinities (specials 'ieee')"
        )
    return given


def as_array(given: ArrayLike, argument: str) -> NDArray[Any]:
    """Accept anything that NumPy can turn into an array, but nothing masked: the mask would be lost."""
    if type(given) is np.ndarray:  # the common case, soon decided
        return given
    refuse_mask(given, argument)
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:  # the last from a tensor that requires gradients
        raise ValueError(f"{argument}: got {given!r}, must be an array, or lists of equal lengths ({error})") from None


def refuse_mask(given: object, argument: str) -> None:
    """Raise an error at a masked array, or a list with one in it."""
    if _is_masked(given):
        raise TypeError(
            f"{argument}: got a masked array, must be an array without a mask; "
            "filled(value) replaces the masked elements"
        )


def _is_masked(given: object) -> bool:
    if "numpy.ma" not in sys.modules:  # whoever has a masked array has imported it
        return False
    return isinstance(given, np.ma.MaskedArray) or (isinstance(given, list | tuple) and any(map(_is_masked, given)))


def as_flag(given: bool, argument: str) -> bool:
    """Accept True and False."""
    if not isinstance(given, bool | np.bool_):
        raise TypeError(f"{argument}: got {given!r}, must be True or False")
    return bool(given)


def _has_ints(given: NDArray[Any]) -> bool:
    """Return whether all elements are ints; NumPy makes objects of ints beyond 64 bits."""
    return given.dtype.kind in "iu" or (given.dtype.kind == "O" and all(type(each) is int for each in given.flat))


def as_codes(codes: ArrayLike, fmt: FloatFormat, argument: str) -> NDArray[Any]:
    """Accept an unsigned array, or Python ints, whose codes fit the format."""
    given, wanted = as_array(codes, argument), code_dtype(fmt)
    from_python = not isinstance(codes, (np.ndarray, np.generic)) and _has_ints(given)
    if given.size == 0 and not isinstance(codes, np.ndarray):
        given, from_python = given.astype(wanted), True
    if given.dtype.kind != "u" and not from_python:
        dtype = np.dtype(wanted)
        remedy = {"f": "golden.encode turns values into codes", "i": f"astype(np.{dtype}) makes codes of signed bits"}
        hint = f"; {remedy[given.dtype.kind]}" if given.dtype.kind in remedy else ""
        raise TypeError(f"{argument}: got an array of {given.dtype}, must be unsigned codes of {fmt} ({dtype}){hint}")
    if given.dtype != wanted or fmt.width not in (8, 16, 32):
        outside = (given < 0) | (given >> np.asarray(fmt.width - 1, given.dtype) > 1)
        if outside.any():
            worst = int(given[outside].flat[0])
            raise ValueError(f"{argument}: got code {worst:#x}, must be 0 to {(1 << fmt.width) - 1:#x} for {fmt}")
    return given.astype(wanted, copy=False)


def as_floats(values: ArrayLike, argument: str) -> NDArray[np.float32] | NDArray[np.float64]:
    """Accept floating-point arrays of up to 64 bits and Python numbers; float32 and float64 hold every one exactly."""
    given = as_array(values, argument)
    is_python = not isinstance(values, (np.ndarray, np.generic))
    if is_python and _has_long_int(values, given):
        raise ValueError(f"{argument}: got an int beyond 2**53, must be given as a float")
    if not (is_python and given.dtype.kind in "iu") and (given.dtype.kind != "f" or given.dtype.itemsize > 8):
        remedy = "; golden.decode turns codes into values, astype(np.float64) makes values of integers"
        hint = remedy if given.dtype.kind in "iu" else ""
        raise TypeError(f"{argument}: got an array of {given.dtype}, must be float16, float32 or float64 values{hint}")
    narrow = given.dtype.kind == "f" and given.dtype.itemsize <= 4
    return given.astype(np.float32, copy=False) if narrow else given.astype(np.float64, copy=False)


def _has_long_int(values: ArrayLike, given: NDArray[Any]) -> bool:
    """Tell whether Python numbers have an int that float64 would round before the format does.

    NumPy makes float64 of ints beside floats, and objects of ints beyond 64 bits.
    """
    match given.dtype.kind:
        case "i" | "u":
            return bool(((given > 2**53) | (given < -(2**53))).any())
        case "f" if not (isinstance(values, list | tuple) and (np.abs(given) >= 2**53).any()):
            return False
        case "f" | "O":
            each = np.asarray(values, object).flat
            return any(isinstance(number, int | np.integer) and abs(int(number)) > 2**53 for number in each)
    return False


def as_values(values: ArrayLike, argument: str) -> NDArray[np.float32]:
    """Accept float32 arrays, and float16 ones, whose values float32 holds."""
    given = as_array(values, argument)
    if given.dtype.kind != "f" or given.dtype.itemsize > 4:
        raise TypeError(
            f"{argument}: got an array of {given.dtype}, must be float32 values; golden.decode turns "
            f"codes into values, astype(np.float32) rounds wider values"
        )
    return given.astype(np.float32, copy=False)


def same_shape(arguments: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which all broadcast."""
    if len(set(shapes)) == 1:  # ten times as fast as NumPy's rule, and the common case
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(shape) for shape in shapes)
        raise ValueError(f"{arguments}: got shapes {listed}, must broadcast to one shape") from None
