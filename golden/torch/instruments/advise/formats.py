"""The formats to choose from: the precision's own, and others, each for one pass of a layer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from golden import decode
from golden.formats import CBFLOAT16
from golden.loss_scaling import DynamicLossScale
from golden.torch.amp.configuration import FORMAT_NAMES, MixedPrecision
from golden.torch.common.arguments import check_items
from golden.torch.settings.half_type import HalfType, half_named

__all__ = ["Formats", "as_formats"]


@dataclass(frozen=True)
class Formats:
    """The formats of a search. None stands for the precision's own, as in `Setting`.

    Parameters
    ----------
    own : str
        Format of the precision.
    inner : str
        The 16-bit format in which products of narrow factors are summed.
    others : tuple of str
        What else may be chosen.
    """

    own: str
    inner: str = CBFLOAT16.name
    others: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[str | None, ...]:
        """All formats, the precision's own first."""
        return (None, *self.others)

    @property
    def by_range(self) -> tuple[str | None, ...]:
        """All formats: the precision's own, then the others, that with the largest finite value first."""
        return (None, *sorted(self.others, key=lambda each: -self._largest_factor(each)))

    def name(self, half: str | None) -> str:
        """Return the name of a format."""
        return self.own if half is None else half

    def width(self, half: str | None) -> int:
        """Return the bits of a factor."""
        found = self._half(half)
        return (found.operand or found.format).width

    def largest_sum(self, half: str | None) -> float:
        """Return the largest finite value of sums and results."""
        fmt = self._half(half).format
        return float(decode(fmt.max_finite, fmt))

    def first_scale(self, precision: MixedPrecision) -> float:
        """Return the loss scale that a search begins with: the first one of the training in any of the formats."""
        if not precision.scales_loss:
            return 1.0
        factor = precision.loss_scaling_factor
        if isinstance(factor, int | float):
            return float(factor)
        limits: dict[str, Any] = {
            "min_loss_scale": precision.min_loss_scale,
            "max_loss_scale": precision.max_loss_scale,
            "init_scale": precision.initial_loss_scale,
        }
        rules = [DynamicLossScale.for_format(self._half(each).format, **limits) for each in self.choices]
        return min(float(rule.start().loss_scale) for rule in rules)

    def entry(self, forward: str | None, backward: str | None) -> dict[str, Any]:
        """Return the keys of a level map that set the formats of both passes."""
        if forward is None and backward is None:
            return {}
        names = {"fwd": self.name(forward), "bwd": self.name(backward)}
        entry: dict[str, Any] = {"half": names["fwd"] if forward == backward else names}
        if any(self._half(each).operand is not None for each in (forward, backward)):
            entry["inner"] = self.inner
        return entry

    def _half(self, half: str | None) -> HalfType:
        found = half_named(self.name(half))
        return found if found.operand is None else half_named(self.name(half), inner=self.inner)

    def _largest_factor(self, half: str | None) -> float:
        found = self._half(half)
        fmt = found.operand or found.format
        return math.log2(float(decode(fmt.max_finite, fmt)))


def as_formats(given: Iterable[str] | None, precision: MixedPrecision) -> Formats:
    """Return the formats to choose from besides the format of the precision."""
    own = half_named(precision.fp16_type)
    inner = (precision.inner or CBFLOAT16.name) if own.operand is not None else precision.fp16_type
    if given is None:
        return Formats(precision.fp16_type, inner)
    found = check_items(given, "formats", "names, such as 'float16' and 'float8_e4m3fn'")
    for each in found:
        if not isinstance(each, str) or each not in FORMAT_NAMES:
            raise ValueError(f"formats: got {each!r}, must be of {', '.join(FORMAT_NAMES)}")
    others = tuple(each for each in dict.fromkeys(found) if each != precision.fp16_type)
    if not others:
        raise ValueError(f"formats: got {found!r}, must have one besides the {precision.fp16_type} of the precision")
    return Formats(precision.fp16_type, inner, others)
