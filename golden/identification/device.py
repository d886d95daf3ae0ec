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

__all__ = ["Device", "result_format", "unsigned_codes"]


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
    result : FloatFormat, optional
        Format of the results, where it is known.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        operand: FloatFormat,
        *,
        values: bool,
        initial: FloatFormat | None = None,
        result: FloatFormat | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"function: got {function!r}, must be callable: function(a, b) returns the product")
        self.function, self.operand, self.values, self.initial = function, operand, values, initial
        self.result = result
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
        return unsigned_codes(results, self.result, "function", "values=True takes values in float32")


def unsigned_codes(given: NDArray[Any], fmt: FloatFormat | None, where: str, remedy: str) -> NDArray[Any]:
    """Return codes as unsigned integers; signed ones of the width of the format's codes are the same bits.

    Parameters
    ----------
    given : array
    fmt : FloatFormat or None
        Format of the codes; None where it is not known.
    where, remedy : str
        Begin and end of the message of an error; the end is for floats.

    Raises
    ------
    TypeError
        If the array holds no integers, or they are of another width.
    """
    allowed = [np.dtype(code_dtype(fmt))] if fmt else [np.dtype(each) for each in (np.uint8, np.uint16, np.uint32)]
    kind, size = given.dtype.kind, given.dtype.itemsize
    if (kind in "ui" and size in [each.itemsize for each in allowed]) or (kind == "u" and fmt):
        return given.astype(f"u{size}")
    hints = {"f": f"; {remedy}", "i": "; NumPy makes int64 of Python's ints unless it is given a dtype" * (size == 8)}
    raise TypeError(
        f"{where}: got results in {given.dtype}, must be unsigned codes{f' of {fmt}' if fmt else ''} in "
        f"{' or '.join(map(str, allowed))}, or the same bits in signed integers{hints.get(kind, '')}"
    )


def result_format(device: Device) -> FloatFormat:
    """Return the format of the results: the one that is known, or by the codes of a few products.

    Raises
    ------
    ValueError
        If no format has these codes, or two have.
    """
    if device.result is not None:
        return device.result
    if device.values:
        return FP32
    values = [1.0, 1.5, -2.0] if device.operand.emax >= 1 else [1.0, 1.5, -1.0]
    codes = _scaled(device, encode(values, device.operand), 1.0)
    fitting = [
        each for each in FORMATS if code_dtype(each) == codes.dtype and np.array_equal(encode(values, each), codes)
    ]
    if len(fitting) > 1:
        fitting = _told_apart(device, fitting)
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(f"{value}: {int(code):#x}" for value, code in zip(values, codes, strict=True))
    raise ValueError(
        f"result: cannot tell the format of results ({shown}); these are codes in {codes.dtype} of "
        f"{' and '.join(map(str, fitting)) or 'no known format'}: give result= a FloatFormat"
    )


def _scaled(device: Device, factors: NDArray[Any], factor: float) -> NDArray[Any]:
    """Return a device's products of codes with one value."""
    return device.product(Probe("format", factors[:, None], encode([factor], device.operand)[:, None]))[:, 0]


def _told_apart(device: Device, fitting: list[FloatFormat]) -> list[FloatFormat]:
    """Return which of several formats have the codes of infinity and, if that leaves a choice, of the largest binade.

    A format that ends in another binade than the rest returns 1.5 there as a number; the rest overflow.
    """
    operand = device.operand
    if operand.has_inf or operand.has_nan:
        special = operand.inf if operand.has_inf else operand.nan
        code = _scaled(device, np.array([special], code_dtype(operand)), 1.0)[0]
        value = decode(special, operand)
        fitting = [each for each in fitting if encode(value, each) == code] or fitting
    exponent = max(each.emax for each in fitting)
    shares = exponent // 2, exponent - exponent // 2
    if len(fitting) > 1 and shares[1] <= operand.emax:
        code = _scaled(device, encode([1.5 * 2.0 ** shares[0]], operand), 2.0 ** shares[1])[0]
        fitting = [each for each in fitting if encode(1.5 * 2.0**exponent, each) == code] or fitting
    return fitting
