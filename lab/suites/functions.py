"""The functions that the suites test, their vectors, and the conversion or fused step that computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from golden import BF16, FP16, FP32, FloatFormat

__all__ = ["FUNCTIONS", "Codes", "Conversion", "Function", "Operation", "Step", "VectorError", "Vectors"]

Codes: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Conversion:
    """`golden.convert` and the converter."""

    source: FloatFormat
    destination: FloatFormat

    def __str__(self) -> str:
        return f"{self.source} to {self.destination}"

    @property
    def result(self) -> FloatFormat:
        return self.destination


@dataclass(frozen=True)
class Step:
    """`golden.multiply_accumulate` and the fused step."""

    operand: FloatFormat
    accumulator: FloatFormat

    def __str__(self) -> str:
        return f"{self.operand} step into {self.accumulator}"

    @property
    def result(self) -> FloatFormat:
        return self.accumulator


Operation: TypeAlias = Conversion | Step


@dataclass(frozen=True)
class Function:
    """A function of the suites.

    Parameters
    ----------
    name : str
        As TestFloat names it.
    given : tuple of FloatFormat
        Formats of its operands.
    unit : Conversion or Step
        The operation that computes it.
    arguments : function
        Turns arrays of its operands into operands of the unit: a sum, for example, is a step with b = 1.
    """

    name: str
    given: tuple[FloatFormat, ...]
    unit: Operation
    arguments: Callable[..., tuple[Codes, ...]]


@dataclass(frozen=True)
class Vectors:
    """Lines of a file about one function.

    Parameters
    ----------
    function : Function
    given : sequence of unsigned arrays
        Codes, as in the file, one array for each operand.
    results : unsigned array
    flags : uint8 array
    lines : int array
        Their line numbers in the file, from 1.
    """

    function: Function
    given: Sequence[Codes]
    results: Codes
    flags: Codes
    lines: Codes


class VectorError(ValueError):
    """A line that does not fit the file's format; the message begins with file and line."""

    def __init__(self, name: str, line: int, got: str, must: str) -> None:
        super().__init__(f"{name}:{line}: got {got!r}, must be {must}")


def _as_given(fmt: FloatFormat, *codes: Codes) -> tuple[Codes, ...]:
    return codes


def _sum(fmt: FloatFormat, x: Codes, y: Codes) -> tuple[Codes, ...]:
    return x, np.full_like(x, fmt.one), y


def _difference(fmt: FloatFormat, x: Codes, y: Codes) -> tuple[Codes, ...]:
    return y, np.full_like(y, fmt.one | fmt.sign_mask), x


def _product(fmt: FloatFormat, x: Codes, y: Codes) -> tuple[Codes, ...]:
    # Adding a zero of the product's sign keeps the sign of a zero product.
    return x, y, (x ^ y) & x.dtype.type(fmt.sign_mask)


def _functions() -> Iterator[Function]:
    types = {"f16": FP16, "bf16": BF16, "f32": FP32}
    for source, destination in permutations(types, 2):
        fmt = types[source]
        conversion = Conversion(fmt, types[destination])
        yield Function(f"{source}_to_{destination}", (fmt,), conversion, partial(_as_given, fmt))
    for name, fmt in types.items():
        step = Step(fmt, fmt)
        yield Function(f"{name}_mulAdd", (fmt, fmt, fmt), step, partial(_as_given, fmt))
        yield Function(f"{name}_add", (fmt, fmt), step, partial(_sum, fmt))
        yield Function(f"{name}_sub", (fmt, fmt), step, partial(_difference, fmt))
        yield Function(f"{name}_mul", (fmt, fmt), step, partial(_product, fmt))


#: Every function that the converters and fused steps can compute, by name.
FUNCTIONS = {function.name: function for function in _functions()}
