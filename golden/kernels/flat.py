"""Calls of the compiled library for flat arrays. Each returns None if NumPy has to do the work."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.code_arrays import code_dtype
from golden.formats import FloatFormat
from golden.kernels.library import active, address, format_number

__all__ = ["convert", "decode", "encode", "quantize"]


def _serves(fmt: FloatFormat) -> bool:
    """Tell whether the library has the format: codes of 2 or 4 bytes, with the special codes of IEEE 754."""
    return fmt.is_ieee and fmt.width > 8


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself or a copy, contiguous, aligned and in native byte order."""
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def encode(values: NDArray[Any], fmt: FloatFormat) -> NDArray[Any] | None:
    """Round float32 or float64 values into codes of the format."""
    served = active()
    if served is None or not _serves(fmt):
        return None
    given, codes = _plain(values), np.empty(values.shape, code_dtype(fmt))
    bits = 8 * given.itemsize
    served.library.cbfloat_encode(
        served.path, served.threads, format_number(fmt), given.size, address(given), bits, address(codes)
    )
    return codes


def quantize(values: NDArray[Any], fmt: FloatFormat, out: NDArray[np.float32]) -> bool:
    """Round float32 or float64 values to the format, into a contiguous array; False if NumPy must do it."""
    served = active()
    if served is None or not fmt.is_ieee:
        return False
    given = _plain(values)
    bits = 8 * given.itemsize
    served.library.cbfloat_quantize(
        served.path, served.threads, format_number(fmt), given.size, address(given), bits, address(out)
    )
    return True


def decode(codes: NDArray[Any], fmt: FloatFormat) -> NDArray[np.float32] | None:
    """Return the values of codes, which have the dtype of the format."""
    served = active()
    if served is None or not _serves(fmt):
        return None
    given, values = _plain(codes), np.empty(codes.shape, np.float32)
    served.library.cbfloat_decode(
        served.path, served.threads, format_number(fmt), given.size, address(given), address(values)
    )
    return values


def convert(codes: NDArray[Any], source: FloatFormat, destination: FloatFormat) -> NDArray[Any] | None:
    """Return codes of another format, without flags."""
    served = active()
    if served is None or not (_serves(source) and _serves(destination)):
        return None
    given, converted = _plain(codes), np.empty(codes.shape, code_dtype(destination))
    formats = format_number(source), format_number(destination)
    served.library.cbfloat_convert(
        served.path, served.threads, *formats, given.size, address(given), address(converted)
    )
    return converted
