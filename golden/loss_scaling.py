"""Dynamic loss scaling as a rule on numbers (NUMERICS section 7); it knows no training framework."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from golden.formats import CBFLOAT16, FloatFormat, as_format

__all__ = ["DynamicLossScale", "LossScaleState", "as_loss_scale"]


@dataclass(frozen=True)
class LossScaleState:
    """The state that changes from step to step.

    Parameters
    ----------
    loss_scale : numpy.float32
        What the loss is multiplied by.
    non_clamped_scale : numpy.float32
        The scale before `min_loss_scale` had its say: below it, the gradients would have needed a smaller scale.
    steps_since_rescale, overflows_since_rescale : int
        Steps, and steps that were not finite, since the scale was last halved or doubled.
    num_skipped_steps : int
        Steps that were not finite since the beginning.
    overflows_in_a_row : int
        Steps that were not finite since the last finite one; only hysteresis asks for it.
    """

    loss_scale: np.float32
    non_clamped_scale: np.float32
    steps_since_rescale: int = 0
    overflows_since_rescale: int = 0
    num_skipped_steps: int = 0
    overflows_in_a_row: int = 0

    def to_dict(self, *, with_hysteresis: bool = False) -> dict[str, float | int]:
        """Return the values that a checkpoint keeps, as Python numbers; the last one with hysteresis only."""
        counters = {name: int(getattr(self, name)) for name in _COUNTERS[: None if with_hysteresis else -1]}
        return {"loss_scale": float(self.loss_scale)} | counters

    def with_values(self, values: Mapping[str, Any]) -> LossScaleState:
        """Return this state with its values replaced by a checkpoint's.

        Parameters
        ----------
        values : mapping of str to number
            As `to_dict` returns it; any of the names may be missing.

        Raises
        ------
        TypeError, ValueError
            If a name is unknown or a value is not possible.
        """
        new: dict[str, Any] = {}
        for name, given in values.items():
            if name == "loss_scale":
                new["loss_scale"] = new["non_clamped_scale"] = as_loss_scale(given, name)
            elif name not in _COUNTERS:
                known = ("loss_scale", *_COUNTERS)
                near = difflib.get_close_matches(name, known, n=1)
                raise ValueError(
                    f"{name}: is not part of the state, must be one of {', '.join(known)}"
                    + (f"; perhaps {near[0]} is meant" if near else "")
                )
            elif not _is_number(given) or not given >= 0 or given != given // 1:
                raise ValueError(f"{name}: got {given!r}, must be a number of steps, 0 or more")
            else:
                new[name] = int(given)
        return replace(self, **new)


_COUNTERS = ("steps_since_rescale", "overflows_since_rescale", "num_skipped_steps", "overflows_in_a_row")


@dataclass(frozen=True, kw_only=True)
class DynamicLossScale:
    """The rule of NUMERICS section 7: halve the scale after an overflow, double it after many steps without one.

    All arithmetic is in fp32. Parameters that are not fp32 numbers are rounded to the nearest.

    Parameters
    ----------
    init_scale : float
        Scale of the first step; `max_loss_scale` if that is smaller.
    steps_per_increase : int
        The scale doubles when *more* than this many steps have passed since it last changed, 0 or more.
    min_loss_scale, max_loss_scale : float
        Limits of the scale.
    overflow_tolerance : float
        Share of steps that may overflow, 0 to 1; the scale is halved when more do.
    hysteresis : int
        So many steps in a row must overflow before the scale is halved. 1 is the contract.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> rule = DynamicLossScale.for_format("cbfloat16")
    >>> state = rule.next(rule.start(), finite=False)
    >>> float(state.loss_scale) == 2.0**30, state.num_skipped_steps
    (True, 1)
    """

    init_scale: float
    steps_per_increase: int = 2000
    min_loss_scale: float = 2.0**-14
    max_loss_scale: float = 2.0**15
    overflow_tolerance: float = 0.0
    hysteresis: int = 1

    def __post_init__(self) -> None:
        for name in ("max_loss_scale", "min_loss_scale", "init_scale"):  # the first may stand for the last, too
            as_loss_scale(getattr(self, name), name)
        for name, least in (("steps_per_increase", 0), ("hysteresis", 1)):
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool):
                raise TypeError(f"{name}: got {given!r}, must be an int from {least}")
            if given < least:
                raise ValueError(f"{name}: got {given}, must be at least {least}")
        if not _is_number(self.overflow_tolerance):
            raise TypeError(f"overflow_tolerance: got {self.overflow_tolerance!r}, must be a number from 0 to 1")
        if not 0 <= self.overflow_tolerance <= 1:
            raise ValueError(
                f"overflow_tolerance: got {self.overflow_tolerance}, must be a share of the steps, from 0 to 1"
            )
        if self.min_loss_scale > self.max_loss_scale:
            raise ValueError(
                f"min_loss_scale: got {self.min_loss_scale}, must not be above max_loss_scale, {self.max_loss_scale}"
            )

    @classmethod
    def for_format(
        cls,
        half: FloatFormat | str,
        *,
        init_scale: float | None = None,
        steps_per_increase: int | None = None,
        min_loss_scale: float | None = None,
        max_loss_scale: float | None = None,
        overflow_tolerance: float = 0.0,
        hysteresis: int = 1,
    ) -> DynamicLossScale:
        """Fill in the defaults of a 16-bit format where an argument is None.

        Parameters
        ----------
        half : FloatFormat or str
            The 16-bit format that the training computes in. cbfloat16 starts at 2^31, its largest power of two, and
            every other format at 2^15.
        init_scale, steps_per_increase, min_loss_scale, max_loss_scale, overflow_tolerance, hysteresis
            See the class. None stands for the default; 0 does not.

        Raises
        ------
        TypeError, ValueError
            As the class does.
        """
        largest = 2.0**31 if as_format(half, "half") == CBFLOAT16 else 2.0**15
        maximum = largest if max_loss_scale is None else max_loss_scale
        return cls(
            init_scale=maximum if init_scale is None else init_scale,
            steps_per_increase=2000 if steps_per_increase is None else steps_per_increase,
            min_loss_scale=2.0**-14 if min_loss_scale is None else min_loss_scale,
            max_loss_scale=maximum,
            overflow_tolerance=overflow_tolerance,
            hysteresis=hysteresis,
        )

    @classmethod
    def cs_dynamic_loss_scale(
        cls,
        *,
        initial_loss_scale: float = 2.0**15,
        increment_period: int = 2000,
        min_loss_scale: float = 2.0**-14,
        max_loss_scale: float = 2.0**15,
        overflow_tolerance: float = 0.05,
    ) -> DynamicLossScale:
        """Return the rule of the TensorFlow era, ``CSDynamicLossScale`` of the public Model Zoo (release 1).

        One step in twenty may overflow, and the scale doubles *on* step `increment_period`, not on the step after it:
        the same rule with one step less.

        Parameters
        ----------
        initial_loss_scale, increment_period, min_loss_scale, max_loss_scale, overflow_tolerance
            Under the names of that class; `increment_period` is at least 1.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong.
        """
        if not isinstance(increment_period, int) or isinstance(increment_period, bool):
            raise TypeError(f"increment_period: got {increment_period!r}, must be an int from 1")
        if increment_period < 1:
            raise ValueError(f"increment_period: got {increment_period}, must be at least 1")
        return cls(
            init_scale=initial_loss_scale,
            steps_per_increase=increment_period - 1,
            min_loss_scale=min_loss_scale,
            max_loss_scale=max_loss_scale,
            overflow_tolerance=overflow_tolerance,
        )

    def start(self) -> LossScaleState:
        """Return the state before the first step."""
        scale = min(np.float32(self.max_loss_scale), np.float32(self.init_scale))
        return LossScaleState(loss_scale=scale, non_clamped_scale=scale)

    def next(self, state: LossScaleState, *, finite: bool) -> LossScaleState:
        """Return the state after a step.

        Parameters
        ----------
        state : LossScaleState
            The state that the step was made in.
        finite : bool
            Whether the fp32 L2 norm of all unscaled gradients was below infinity.

        Raises
        ------
        TypeError
            If `state` is not a state.
        """
        if not isinstance(state, LossScaleState):
            raise TypeError(f"state: got {state!r}, must be a LossScaleState; start() returns the first one")
        scale, steps = state.loss_scale, state.steps_since_rescale + 1
        overflows = state.overflows_since_rescale + (not finite)
        in_a_row = 0 if finite else state.overflows_in_a_row + 1
        # Both sides are fp32: 1 overflow in 20 steps does not exceed a tolerance of 0.05.
        exceeded = np.float32(self.overflow_tolerance) < np.float32(overflows) / np.float32(steps)
        if exceeded and (self.hysteresis == 1 or in_a_row >= self.hysteresis):
            scale, steps, overflows, in_a_row = scale / np.float32(2), 0, 0, 0
        if self.steps_per_increase < steps:
            with np.errstate(over="ignore"):  # infinity is clamped in the next line
                scale, steps, overflows = scale * np.float32(2), 0, 0
        scale = min(np.float32(self.max_loss_scale), scale)
        return replace(
            state,
            loss_scale=max(np.float32(self.min_loss_scale), scale),
            steps_since_rescale=steps,
            overflows_since_rescale=overflows,
            num_skipped_steps=state.num_skipped_steps + (not finite),
            non_clamped_scale=scale,
            overflows_in_a_row=in_a_row,
        )


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, bool)


def as_loss_scale(given: Any, argument: str) -> np.float32:
    """Accept a loss scale: a number that is positive and finite when rounded to fp32.

    Raises
    ------
    TypeError
        If it is not a number; bools and strings are not numbers.
    ValueError
        If it is zero, negative, NaN, or outside fp32's range.
    """
    if not _is_number(given):
        raise TypeError(f"{argument}: got {given!r}, must be a positive number")
    with np.errstate(over="ignore"):
        try:
            rounded = np.float32(given)
        except OverflowError:  # an int beyond every float
            rounded = np.float32(np.inf)
    if not 0 < rounded < np.inf:
        raise ValueError(f"{argument}: got {given}, must be positive and finite in fp32 (2^-149 to 2^127)")
    return rounded
