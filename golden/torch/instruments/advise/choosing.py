"""Which levels to choose: the cheapest combination whose predicted change stays within a budget, and others to run.

Each candidate was measured alone. Changes are taken to add up, as vectors: the sum of the changes of its candidates
predicts the change of a combination, hence by their inner products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.torch.common.terminal import shown
from golden.torch.instruments.advise.measuring import Change, Unit

__all__ = ["Candidate", "Choice", "Combining", "Prediction", "Setting", "Start"]

_MOST = 1 << 16  # combinations that are looked at one by one
_TINY = 1e-30
_HOPE = 1.25  # share of the budget that a combination may be predicted to take, where nothing better is left to run
_CAUTION = 0.9  # factor of the target, after a combination that exceeded the budget against the prediction


class Setting(NamedTuple):
    """Level, chunk length and format of a unit."""

    level: int
    chunk: int | None
    half: str | None = None  # None: as in the precision


class Candidate(NamedTuple):
    """A unit at a setting."""

    unit: Unit
    setting: Setting


#: A combination: at most one candidate of each unit, by their numbers, in order; units without one are as at the start.
Choice = tuple[int, ...]


class Start(NamedTuple):
    """The change of the step that all candidates start from, against the reference.

    Parameters
    ----------
    products : array of shape (N,)
        Inner products of this change of the gradient with those that the candidates add to it.
    square : float
        Its inner product with itself.
    loss : float
        Relative change of the loss, with its sign.
    """

    products: NDArray[np.float64]
    square: float
    loss: float


class Prediction:
    """Predicts changes and costs of combinations.

    Parameters
    ----------
    candidates : sequence of Candidate
        Those that did not overflow.
    products : array of shape (N, N)
        Inner products of the changes of the gradient, relative to its norm.
    losses : array of shape (N,)
        Relative changes of the loss, with signs.
    saved : array of shape (N,)
        Cycles that each candidate saves.
    start : Start, optional
        What changes without any candidate, nothing unless given.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        products: NDArray[np.float64],
        losses: NDArray[np.float64],
        saved: NDArray[np.float64],
        start: Start | None = None,
    ) -> None:
        self._start = start or Start(np.zeros(len(candidates)), 0.0, 0.0)
        self.candidates, self._products, self._losses, self.saved_by = list(candidates), products, losses, saved
        self._units: dict[Unit, list[int]] = {}
        for number, each in enumerate(candidates):
            self._units.setdefault(each.unit, []).append(number)
        layers: dict[str, list[list[int]]] = {}
        for unit, numbers in self._units.items():
            layers.setdefault(unit.layer, []).append(numbers)
        #: The choices of each layer: one of each pass or none, with the same chunk in both.
        self._options = [list(self._of_layer(passes)) for passes in layers.values()]
        count = 1
        for options in self._options:
            count = min(count * len(options), _MOST + 1)
        self._all = self._combinations() if count <= _MOST else None

    def _of_layer(self, passes: list[list[int]]) -> Iterator[Choice]:
        for chosen in itertools.product(*([None, *numbers] for numbers in passes)):
            some = tuple(each for each in chosen if each is not None)
            if len({self.candidates[each].setting.chunk for each in some if self.candidates[each].setting.level}) <= 1:
                yield some

    def _combinations(self) -> list[tuple[float, float, float, Choice]]:
        """Return all combinations with saved cycles, change of the gradient, change of the loss."""
        choices = [tuple(itertools.chain(*each)) for each in itertools.product(*self._options)]
        chosen = np.zeros((len(choices), len(self.candidates)))
        for row, choice in enumerate(choices):
            chosen[row, list(choice)] = 1.0
        squares = ((chosen @ self._products + 2 * self._start.products) * chosen).sum(1) + self._start.square
        losses = np.abs(chosen @ self._losses + self._start.loss)
        rows = zip(chosen @ self.saved_by, np.sqrt(np.maximum(squares, 0.0)), losses, choices, strict=True)
        found = [(float(s), float(g), float(x), choice) for s, g, x, choice in rows]
        return sorted(found, key=lambda row: (-_leading(row[0]), row[1:]))

    def saved(self, choice: Choice) -> float:
        """Return the cycles that a combination saves."""
        return float(self.saved_by[list(choice)].sum())

    def change(self, choice: Choice) -> tuple[float, float]:
        """Return the predicted changes of the gradient and of the loss."""
        numbers = list(choice)
        square = self._products[np.ix_(numbers, numbers)].sum() + 2 * self._start.products[numbers].sum()
        loss = float(self._losses[numbers].sum()) + self._start.loss
        return float(np.sqrt(max(square + self._start.square, 0.0))), abs(loss)

    def share(self, choice: Choice, budget: tuple[float, float]) -> float:
        """Return the predicted change as a share of the budget: the larger of the gradient's and the loss's."""
        gradient, loss = self.change(choice)
        return max(gradient / budget[0], loss / budget[1])

    def cheapest(self, budget: tuple[float, float], limit: float, known: set[Choice]) -> Choice | None:
        """Return the combination that saves most, of those within a share of the budget that are not known."""
        if self._all is not None:
            for _, gradient, loss, choice in self._all:
                if max(gradient / budget[0], loss / budget[1]) <= limit and choice not in known:
                    return choice
            return None
        choice = self._greedy(budget, limit)
        return None if choice in known else choice

    def best(self, budget: tuple[float, float], choice: Choice, least: float, known: set[Choice]) -> Choice | None:
        """Return the combination with the least change, of those that save so much and are not known.

        Where there are too many to look at, it is the one that exchanges of single settings lead to from a choice.
        """
        if self._all is not None:
            fitting = [
                (max(gradient / budget[0], loss / budget[1]), choice)
                for saved, gradient, loss, choice in self._all
                if saved >= least * (1 - 1e-12) and choice not in known
            ]
            return min(fitting)[1] if fitting else None
        choice = self._improved(choice, budget, least)
        return None if choice in known else choice

    def _greedy(self, budget: tuple[float, float], limit: float) -> Choice:
        """Take up the candidate with the best ratio of saving to change, until nothing fits; then exchange.

        A start beyond the limit is mended first.
        """
        numbers: set[int] = set()
        if self.share((), budget) > limit:
            numbers = set(self._improved((), budget, -np.inf))
        while True:
            now = self.share(tuple(sorted(numbers)), budget) ** 2
            moves = []
            for number, candidate in enumerate(self.candidates):
                changed = self._with(numbers, number)
                gain = float(self.saved_by[list(changed)].sum() - self.saved_by[list(numbers)].sum())
                if number in numbers or gain <= 0:
                    continue
                share = self.share(tuple(sorted(changed)), budget)
                if share <= limit:
                    moves.append((gain / max(share**2 - now, _TINY), gain, candidate.unit, tuple(sorted(changed))))
            if not moves:
                return tuple(sorted(numbers))
            numbers = set(max(moves)[-1])

    def _improved(self, choice: Choice, budget: tuple[float, float], least: float) -> Choice:
        """Exchange single settings as long as the predicted change shrinks, and so much is saved."""
        least -= 1e-12 * abs(least)
        while True:
            moves = {tuple(sorted(self._with(set(choice), number))) for number in range(len(self.candidates))}
            moves |= {tuple(each for each in choice if each != number) for number in choice}
            fitting = [(self.share(move, budget), move) for move in moves if self.saved(move) >= least]
            found = min(fitting, default=(np.inf, choice))
            if found[0] >= self.share(choice, budget):
                return choice
            choice = found[1]

    def _with(self, numbers: set[int], number: int) -> set[int]:
        """Return a combination with one candidate more, without those that exclude it."""
        unit, setting = self.candidates[number]
        kept = {
            each
            for each in numbers
            if self.candidates[each].unit != unit
            and (self.candidates[each].unit.layer != unit.layer or _agree(self.candidates[each].setting, setting))
        }
        return kept | {number}


