"""Schedules that go up and down between two values."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass

from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.cerebras.schedule import Scheduler, Tags
from golden.torch.common.arguments import check_count

__all__ = ["CyclicScheduler", "OneCycleScheduler"]


@dataclass(eq=False, repr=False)
class CyclicScheduler(Scheduler):
    """From `base_val` up to `max_val` and back, for ever.

    Parameters
    ----------
    optimizer, param_group_tags
        Of every scheduler.
    base_val, max_val : float
        The two values.
    step_size_up, step_size_down : int
        Steps of the two halves of a cycle; the second as the first unless given.
    mode : "triangular", "triangular2" or "exp_range"
        Every cycle as high as the first; each half as high as the one before; the height times ``gamma ** step``.
    gamma : float
        Of ``"exp_range"``.
    scale_mode : str
        Accepted; the mode decides it.
    """

    optimizer: InitVar[Optimizer]
    base_val: float
    max_val: float
    step_size_up: int = 2000
    step_size_down: int | None = None
    mode: str = "triangular"
    gamma: float = 1.0
    scale_mode: str = "cycle"
    param_group_tags: InitVar[Tags] = None

    def __post_init__(self, optimizer: Optimizer, param_group_tags: Tags) -> None:
        if self.mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(f"mode: got {self.mode!r}, must be 'triangular', 'triangular2' or 'exp_range'")
        super().__post_init__(optimizer, param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        up, down = self.step_size_up, self.step_size_up if self.step_size_down is None else self.step_size_down
        cycle, at = divmod(step, up + down)
        share = at / up if at <= up else (up + down - at) / down
        scale = {"triangular": 1.0, "triangular2": 0.5**cycle, "exp_range": self.gamma**step}[self.mode]
        return self.base_val + share * (self.max_val - self.base_val) * scale


@dataclass(eq=False, repr=False)
class OneCycleScheduler(Scheduler):
    """Once from `initial_val` up to `max_val` and down to ``initial_val / final_div_factor``, where it stays.

    Parameters
    ----------
    optimizer, param_group_tags
        Of every scheduler.
    initial_val, max_val : float
        Where it starts, and its top.
    total_steps : int
        Steps of all.
    pct_start : float
        Share of the steps that go up.
    final_div_factor : float
        `initial_val` over the last value.
    three_phase : bool
        Down to `initial_val` in as many steps as up, before the rest.
    anneal_strategy : "cos" or "linear"
        The form of the way.
    """

    optimizer: InitVar[Optimizer]
    initial_val: float
    max_val: float
    total_steps: int = 1000
    pct_start: float = 0.3
    final_div_factor: float = 1e4
    three_phase: bool = False
    anneal_strategy: str = "cos"
    param_group_tags: InitVar[Tags] = None

    def __post_init__(self, optimizer: Optimizer, param_group_tags: Tags) -> None:
        if self.anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy: got {self.anneal_strategy!r}, must be 'cos' or 'linear'")
        check_count(self.total_steps, "total_steps", 2)
        if not 0 <= self.pct_start <= 1:
            raise ValueError(f"pct_start: got {self.pct_start}, must be 0 to 1")
        super().__post_init__(optimizer, param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        top, last = self.pct_start * self.total_steps - 1, self.total_steps - 1
        ways = [(top, self.max_val), (last, self.initial_val / self.final_div_factor)]
        if self.three_phase:
            ways.insert(1, (2 * top, self.initial_val))
        begun, start = 0.0, self.initial_val
        while len(ways) > 1 and step > ways[0][0]:
            begun, start = ways.pop(0)
        until, end = ways[0]
        share = (min(step, last) - begun) / (until - begun)
        if self.anneal_strategy == "cos":
            share = (1 - math.cos(math.pi * share)) / 2
        return start + (end - start) * share
