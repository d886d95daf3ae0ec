"""A device, and what is known of it."""

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
    """A device and what is known of it.

    Parameters
    ----------
    function : callable
        Multiplies codes, or with `values` float32 arrays.
    operand : FloatFormat
    is_of_family : bool, optional
        Whether a `Reduction` or a `golden.Accumulator` computes it; None if nobody has said so.
    model : Reduction or Accumulator, optional
        The rule, where only one describes these sums.
    values : bool
    """

    function: Callable[[Array, Array], Array]
    operand: FloatFormat
    is_of_family: bool | None
    model: Any = None
    values: bool = False
