"""The device: a function that multiplies matrices of codes, or the file with the results of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.conversion import decode, encode
from golden.code_arrays import code_dtype
from golden.formats import FORMATS, FP32, FloatFormat
from golden.identification.probes import Probe

__all__ = ["Device", "result_format"]


class Device:
    """A function that is asked for products, and whose results are checked.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` multiplies arrays of shape (M, K) and (K, N).
    operand : FloatFormat
        Format of the factors.
    values : bool
        Whether the function takes and returns values in float32 in place of codes.
    initial : FloatFormat, optional
        Format of a third argument of shape (M, N), to which the products are added.
    """

    def __init__(
        self, function: Callable[..., Any], operand: FloatFormat, *, values: bool, initial: FloatFormat | None = None
    ) -> None:
        if not callable(function):
            raise TypeError(f"function: got {function!r}, must be callable: function(a, b) returns the product")
        self.function, self.operand, self.values, self.initial = function, operand, values, initial
        self.calls = 0

    def product(self, probe: Probe) -> NDArray[Any]:
        """Return the codes of a product, or of float32 for a function of values.

        Raises
        ------
        TypeError, ValueError
            If the function returns another shape or type.
        """
        self.calls += 1
        a, b = probe.a, probe.b
        wanted = (a.shape[0], b.shape[1])
        given = [(a, self.operand), (b, self.operand)]
        if self.initial is not None:
            zeros = np.zeros(wanted, code_dtype(self.initial))
            given.append((zeros if probe.initial is None else probe.initial, self.initial))
        arguments = [decode(codes, fmt) if self.values else codes.copy() for codes, fmt in given]
        try:
            results = np.asarray(self.function(*arguments))
        except TypeError as error:
            raise TypeError(
                f"function: got {self.function!r}, which must take {len(arguments)} arrays and return one, but fails: "
                f"{error}"
            ) from error
        if results.shape != wanted:
            raise ValueError(
                f"function: got a result of shape {results.shape} for factors {a.shape} and {b.shape}, must be {wanted}"
            )
        if self.values:
            if results.dtype.kind != "f" or results.dtype.itemsize > 4:
                raise TypeError(f"function: got results in {results.dtype}, must be float32 or float16")
            return encode(results.astype(np.float32), FP32)
        if results.dtype.kind not in "ui":
            raise TypeError(
                f"function: got results in {results.dtype}, must be unsigned codes; values=True takes values in float32"
            )
        return results.astype(f"u{results.dtype.itemsize}")


def result_format(device: Device) -> FloatFormat:
    """Return the format of the results, by the codes of 1.0, 1.5 and -2.0.

    Raises
    ------
    ValueError
        If no format has these codes, or two have.
    """
    if device.values:
        return FP32
    values = [1.0, 1.5, -2.0] if device.operand.emax >= 1 else [1.0, 1.5, -1.0]
    one = Probe("format", encode(values, device.operand)[:, None], encode([1.0], device.operand)[:, None])
    codes = device.product(one)[:, 0]
    fitting = [
        each for each in FORMATS if code_dtype(each) == codes.dtype and np.array_equal(encode(values, each), codes)
    ]
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(f"{value}: {int(code):#x}" for value, code in zip(values, codes, strict=True))
    raise ValueError(
        f"result: cannot tell the format of results ({shown}); "
        f"{' and '.join(map(str, fitting)) or 'no known format'} has these codes: give result= a FloatFormat"
    )
