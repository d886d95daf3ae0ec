"""The search for levels and formats: each candidate alone, then the best combinations that are predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor, nn

from golden.reduction import LEVELS
from golden.torch.amp.configuration import MixedPrecision
from golden.torch.common.arguments import check_flags, check_items
from golden.torch.common.terminal import shown
from golden.torch.instruments.advise.advice import Advice, AdviceRow, Trial, level_map_of
from golden.torch.instruments.advise.arguments import as_batches, as_budget, as_chunks, as_levels, as_precision
from golden.torch.instruments.advise.choosing import Candidate, Choice, Combining, Prediction, Setting, Start
from golden.torch.instruments.advise.costs import Costs
from golden.torch.instruments.advise.formats import as_formats
from golden.torch.instruments.advise.measuring import PASSES, Change, Measurement, ProductCount, Unit, loss_function

__all__ = ["Search", "advise"]

_BUDGET = 0.01
_TRIALS = 8


def advise(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    budget: float | Mapping[str, float] = _BUDGET,
    loss: Callable[[Any, Any], Tensor] | None = None,
    precision: MixedPrecision | str | None = None,
    levels: Iterable[int] = LEVELS,
    chunks: Iterable[int | None] | None = None,
    layers: Iterable[str] | None = None,
    costs: Mapping[Any, Any] | None = None,
    formats: Iterable[str] | None = None,
    trials: int = _TRIALS,
    show: bool = True,
) -> Advice:
    """Find the cheapest level of each layer, forward and backward, that keeps loss and gradient within a budget.

    With `formats`, its format as well. A layer is a module whose own code multiplies. Its backward pass has both
    gradients, of input and of weight. The reference is the model with everything at level 0, in the same format. Each
    candidate (a pass of a layer, at a level) is run once, with everything else at level 0; the changes of the gradient
    add up to the predictions for combinations. The cheapest one that is predicted to stay within the budget is run, and
    others after it as long as they promise more: cheaper ones, or after an excess more careful ones.

    Parameters
    ----------
    model : nn.Module
        It is left as it is, gradients, buffers and random generators included.
    batches : iterable
        Batches, which make one step together.
    budget : float or mapping
        Largest change of the loss and of the gradient (Frobenius norm of all parameters) relative to the reference; a
        mapping with ``loss`` and ``gradient`` tells them apart.
    loss : callable, optional
        ``loss(model(inputs), targets)``, and batches are pairs. Unless given, ``model(*batch)`` of a tuple or list,
        ``model(**batch)`` of a mapping, else ``model(batch)`` gives the loss, as for the `Trainer`.
    precision : MixedPrecision or str, optional
        Precision of the training, or its format; cbfloat16 with dynamic loss scaling unless given.
    levels : iterable of int
        Levels to choose from; 0 is always one.
    chunks : iterable of int or None, optional
        Chunk lengths to choose from; that of `precision` unless given.
    layers : iterable of str, optional
        Patterns of paths: other layers stay at level 0, in the advice as in the search.
    costs : mapping, optional
        Products per cycle by level, ``{0: 2.0, 1: 3.76, 2: 3.88}``, or by level and chunk length, or by format, level
        and so on; those of the vector unit of four lanes unless given, and of more lanes for formats of fewer bits.
    formats : iterable of str, optional
        Formats to choose from besides that of `precision`, for each pass of a layer, such as ``["float8_e4m3fn"]``.
        Their products are summed at the same levels. The reference is a step in fp32 then.
    trials : int
        Combinations that may be run after the first; never more than there are candidates.
    show : bool
        Whether to show the progress, and to print the table.

    Returns
    -------
    Advice
        With the level map ``levels``.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, no layer multiplies, or loss or gradient are not finite at level 0 in any format.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
    if loss is not None and not callable(loss):
        raise TypeError(f"loss: got {loss!r}, must be callable, as loss(outputs, targets), or None")
    model = getattr(model, "_orig_mod", model)  # compiled code has no modules
    return Search(
        model,
        as_batches(batches),
        loss_function(model, loss),
        budget=budget,
        precision=precision,
        levels=levels,
        chunks=chunks,
        layers=layers,
        costs=costs,
        formats=formats,
        trials=trials,
        show=show,
    ).run()


