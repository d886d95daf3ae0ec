"""The result of an advice: a level map, its gain and its risk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml
from rich.table import Table

from golden.torch.instruments.advise.choosing import Setting
from golden.torch.instruments.advise.formats import Formats
from golden.torch.settings.level_map import LevelMap

__all__ = ["Advice", "AdviceRow", "Trial", "level_map_of"]

_OVERFLOW = "overflow"
_NEAR = 8.0  # powers of two below the largest value of the format, from where on an overflow is spoken of


class AdviceRow(NamedTuple):
    """One pass of one layer at one setting, measured alone, with everything else as at the start of the search."""

    layer: str
    run: str  # "fwd" or "bwd"
    level: int
    chunk: int | None
    products: int
    loss_change: float  # with its sign; infinite where the step overflowed
    gradient_change: float
    chosen: bool
    #: Powers of two between the largest partial sum and the largest value of the format: of samples of matrix products
    #: at the loss scale of the search, None for convolutions.
    headroom: float | None
    half: str = ""  # the format


class Trial(NamedTuple):
    """A combination that was run: cycles against all at level 0, and how far it is from the reference."""

    speed: float
    loss_change: float
    gradient_change: float
    within_budget: bool


@dataclass(frozen=True)
class Advice:
    """The result of `golden.torch.advise`.

    Attributes
    ----------
    levels : dict
        The level map, as `golden.torch.precision`, `pol`, `MixedPrecision`, the `Trainer` and YAML take it.
    loss_change, gradient_change : float
        Measured changes of the loss (with its sign) and of the gradient with this map, relative to the reference: level
        0 in the same format, or, where formats were to choose, fp32.
    budget : dict of str to float
        What they may be: ``loss`` and ``gradient``.
    rows : list of AdviceRow
        The candidates, by layer and pass in the order in which they run.
    trials : list of Trial
        The combinations that were run, in their order.
    speed : float
        Modelled speed of the products against all at level 0.
    shares : dict of int to float
        Share of the products at each level.
    steps, reference_steps : int
        Steps that were run; among them, those of the reference, more than one where the loss scale was too high.
    loss_scale : float
        The loss scale of all steps.
    fixed_products : int
        Products without a level, such as sums of gradients of biases; they are not in the shares.
    formats : dict of str to float
        Share of the products in each format that was to choose from, that of the precision first.
    starts : dict of str to float
        Change of the gradient with each of these formats at level 0 in all layers; infinite where it overflows.
    start : str
        The format with the least of them, which the layers had while each candidate ran alone.
    """

    levels: dict[str, Any]
    loss_change: float
    gradient_change: float
    budget: dict[str, float]
    rows: list[AdviceRow]
    trials: list[Trial]
    speed: float
    shares: dict[int, float]
    steps: int
    reference_steps: int
    loss_scale: float
    fixed_products: int
    formats: dict[str, float] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)
    start: str = ""

    @property
    def candidates(self) -> int:
        """Number of candidates that were measured."""
        return len(self.rows)

    @property
    def broken(self) -> list[AdviceRow]:
        """The candidates that overflowed, or changed more on their own than the budget allows; the worst first."""
        over = [row for row in self.rows if not _within(row.loss_change, row.gradient_change, self.budget)]
        return sorted(over, key=lambda row: -row.gradient_change)

    @property
    def _several(self) -> bool:
        """Whether there were formats to choose from."""
        return len(self.formats) > 1

    def _in(self, row: AdviceRow) -> str:
        return f" in {row.half}" if self._several else ""

    def lines(self) -> list[str]:
        """Return its gain and its risk in words."""
        shares = ", ".join(f"{share:.0%} at level {level}" for level, share in sorted(self.shares.items()) if share)
        against, reference = "level 0", "level 0"
        if self._several:
            own = next(iter(self.formats))
            shares += "; " + ", ".join(f"{share:.0%} in {name}" for name, share in self.formats.items() if share)
            against, reference = f"level 0 in {own}", "fp32"
        told = [
            f"gains: {shares}; modelled speed {self.speed:.2f} times that of {against}",
            f"risks: loss {self.loss_change:+.2%}, gradient {self.gradient_change:.2%} from {reference}, measured "
            f"together (budget {self.budget['loss']:.2%} and {self.budget['gradient']:.2%})",
        ]
        if not _within(self.loss_change, self.gradient_change, self.budget):
            told.append("no combination that was run stays within the budget; this one comes nearest")
        if self._several:
            starts = ", ".join(f"{name} {_told(change)}" for name, change in self.starts.items())
            told.append(f"level 0 in all layers: {starts}; the candidates were run with {self.start} around them")
        for row in self.broken[:3]:
            change = _told(row.gradient_change)
            what = "overflows" if change == _OVERFLOW else f"changes the gradient by {change}"
            told.append(f"level {row.level}{self._in(row)} alone {what} in {row.run} of {row.layer}")
        near = [(row.headroom, row) for row in self.rows if row.headroom is not None and row.headroom < _NEAR]
        if near:
            headroom, row = min(near, key=lambda each: each[0])
            told.append(
                f"nearest to overflow: {row.run} of {row.layer}{self._in(row)}, where sums of samples stay "
                f"{headroom:.1f} powers of two below the largest value"
            )
        backs = sum(not trial.within_budget for trial in self.trials)
        if backs:
            told.append(f"{backs} of {len(self.trials)} combinations that were run exceeded the budget")
        told.append(
            f"{self.steps} steps: {self.reference_steps} of the reference, {self.candidates} candidates, "
            f"{len(self.trials)} combinations"
        )
        return told

    def table(self) -> Table:
        """Return it as a table of rich: a line for each pass of each layer, with the change of each level alone."""
        settings = sorted({(row.level, row.chunk or 0) for row in self.rows})
        several = len({chunk for level, chunk in settings if level}) > 1
        what = "levels and formats" if self._several else "levels"
        reference = "in fp32" if self._several else "of level 0"
        table = Table(title=f"{what} within {self.budget['gradient']:.2%} of the gradient {reference}")
        table.add_column("layer", overflow="fold")
        table.add_column("pass")
        table.add_column("products", justify="right")
        if self._several:
            table.add_column("format")
        for level, chunk in settings:
            of_chunk = f", chunk {chunk or 'any'}" if several and level else ""
            table.add_column(f"level {level}{of_chunk}", justify="right")
        table.add_column("chosen", justify="right")
        units: dict[tuple[str, str, str], list[AdviceRow]] = {}
        for row in self.rows:
            units.setdefault((row.layer, row.run, row.half), []).append(row)
        changed = {(row.layer, row.run) for row in self.rows if row.chosen}
        for (layer, run, half), rows in units.items():
            changes = {(row.level, row.chunk or 0): row.gradient_change for row in rows}
            chosen = next((f"{row.level}" + (f", {row.chunk}" if several else "") for row in rows if row.chosen), "")
            if (layer, run) not in changed and half == self.start:
                chosen = "0"
            cells = [_told(changes.get(each, self.starts.get(half, 0.0))) for each in settings]
            table.add_row(layer, run, f"{rows[0].products:,}", *([half] if self._several else []), *cells, chosen)
        return table

    def yaml(self) -> str:
        """Return the level map as a file: comments on gain and risk, then the key ``levels``."""
        notes = "".join(f"# {line}\n" for line in self.lines())
        return notes + yaml.safe_dump({"levels": self.levels}, sort_keys=False)


def _within(loss_change: float, gradient_change: float, budget: Mapping[str, float]) -> bool:
    return abs(loss_change) <= budget["loss"] and gradient_change <= budget["gradient"]


def _told(change: float) -> str:
    return _OVERFLOW if change == math.inf else f"{change:.2%}"


def level_map_of(
    chosen: Mapping[str, Mapping[str, Setting]],
    layers: list[str],
    chunk: int | None,
    common: bool = True,
    formats: Formats | None = None,
) -> dict[str, Any]:
    """Return the level map of chosen settings by layer and pass; equal layers share a pattern.

    Parameters
    ----------
    chosen : mapping
        Settings by layer and pass; a pass without one is at level 0.
    layers : list of str
        All layers, which the map shall name.
    chunk : int or None
        The chunk length of the precision, which the map leaves out.
    common : bool
        Whether layers whose paths differ in numbers alone share a pattern, where their settings are equal.
    formats : Formats, optional
        What settings with a format need.
    """
    values: dict[str, Any] = {}
    for layer in layers:
        settings = chosen.get(layer, {})
        levels = {run: settings[run].level if run in settings else 0 for run in ("fwd", "bwd")}
        others: dict[str, Any] = {}
        chunks = {each.chunk for each in settings.values() if each.level} - {chunk}
        if chunks:
            others["chunk"] = chunks.pop()
        if formats is not None:
            halves = (settings[run].half if run in settings else None for run in ("fwd", "bwd"))
            others |= formats.entry(*halves)
        uniform = levels["fwd"] == levels["bwd"] and not others
        values[layer] = levels["fwd"] if uniform else levels | others
    if not common:
        return values
    alike: dict[str, list[str]] = {}
    for layer in layers:
        alike.setdefault(_general(layer), []).append(layer)
    result: dict[str, Any] = {}
    for layer in layers:
        group = alike[_general(layer)]
        equal = all(values[each] == values[layer] for each in group)
        result[_general(layer) if equal and len(group) > 1 else layer] = values[layer]
    return LevelMap.of(result).document


def _general(layer: str) -> str:
    return ".".join("*" if part.isdecimal() else part for part in layer.split("."))
