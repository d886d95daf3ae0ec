"""Steps on which something happens, and how many steps a run has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from golden.torch.common.arguments import check_count, check_flags, check_items, length_of

__all__ = ["Schedule", "compute_num_steps"]


@dataclass(frozen=True)
class Schedule:
    """Steps, counted from 0, in intervals that do not overlap.

    Parameters
    ----------
    intervals : list of Schedule.Range
        In ascending order.

    Raises
    ------
    TypeError, ValueError
        If they are not.
    """

    @dataclass(frozen=True)
    class Range:
        """Every `step`-th step from `start` to before `end`, and the last before `end` if `include_last`."""

        start: int
        end: int
        step: int
        include_last: bool = False

        def __post_init__(self) -> None:
            check_count(self.start, "start", 0)
            check_count(self.end, "end", self.start + 1)
            check_count(self.step, "step")
            check_flags(include_last=self.include_last)

        def range(self) -> range:
            """Return the steps without the last one."""
            return range(self.start, self.end, self.step)

        def match(self, index: int) -> bool:
            """Return whether it is one of the steps."""
            return index in self.range() or (self.include_last and index == self.end - 1)

        def __iter__(self) -> Iterator[int]:
            return (step for step in range(self.start, self.end) if self.match(step))

        def __len__(self) -> int:
            return sum(1 for _ in self)

    intervals: list[Range]

    def __post_init__(self) -> None:
        for interval in check_items(self.intervals, "intervals", "Schedule.Range"):
            if not isinstance(interval, Schedule.Range):
                raise TypeError(f"intervals: got {interval!r}, must be a Schedule.Range")
        for before, after in zip(self.intervals, self.intervals[1:], strict=False):
            if after.start < before.end:
                raise ValueError(f"intervals: {after} begins before {before} ends, must not overlap")

    def match(self, index: int) -> bool:
        """Return whether it is one of the steps."""
        return any(interval.match(index) for interval in self.intervals)

    def range(self) -> list[range]:
        """Return the steps of every interval without its last one."""
        return [interval.range() for interval in self.intervals]

    def __iter__(self) -> Iterator[int]:
        for interval in self.intervals:
            yield from interval

    def __len__(self) -> int:
        return sum(map(len, self.intervals))


def compute_num_steps(
    dataloader: Iterable[object],
    initial_step: int = 0,
    num_steps: int | None = None,
    max_steps: int | None = None,
    num_epochs: int | None = None,
    steps_per_epoch: int | None = None,
    grad_accum_steps: int = 1,
) -> int:
    """Return how many steps remain.

    Parameters
    ----------
    dataloader : iterable
        Its length is the number of batches in an epoch.
    initial_step : int
        Steps made before, which count for `max_steps`.
    num_steps, max_steps, num_epochs : int, optional
        The smallest of them that is given decides; `num_steps` and `num_epochs` exclude each other.
    steps_per_epoch : int, optional
        Batches in an epoch, when not all that there are.
    grad_accum_steps : int
        Batches in a step.

    Raises
    ------
    TypeError, ValueError
        If a number is wrong, none is given, or epochs are asked for of data without a length.
    """
    check_count(initial_step, "initial_step", 0)
    check_count(grad_accum_steps, "grad_accum_steps")
    given = {"num_steps": num_steps, "max_steps": max_steps, "num_epochs": num_epochs}
    for name, number in {**given, "steps_per_epoch": steps_per_epoch}.items():
        if number is not None:
            check_count(number, name)
    if num_steps is not None and num_epochs is not None:
        raise ValueError(f"num_steps: got {num_steps} beside num_epochs {num_epochs}, must be one of them")
    length = length_of(dataloader)
    if length is None and num_epochs is not None:
        raise ValueError(f"num_epochs: got {num_epochs} for data without a length, must be None; give num_steps")
    limits = [] if num_steps is None else [num_steps]
    if length is not None:
        batches = length if steps_per_epoch is None else steps_per_epoch
        if not 0 < batches <= length:
            raise ValueError(f"steps_per_epoch: got {batches}, must be 1 to {length}, the length of the data")
        if grad_accum_steps > batches:
            raise ValueError(f"grad_accum_steps: got {grad_accum_steps}, must be at most {batches}, a whole epoch")
        if num_epochs is not None:
            limits.append(num_epochs * (batches // grad_accum_steps))
    if max_steps is not None:
        if max_steps <= initial_step:
            raise ValueError(f"max_steps: got {max_steps}, must be above initial_step, {initial_step}")
        limits.append(max_steps - initial_step)
    if not limits:
        raise ValueError("num_steps: got None, must be given unless max_steps or num_epochs is")
    return min(limits)