def _agree(one: Setting, other: Setting) -> bool:
    """Return whether both passes of a layer may have these settings: they share a chunk, and level 0 has none."""
    return one.chunk == other.chunk or not (one.level and other.level)


def _leading(saved: float) -> float:
    """Return a number without its last digits, in which sums of the same terms differ."""
    return float(f"{saved:.12e}")


class Combining:
    """Runs combinations, and keeps the best one that was measured.

    Parameters
    ----------
    prediction : Prediction
        Of the candidates that did not overflow.
    budget : dict of str to float
        Of ``gradient`` and ``loss``.
    measure : callable
        Runs a combination, and returns its change.
    """

    def __init__(self, prediction: Prediction, budget: dict[str, float], measure: Callable[[Choice], Change]) -> None:
        self._prediction, self._budget, self._measure = prediction, (budget["gradient"], budget["loss"]), measure
        self.choice: Choice = ()
        self.change = Change(0.0, 0.0)
        #: The combinations that were run, with their changes.
        self.trials: list[tuple[Choice, Change]] = []

    def share(self, change: Change) -> float:
        """Return a change as a share of the budget: the larger of the gradient's and the loss's."""
        gradient, loss = self._budget
        return max(change.gradient / gradient, abs(change.loss) / loss)

    def run(self, start: Change, alone: Sequence[Change], trials: int, show: bool) -> None:
        """Run combinations until none promises more.

        Parameters
        ----------
        start : Change
            That without any candidate.
        alone : sequence of Change
            Those of the candidates, in the order of the prediction.
        trials : int
            Combinations that may be run.
        show : bool
            Whether to show the progress.
        """
        prediction, ratio = self._prediction, 1.0
        self.choice, self.change = (), start
        known: set[Choice] = {()}
        for number, each in enumerate(alone):  # combinations of one are measured already
            known.add((number,))
            self._take((number,), each)
        within, beyond = 0.0, math.inf  # predicted shares of combinations within the budget, and beyond it
        for _ in shown(range(trials), "combinations", show):
            proposed = self._next(known, ratio)
            if proposed is None and within:  # of many combinations only one is proposed: look between the shares
                proposed = self._saving_more(math.sqrt(within * beyond), known)
            if proposed is None or proposed in known:
                break
            known.add(proposed)
            measured = self._measure(proposed)
            found, predicted = self.share(measured), prediction.share(proposed, self._budget)
            self.trials.append((proposed, measured))
            if found <= 1:
                within = max(within, predicted)
            else:
                beyond = min(beyond, predicted)
            if found > 1 and predicted * ratio <= 1:
                ratio = max(min(found / max(predicted, _TINY), 1 / _TINY), ratio / _CAUTION)
            self._take(proposed, measured)

    def _take(self, choice: Choice, change: Change) -> None:
        """Keep a combination if it is better: within the budget, then cheaper, then with less change."""
        if self._rank(choice, change) > self._rank(self.choice, self.change):
            self.choice, self.change = choice, change

    def _rank(self, choice: Choice, change: Change) -> tuple[bool, float, float]:
        share = self.share(change)
        return share <= 1, self._prediction.saved(choice) if share <= 1 else 0.0, -share

    @property
    def _least(self) -> float:
        """The saving that a better combination must exceed."""
        return self._prediction.saved(self.choice) if self.share(self.change) <= 1 else -math.inf

    def _next(self, known: set[Choice], ratio: float) -> Choice | None:
        """Return the combination to run next; None if no other one promises more than that chosen so far.

        In this order: one that saves more, and is predicted to stay within the budget; one that saves as much with less
        change; one that saves more, and is predicted to exceed the budget by a little.
        """
        prediction = self._prediction
        proposed = self._saving_more(1 / ratio, known)
        if proposed is not None:
            return proposed
        proposed = prediction.best(self._budget, self.choice, self._least, known)
        if proposed is not None and prediction.share(proposed, self._budget) * ratio < self.share(self.change):
            return proposed
        return self._saving_more(_HOPE / ratio, known)

    def _saving_more(self, limit: float, known: set[Choice]) -> Choice | None:
        """Return the combination that saves most, and more than one, within a predicted share of the budget."""
        proposed = self._prediction.cheapest(self._budget, limit, known)
        saves = proposed is not None and self._prediction.saved(proposed) > self._least
        return proposed if saves else None
