"""Metrics of the confusion matrix: F-beta, intersection over union, Dice coefficient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from golden.torch.cerebras.metric import Metric, as_rows, ratio
from golden.torch.cerebras.steps import check_count
from golden.torch.common.arguments import check_items

__all__ = ["DiceCoefficientMetric", "FBetaScoreMetric", "MeanIOUMetric"]


class _OfConfusion(Metric):
    """Rows are labels, columns predictions."""

    confusion_matrix: Tensor

    def __init__(
        self, num_classes: int, ignored: Sequence[int] | None, name: str | None, argument: str = "ignore_classes"
    ) -> None:
        self.num_classes = check_count(num_classes, "num_classes", 2, 1 << 16)
        classes = [] if ignored is None else check_items(ignored, argument, "classes")
        for each in classes:
            if check_count(each, argument, 0) >= num_classes:
                raise ValueError(f"{argument}: got class {each}, must be 0 to {num_classes - 1}")
        super().__init__(name)
        self.mask = torch.ones(num_classes)
        self.mask[classes] = 0

    def reset(self) -> None:
        """Begin with nothing."""
        self.register_state("confusion_matrix", torch.zeros(self.num_classes, self.num_classes))

    def _add(self, labels: Tensor, predictions: Tensor, weights: Tensor | None, dtype: torch.dtype | None) -> None:
        labels, predictions, weights = as_rows(weights, labels=labels.long(), predictions=predictions.long())
        for name, given in (("labels", labels), ("predictions", predictions)):
            if given.numel() and not 0 <= int(given.min()) <= int(given.max()) < self.num_classes:
                raise ValueError(
                    f"{name}: got classes {given.min()} to {given.max()}, must be 0 to {self.num_classes - 1}"
                )
        places = labels * self.num_classes + predictions
        self.confusion_matrix.view(-1).scatter_add_(0, places, weights)
        self._dtype = dtype

    def _counts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return of every class how often it was right, predicted, and the label."""
        return self.confusion_matrix.diagonal(), self.confusion_matrix.sum(0), self.confusion_matrix.sum(1)


class _MeanOfOverlaps(_OfConfusion):
    def __init__(self, num_classes: int, ignore_classes: Sequence[int] | None = None, name: str | None = None) -> None:
        super().__init__(num_classes, ignore_classes, name)

    def update(
        self, labels: Tensor, predictions: Tensor, weights: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> None:
        """Add a batch of classes; weights multiply what each element counts."""
        self._add(labels, predictions, weights, dtype)

    def _mean(self, overlap: Tensor, size: Tensor) -> Tensor:
        """Return the mean over the classes that occur and are not ignored; 0 if there are none."""
        size = size * self.mask
        return self._as(ratio(ratio(overlap * self.mask, size).sum(), (size > 0).sum()), self._dtype)


class MeanIOUMetric(_MeanOfOverlaps):
    """The mean over the classes of intersection over union."""

    def compute(self) -> Tensor:
        """Return the mean."""
        right, predicted, actual = self._counts()
        return self._mean(right, predicted + actual - right)


class DiceCoefficientMetric(_MeanOfOverlaps):
    """The mean over the classes of twice the intersection over the sum of both."""

    def compute(self) -> Tensor:
        """Return the mean."""
        right, predicted, actual = self._counts()
        return self._mean(2 * right, predicted + actual)


class FBetaScoreMetric(_OfConfusion):
    """The weighted harmonic mean of precision and recall.

    Parameters
    ----------
    num_classes : int
        Number of classes, 2 or more.
    beta : float
        How many times as much as precision recall counts.
    average_type : "micro" or "macro"
        From the sums over the classes, or the mean over the classes.
    ignore_labels : list of int, optional
        Classes that do not count.
    name : str, optional
        As for every metric.
    """

    def __init__(
        self,
        num_classes: int,
        beta: float = 1.0,
        average_type: str = "micro",
        ignore_labels: Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(beta, int | float) or not beta > 0:
            raise ValueError(f"beta: got {beta!r}, must be a positive number")
        if not isinstance(average_type, str) or average_type not in ("micro", "macro"):
            raise ValueError(f"average_type: got {average_type!r}, must be 'micro' or 'macro'")
        super().__init__(num_classes, ignore_labels, name, "ignore_labels")
        self.beta, self.average_type = beta, average_type

    def update(self, labels: Tensor, predictions: Tensor, dtype: torch.dtype | None = None) -> None:
        """Add a batch of classes."""
        self._add(labels, predictions, None, dtype)

    def compute(self) -> Tensor:
        """Return the score."""
        right, predicted, actual = (each * self.mask for each in self._counts())
        if self.average_type == "micro":
            right, predicted, actual = right.sum(), predicted.sum(), actual.sum()
        precision, recall, square = ratio(right, predicted), ratio(right, actual), self.beta**2
        score = ratio((1 + square) * precision * recall, square * precision + recall)
        return self._as(score if score.ndim == 0 else score.sum() / self.mask.sum(), self._dtype)
