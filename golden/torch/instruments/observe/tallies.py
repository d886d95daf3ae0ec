"""Counts of the products of one operation in one pass of one module, over the calls of a step."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from golden.counts import NO_EXPONENT
from golden.reduction import Reduction
from golden.torch.instruments.observe.attribution import Pass
from golden.torch.instruments.observe.counting import Counted
from golden.torch.instruments.observe.histograms import Histogram
from golden.torch.instruments.observe.rows import ProductRow
from golden.torch.instruments.observe.samples import Shape
from golden.torch.products.windows import formats_of
from golden.torch.settings.reductions import level_of

if TYPE_CHECKING:
    from golden.torch.instruments.observe.card_tallies import CardTally

__all__ = ["Key", "Tally"]

# module, pass, operation
Key = tuple[str, Pass, str]

# Calls of a step that are all looked at; beyond them one in so many is: a recurrent network has one for each position.
_ALL_CALLS = 16


@dataclass
class Tally:
    """The products so far; tallies of several processes add up.

    Parameters
    ----------
    reduction : Reduction
        What they compute.
    shape : Shape
        Of the first.
    """

    reduction: Reduction
    shape: Shape
    calls: int = 0
    calls_counted: int = 0
    recomputed: int = 0
    rows: int = 0
    rows_counted: int = 0
    counted: Counted = field(default_factory=Counted)
    witness: Counted = field(default_factory=Counted)  # a row whose result is not finite, if no counted row tells why
    left: Histogram = field(init=False)
    right: Histogram = field(init=False)
    output: Histogram = field(init=False)
    cards: dict[torch.device, CardTally] = field(default_factory=dict)  # what nobody has read yet

    def __post_init__(self) -> None:
        operand, half = formats_of(self.reduction)
        self.left, self.right, self.output = Histogram(operand), Histogram(operand), Histogram(half)

    @property
    def level(self) -> int:
        """The level of the first."""
        return level_of(self.reduction)

    def takes_next(self, *, recomputed: bool) -> bool:
        """Count a call, and tell whether it is looked at."""
        self.calls += 1
        self.recomputed += recomputed
        taken = self.calls <= _ALL_CALLS or self.calls % _ALL_CALLS == 0
        self.calls_counted += taken
        return taken

    def on_card(self, device: torch.device) -> CardTally:
        """Return the counter of a card."""
        from golden.torch.instruments.observe.card_tallies import CardTally  # not before there is a card to use it

        if device not in self.cards:
            self.cards[device] = CardTally(device)
        return self.cards[device]

    def merge(self, other: Tally) -> None:
        """Add what another process has gathered."""
        for name in ("calls", "calls_counted", "recomputed", "rows", "rows_counted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("counted", "witness", "left", "right", "output"):
            getattr(self, name).merge(getattr(other, name))

    def row(self, key: Key, step: int) -> ProductRow:
        """Return it as a line of the file."""
        module, direction, operation = key
        counts = self.counted.counts
        given: dict[str, Any] = {
            "step": step,
            "module": module,
            "pass": direction,
            "operation": operation,
            "calls": self.calls,
            "calls_counted": self.calls_counted,
            "recomputed": self.recomputed,
            "level": self.level,
            "operand": self.reduction.factors.name,
            "shape": (self.shape.matrices * self.shape.rows, self.shape.columns, self.shape.length),
            "rows": self.rows,
            "rows_counted": self.rows_counted,
            "products": asdict(counts.products),
            "promotions": asdict(counts.promotions),
            "largest_exponent": None if counts.largest_exponent == NO_EXPONENT else int(counts.largest_exponent),
            "distance": self.counted.distance.record(),
            "tensors": {name: getattr(self, name).record() for name in ("left", "right", "output")},
        }
        return ProductRow.model_validate(given)
