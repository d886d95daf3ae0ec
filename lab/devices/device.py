"""A device, and the known facts about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from golden import FloatFormat

__all__ = ["Array", "Device"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Device:
    """A device and the known facts about it.

    Parameters
    ----------
    function : callable
        Multiplies codes, or with `values` float32 arrays.
    operand : FloatFormat
    is_of_family : bool, optional
        Whether a `Reduction` or a `golden.Accumulator` computes it; None if that is unknown.
    model : Reduction or Accumulator, optional
        The rule, if exactly one describes these sums.
    values : bool
    """

    function: Callable[[Array, Array], Array]
    operand: FloatFormat
    is_of_family: bool | None
    model: Any = None
    values: bool = False
