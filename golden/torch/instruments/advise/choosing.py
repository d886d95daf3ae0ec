"""Which levels to choose: the cheapest combination whose predicted change stays within a budget.

Each candidate was measured alone. Changes are taken to add up, as vectors: the sum of the changes of its candidates
predicts the change of a combination, hence by their inner products.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.torch.instruments.advise.products import Unit

__all__ = ["Candidate", "Choice", "Prediction", "Setting", "Start"]

_MOST = 1 << 16  # combinations that are looked at one by one
_TINY = 1e-30


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