class Search:
    """One search; parameters as for `advise`, but `loss` gives the loss of a batch."""

    def __init__(
        self,
        model: nn.Module,
        batches: list[Any],
        loss: Callable[[Any], Tensor],
        *,
        budget: float | Mapping[str, float] = _BUDGET,
        precision: MixedPrecision | str | None = None,
        levels: Iterable[int] = LEVELS,
        chunks: Iterable[int | None] | None = None,
        layers: Iterable[str] | None = None,
        costs: Mapping[Any, Any] | None = None,
        formats: Iterable[str] | None = None,
        trials: int = _TRIALS,
        show: bool = True,
    ) -> None:
        check_flags(show=show)
        self._budget = as_budget(budget)
        self._precision = as_precision(precision)
        self._levels = as_levels(levels)
        self._chunks = as_chunks(chunks, self._precision)
        self._patterns = None if layers is None else check_items(layers, "layers", "patterns of paths")
        self._formats = as_formats(formats, self._precision)
        self._costs = Costs(costs, self._levels, self._chunks, self._formats)
        if not isinstance(trials, int) or isinstance(trials, bool) or trials < 0:
            raise ValueError(f"trials: got {trials!r}, must be an int of at least 0")
        self._trials, self._show = trials, show
        self._measurement = Measurement(model, batches, loss, self._precision, self._formats)
        self._model = model

    def run(self) -> Advice:
        """Search."""
        start = self._started()
        candidates = [
            Candidate(unit, setting) for unit in self._units for setting in self._settings() if setting != self._base
        ]
        changes = self._alone(candidates)
        finite = [number for number, each in enumerate(changes) if each.is_finite]
        kept = [changes[number] for number in finite]
        products = _inner_products([start, *kept])
        self._prediction = Prediction(
            [candidates[number] for number in finite],
            products[1:, 1:],
            np.array([each.loss - start.loss for each in kept]),
            np.array([self._saved(candidates[number]) for number in finite]),
            Start(products[0, 1:], products[0, 0], start.loss),
        )
        # The directions are as large as the gradient, and needed no more.
        changes = [replace(each, direction=None) for each in changes]
        combining = Combining(self._prediction, self._budget, self._measured)
        trials = 1 + min(self._trials, len(candidates))
        combining.run(start, [changes[number] for number in finite], trials, self._show)
        advice = self._advice(candidates, changes, combining)
        if self._show:
            console = Console()
            console.print(advice.table())
            for line in advice.lines():
                console.print(line, highlight=False, soft_wrap=True)
        return advice

    def _started(self) -> Change:
        """Run the reference, and level 0 in each format; the candidates start from the one that is nearest to it.

        Only the layers to choose for take another format than the precision's.
        """
        measurement, what = self._measurement, "level 0 in each format" if self._formats.others else "level 0"
        self._starts: dict[str | None, float] = {}
        for _ in shown(range(1), f"reference, {what}", self._show):
            measurement.begin(self._expected())
            for half in self._formats.by_range:
                self._base = Setting(0, None, half)
                change, counter = measurement.start({} if half is None else self._map([]), self._expected())
                self._starts[half] = change.gradient
                if half is None:
                    self._set_units(counter)
        nearest = min(self._starts, key=lambda half: self._starts[half])
        if self._starts[nearest] == math.inf:
            raise ValueError(
                "model: its loss or gradient is not finite at level 0 in any of the formats, must be in one; name a "
                "format with more range, or look for overflows in the model"
            )
        self._base = Setting(0, None, nearest)
        self._reference_steps = measurement.steps
        return measurement.started()

    def _set_units(self, counter: ProductCount) -> None:
        self._fixed, self._largest = counter.fixed, counter.largest
        if "" in {unit.layer for unit in counter.products}:
            self._fixed += sum(n for unit, n in counter.products.items() if not unit.layer)
        self._counts = {unit: count for unit, count in counter.products.items() if unit.layer}
        if not self._counts:
            raise ValueError("model: none of its modules multiplies on these batches, one must")
        self._units = self._chosen_units()

    def _settings(self) -> list[Setting]:
        """Return the settings of a unit, level 0 of each format before its others."""
        return [
            Setting(level, chunk, half)
            for half in self._formats.choices
            for level in (0, *self._levels)
            for chunk in (self._chunks if level else (None,))
        ]

    def _expected(self) -> int:
        return 2 * len(list(self._model.modules())) * len(self._settings())

    def _chosen_units(self) -> list[Unit]:
        """Return the units to choose for, by layer in the order in which they run forward."""
        layers = list(dict.fromkeys(unit.layer for unit in self._counts))
        if self._patterns is not None:
            for pattern in self._patterns:
                if not any(_matches(pattern, layer) for layer in layers):
                    raise ValueError(f"layers: {pattern!r} matches none of the layers {', '.join(layers)}")
            layers = [each for each in layers if any(_matches(pattern, each) for pattern in self._patterns)]
        return [Unit(layer, run) for layer in layers for run in PASSES if Unit(layer, run) in self._counts]

    def _alone(self, candidates: list[Candidate]) -> list[Change]:
        return [
            self._measurement.change(self._map([each]), with_direction=True)
            for each in shown(candidates, f"{len(candidates)} candidates", self._show)
        ]

    def _saved(self, candidate: Candidate) -> float:
        products = self._counts[candidate.unit]
        return self._costs.cycles(products, self._base) - self._costs.cycles(products, candidate.setting)

    def _measured(self, choice: Choice) -> Change:
        return self._measurement.change(self._map(self._prediction.candidates[each] for each in choice))

    def _map(self, chosen: Iterable[Candidate], *, common: bool = False) -> dict[str, Any]:
        settings: dict[str, dict[str, Setting]] = {}
        for unit, setting in [*((unit, self._base) for unit in self._units), *chosen]:
            settings.setdefault(unit.layer, {})[unit.run] = setting
        layers = list(dict.fromkeys(unit.layer for unit in self._counts))
        return level_map_of(settings, layers, self._precision.chunk, common, self._formats)

    def _speed(self, choice: Choice) -> float:
        """Return the modelled speed against level 0 in the format of the precision."""
        own, chosen = Setting(0, None), set(self._units)
        before = sum(self._costs.cycles(count, own) for count in self._counts.values())
        start = sum(
            self._costs.cycles(count, self._base if unit in chosen else own) for unit, count in self._counts.items()
        )
        return before / (start - self._prediction.saved(choice))

    def _headroom(self, unit: Unit, half: str | None) -> float | None:
        largest = self._largest.get(unit)
        if not largest:
            return None
        if not math.isfinite(largest):
            return -math.inf
        return math.log2(self._formats.largest_sum(half)) - math.log2(largest)

    def _advice(self, candidates: list[Candidate], changes: list[Change], found: Combining) -> Advice:
        chosen = {self._prediction.candidates[number] for number in found.choice}
        at = dict.fromkeys(self._units, self._base) | dict(chosen)
        rows = []
        for each, change in zip(candidates, changes, strict=True):
            level, chunk, half = each.setting
            rows.append(
                AdviceRow(
                    *each.unit, level, chunk, self._counts[each.unit], change.loss, change.gradient,
                    at[each.unit] == each.setting, self._headroom(each.unit, half), self._formats.name(half),
                )
            )  # fmt: skip
        total = sum(self._counts.values())
        shares = dict.fromkeys((0, *self._levels), 0.0)
        formats = {self._formats.name(half): 0.0 for half in self._formats.choices}
        for unit, count in self._counts.items():
            setting = at.get(unit, Setting(0, None))
            shares[setting.level] += count / total
            formats[self._formats.name(setting.half)] += count / total
        return Advice(
            levels=self._map(chosen, common=True),
            loss_change=found.change.loss,
            gradient_change=found.change.gradient,
            budget=self._budget,
            rows=rows,
            trials=[
                Trial(self._speed(choice), change.loss, change.gradient, found.share(change) <= 1)
                for choice, change in found.trials
            ],
            speed=self._speed(found.choice),
            shares=shares,
            steps=self._measurement.steps,
            reference_steps=self._reference_steps,
            loss_scale=self._measurement.loss_scale,
            fixed_products=self._fixed,
            formats=formats,
            starts={self._formats.name(half): self._starts[half] for half in self._formats.choices},
            start=self._formats.name(self._base.half),
        )


def _inner_products(changes: list[Change]) -> NDArray[np.float64]:
    """Return all pairwise inner products of the directions."""
    directions = [each.direction for each in changes if each.direction is not None]
    matrix = torch.stack(directions) if directions else torch.zeros(0, 1)
    return (matrix @ matrix.mT).double().numpy()


def _matches(pattern: str, layer: str) -> bool:
    return fnmatchcase(layer, pattern) or fnmatchcase(layer, f"{pattern}.*")
