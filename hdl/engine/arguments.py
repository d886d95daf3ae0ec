"""The arguments of a product, checked: every error names the argument, the given value and the allowed ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.formats import FP32, FloatFormat, format_named
from golden.reduction import Reduction
from hdl.engine.conversion import to_codes
from hdl.engine.device import Features

__all__ = [
    "Matrices",
    "Operands",
    "as_chunk",
    "as_level",
    "as_matrices",
    "as_switch",
    "as_totals",
    "dtype_of",
    "is_among",
    "result_shape",
]


class Matrices(NamedTuple):
    """An operand as memory holds it.

    Parameters
    ----------
    codes : array
        uint16 codes of the operand format, or uint32 codes of float32 if `is_float32`: (..., rows, columns).
    is_transposed : bool
        It holds the transpose.
    is_float32 : bool
    """

    codes: NDArray[Any]
    is_transposed: bool
    is_float32: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrices themselves."""
        *batch, rows, columns = self.codes.shape
        return (*batch, columns, rows) if self.is_transposed else (*batch, rows, columns)

    def by_rows(self) -> Matrices:
        """Return the same with the axis last along which the array lies closest in memory."""
        strides = self.codes.strides
        if abs(strides[-2]) < abs(strides[-1]):
            return self._replace(codes=np.swapaxes(self.codes, -1, -2), is_transposed=not self.is_transposed)
        return self


class Operands(NamedTuple):
    """Both operands of a product."""

    a: Matrices
    b: Matrices

    @property
    def length(self) -> int:
        """Products of each result."""
        return self.a.shape[-1]


def dtype_of(fmt: FloatFormat) -> type[np.uint16] | type[np.uint32]:
    """Return the type of codes in arrays."""
    return np.uint32 if fmt == FP32 else np.uint16


def is_among(fmt: FloatFormat, names: tuple[str, ...]) -> bool:
    """Tell whether a format is one of those with these names."""
    return fmt.name in names and format_named(fmt.name) == fmt


def as_switch(given: bool, argument: str) -> bool:
    """Accept True and False."""
    if not isinstance(given, bool | np.bool_):
        raise TypeError(f"{argument}: got {given!r}, must be True or False")
    return bool(given)


def as_level(level: int, features: Features) -> int:
    """Accept a level that the engine has."""
    if not isinstance(level, int | np.integer) or isinstance(level, bool):
        raise TypeError(f"level: got {level!r}, must be one of {', '.join(map(str, features.levels))}")
    if level not in features.levels:
        allowed = ", ".join(map(str, features.levels))
        raise ValueError(f"level: got {level}, must be one of {allowed}, as the engine is built")
    return int(level)


def as_chunk(chunk: int | None, length: int, level: int, features: Features) -> int | None:
    """Accept a chunk; None stands for none, at level 0, and for one chunk, as a longer one than there are products."""
    Reduction(chunk=chunk)  # its own errors
    if level == 0 or chunk is None or chunk >= length:
        return None
    most = min((1 << features.chunk_bits) - 1, features.most)
    if chunk > most:
        one = ", or None for one chunk" if length <= features.most else ""
        raise ValueError(f"chunk: got {chunk}, must be at most {most}, as the engine is built{one}")
    return int(chunk)


def as_matrices(given: ArrayLike, fmt: FloatFormat, argument: str, *, transposed: bool = False) -> Matrices:
    """Accept codes or float32 values of at least two axes."""
    array = _as_array(given, argument)
    if array.ndim < 2:
        raise ValueError(f"{argument}: got shape {array.shape}, must have at least two axes")
    if array.dtype.kind == "f":
        values = _as_values(array, argument)
        return Matrices(values.view(np.uint32), transposed, True)
    return Matrices(_as_codes(array, given, fmt, argument), transposed, False)


def as_totals(given: ArrayLike, outer: FloatFormat, shape: tuple[int, ...], features: Features) -> NDArray[Any]:
    """Accept codes or values from which totals start; return codes."""
    if not features.has_initial:
        raise ValueError("initial: got an array, must be None, as the engine is built")
    array = _as_array(given, "initial")
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"initial: got shape {array.shape}, must broadcast to the result's shape {shape}")
    if array.dtype.kind == "f":
        return to_codes(_as_values(array, "initial"), outer)
    return _as_codes(array, given, outer, "initial")


def result_shape(given: Operands) -> tuple[int, ...]:
    """Return the shape of the product."""
    a, b = given.a.shape, given.b.shape
    if a[-1] != b[-2]:
        raise ValueError(f"a, b: got shapes {a} and {b}, transposed as asked, must be (..., M, K) and (..., K, N)")
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ValueError(f"a, b: got shapes {a} and {b}, whose leading axes must broadcast") from None
    return (*batch, a[-2], b[-1])


def _as_array(given: ArrayLike, argument: str) -> NDArray[Any]:
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(f"{argument}: got a masked array, must be an array without a mask; filled(value) makes one")
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}: got {given!r}, must be an array, or lists of equal lengths ({error})") from None


def _as_values(array: NDArray[Any], argument: str) -> NDArray[np.float32]:
    if array.dtype not in (np.float32, np.float16):
        raise TypeError(f"{argument}: got {array.dtype}, must be unsigned codes or float32; astype(np.float32) rounds")
    return (
        np.ascontiguousarray(array, np.float32) if array.dtype != np.float32 else array.astype(np.float32, copy=False)
    )


def _as_codes(array: NDArray[Any], given: ArrayLike, fmt: FloatFormat, argument: str) -> NDArray[Any]:
    dtype, from_python = np.dtype(dtype_of(fmt)), not isinstance(given, np.ndarray | np.generic)
    if array.dtype.kind != "u" and not (from_python and (array.dtype.kind == "i" or not array.size)):
        raise TypeError(f"{argument}: got {array.dtype}, must be {dtype} codes of {fmt}, or float32 values")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> fmt.width):
        wrong = int(array.max()) if int(array.min()) >= 0 else int(array.min())
        raise ValueError(f"{argument}: got code {wrong:#x}, must fit the {fmt.width} bits of {fmt}")
    return array.astype(dtype, copy=False)
