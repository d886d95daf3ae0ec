"""Which combinations to run: the cheapest one that is predicted to fit, then others as long as they promise more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from golden.torch.common.terminal import shown
from golden.torch.instruments.advise.choosing import Choice, Prediction
from golden.torch.instruments.advise.measuring import Change

__all__ = ["Combining"]

_HOPE = 1.25  # share of the budget that a combination may be predicted to take, where nothing better is left to run
_LEAST = 1e-30
_CAUTION = 0.9  # factor of the target, after a combination that exceeded the budget against the prediction


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
                ratio = max(min(found / max(predicted, _LEAST), 1 / _LEAST), ratio / _CAUTION)
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
