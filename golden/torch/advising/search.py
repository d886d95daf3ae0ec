"""The search for the levels of a model: each candidate alone, then the best combinations that are predicted."""

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

from golden import decode
from golden.reduction import LEVELS
from golden.torch.advising.advice import Advice, AdviceRow, Trial, level_map_of
from golden.torch.advising.arguments import as_batches, as_budget, as_chunks, as_levels, as_precision
from golden.torch.advising.choosing import Candidate, Choice, Prediction, Setting
from golden.torch.advising.costs import Costs
from golden.torch.advising.measuring import Change, Measurement, loss_function
from golden.torch.advising.products import PASSES, Unit
from golden.torch.arguments import check_flags, check_items
from golden.torch.commands.progress import shown
from golden.torch.settings.configuration import MixedPrecision
from golden.torch.settings.half import half_named

__all__ = ["Search", "advise"]

_BUDGET = 0.01
_TRIALS = 8
_HOPE = 1.25  # share of the budget that a combination may be predicted to take, where nothing better is left to run
_LEAST = 1e-30
_CAUTION = 0.9  # factor of what is aimed at, after a combination that exceeded the budget although it was not predicted


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
    costs: Mapping[int, Any] | None = None,
    trials: int = _TRIALS,
    show: bool = True,
) -> Advice:
    """Find the cheapest level of each layer, forward and backward, that keeps loss and gradient within a budget.

    A layer is a module whose own code multiplies. Its backward pass has both gradients, of input and of weight. The
    reference is the model with everything at level 0, in the same format. Each candidate (a pass of a layer, at a
    level) is run once, with everything else at level 0; the changes of the gradient are added up to predict those of
    combinations. The cheapest one that is predicted to stay within the budget is run, and others after it as long as
    they promise more: cheaper ones, or after an excess more careful ones.

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
        Products per cycle by level, ``{0: 2.0, 1: 3.76, 2: 3.88}``, or by level and chunk length; those of the vector
        unit of four lanes unless given.
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
        If an argument is wrong, no layer multiplies, or loss or gradient are not finite at level 0.
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
        trials=trials,
        show=show,
    ).run()


class Search:
    """One search; the parameters are those of `advise`, but `loss` gives the loss of a batch."""

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
        costs: Mapping[int, Any] | None = None,
        trials: int = _TRIALS,
        show: bool = True,
    ) -> None:
        check_flags(show=show)
        self._budget = as_budget(budget)
        self._precision = as_precision(precision)
        self._levels = as_levels(levels)
        self._chunks = as_chunks(chunks, self._precision)
        self._patterns = None if layers is None else check_items(layers, "layers", "patterns of paths")
        self._costs = Costs(costs, self._levels, self._chunks)
        if not isinstance(trials, int) or isinstance(trials, bool) or trials < 0:
            raise ValueError(f"trials: got {trials!r}, must be an int of at least 0")
        self._trials, self._show = trials, show
        self._measurement = Measurement(model, batches, loss, self._precision)
        self._model = model

    def run(self) -> Advice:
        """Search."""
        self._counts = self._reference()
        units = self._units()
        candidates = [
            Candidate(unit, Setting(level, chunk)) for unit in units for level in self._levels for chunk in self._chunks
        ]
        changes = self._alone(candidates)
        finite = [number for number, each in enumerate(changes) if each.is_finite]
        kept = [changes[number] for number in finite]
        self._prediction = Prediction(
            [candidates[number] for number in finite],
            _inner_products(kept),
            np.array([each.loss for each in kept]),
            np.array([self._saved(candidates[number]) for number in finite]),
        )
        # The directions are as large as the gradient, and needed no more.
        changes = [replace(each, direction=None) for each in changes]
        kept = [changes[number] for number in finite]
        choice, change, trials = self._combine(kept, len(candidates))
        advice = self._advice(candidates, changes, choice, change, trials)
        if self._show:
            console = Console()
            console.print(advice.table())
            for line in advice.lines():
                console.print(line, highlight=False, soft_wrap=True)
        return advice

    def _reference(self) -> dict[Unit, int]:
        (counter,) = (
            self._measurement.begin(self._expected()) for _ in shown(range(1), "reference at level 0", self._show)
        )
        self._fixed, self._largest = counter.fixed, counter.largest
        self._reference_steps = self._measurement.steps
        if "" in {unit.layer for unit in counter.products}:
            self._fixed += sum(n for unit, n in counter.products.items() if not unit.layer)
        products = {unit: count for unit, count in counter.products.items() if unit.layer}
        if not products:
            raise ValueError("model: none of its modules multiplies on these batches, one must")
        return products

    def _expected(self) -> int:
        return 2 * len(list(self._model.modules())) * len(self._levels) * len(self._chunks)

    def _units(self) -> list[Unit]:
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
        before = self._costs.cycles(products, 0, None)
        return before - self._costs.cycles(products, *candidate.setting)

    def _map(self, chosen: Iterable[Candidate], *, common: bool = False) -> dict[str, Any]:
        settings: dict[str, dict[str, Setting]] = {}
        for unit, setting in chosen:
            settings.setdefault(unit.layer, {})[unit.run] = setting
        layers = list(dict.fromkeys(unit.layer for unit in self._counts))
        return level_map_of(settings, layers, self._precision.chunk, common)

    def _combine(self, alone: list[Change], candidates: int) -> tuple[Choice, Change, list[Trial]]:
        """Run combinations until none promises more; return the best one."""
        prediction, budget = self._prediction, (self._budget["gradient"], self._budget["loss"])
        known: set[Choice] = {()}
        choice: Choice = ()
        change, share, ratio = Change(0.0, 0.0), 0.0, 1.0
        within, beyond = 0.0, math.inf  # predicted shares of what was within the budget, and of what was not
        for number, each in enumerate(alone):  # combinations of one are measured already
            known.add((number,))
            if self._share(each) <= 1 and prediction.saved((number,)) > prediction.saved(choice):
                choice, change, share = (number,), each, self._share(each)
        trials: list[Trial] = []
        total = 1 + min(self._trials, candidates)
        for _ in shown(range(total), "combinations", self._show):
            proposed = self._next(known, choice, share, ratio)
            if proposed is None and within:  # of many combinations only one is proposed: look between the shares
                proposed = self._saving_more(math.sqrt(within * beyond), known, choice)
            if proposed is None or proposed in known:
                break
            known.add(proposed)
            measured = self._measurement.change(self._map(prediction.candidates[each] for each in proposed))
            found, predicted = self._share(measured), prediction.share(proposed, budget)
            trials.append(Trial(self._speed(proposed), measured.loss, measured.gradient, found <= 1))
            if found <= 1:
                within = max(within, predicted)
            else:
                beyond = min(beyond, predicted)
            if found > 1 and predicted * ratio <= 1:
                ratio = max(min(found / max(predicted, _LEAST), 1 / _LEAST), ratio / _CAUTION)
            if found <= 1 and (prediction.saved(proposed), -found) > (prediction.saved(choice), -share):
                choice, change, share = proposed, measured, found
        return choice, change, trials

    def _next(self, known: set[Choice], choice: Choice, share: float, ratio: float) -> Choice | None:
        """Return the combination to run next; None if no other one promises more than that chosen so far.

        In this order: one that saves more, and is predicted to stay within the budget; one that saves as much with less
        change; one that saves more, and is predicted to exceed the budget by a little.
        """
        prediction, budget = self._prediction, (self._budget["gradient"], self._budget["loss"])
        proposed = self._saving_more(1 / ratio, known, choice)
        if proposed is not None:
            return proposed
        proposed = prediction.best(budget, prediction.saved(choice), known)
        if proposed is not None and prediction.share(proposed, budget) * ratio < share:
            return proposed
        return self._saving_more(_HOPE / ratio, known, choice)

    def _saving_more(self, limit: float, known: set[Choice], choice: Choice) -> Choice | None:
        """Return the combination that saves most, and more than one, within a predicted share of the budget."""
        budget = self._budget["gradient"], self._budget["loss"]
        proposed = self._prediction.cheapest(budget, limit, known)
        saves = proposed is not None and self._prediction.saved(proposed) > self._prediction.saved(choice)
        return proposed if saves else None

    def _share(self, change: Change) -> float:
        return max(change.gradient / self._budget["gradient"], abs(change.loss) / self._budget["loss"])

    def _speed(self, choice: Choice) -> float:
        before = sum(self._costs.cycles(count, 0, None) for count in self._counts.values())
        return before / (before - self._prediction.saved(choice))

    def _headroom(self, unit: Unit) -> float | None:
        largest = self._largest.get(unit)
        if not largest or not math.isfinite(largest):
            return None if not largest else -math.inf
        fmt = half_named(self._precision.inner or self._precision.fp16_type).format
        return math.log2(float(decode(fmt.max_finite, fmt))) - math.log2(largest)

    def _advice(
        self,
        candidates: list[Candidate],
        changes: list[Change],
        choice: Choice,
        change: Change,
        trials: list[Trial],
    ) -> Advice:
        chosen = {self._prediction.candidates[number] for number in choice}
        rows = []
        for each, found in zip(candidates, changes, strict=True):
            products, headroom = self._counts[each.unit], self._headroom(each.unit)
            rows.append(
                AdviceRow(*each.unit, *each.setting, products, found.loss, found.gradient, each in chosen, headroom)
            )
        total = sum(self._counts.values())
        at = {unit: setting.level for unit, setting in chosen}
        shares = dict.fromkeys((0, *self._levels), 0.0)
        for unit, count in self._counts.items():
            shares[at.get(unit, 0)] += count / total
        return Advice(
            levels=self._map(chosen, common=True),
            loss_change=change.loss,
            gradient_change=change.gradient,
            budget=self._budget,
            rows=rows,
            trials=trials,
            speed=self._speed(choice),
            shares=shares,
            steps=self._measurement.steps,
            reference_steps=self._reference_steps,
            loss_scale=self._measurement.loss_scale,
            fixed_products=self._fixed,
        )


def _inner_products(changes: list[Change]) -> NDArray[np.float64]:
    """Return those of the directions of all changes with each other."""
    directions = [each.direction for each in changes if each.direction is not None]
    matrix = torch.stack(directions) if directions else torch.zeros(0, 1)
    return (matrix @ matrix.mT).double().numpy()


def _matches(pattern: str, layer: str) -> bool:
    return fnmatchcase(layer, pattern) or fnmatchcase(layer, f"{pattern}.*")
