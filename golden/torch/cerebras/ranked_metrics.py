"""Metrics of a confusion matrix, of a curve's area, and of the first k results."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from golden.torch.cerebras.metric import Counting, as_rows, ratio
from golden.torch.common.arguments import check_count, check_items

__all__ = [
    "AUCMetric",
    "DiceCoefficientMetric",
    "FBetaScoreMetric",
    "MeanIOUMetric",
    "PrecisionAtKMetric",
    "RecallAtKMetric",
]


class AUCMetric(Counting):
    """Area under the curve of true over false positives (ROC), or of precision over recall (PR).

    Parameters
    ----------
    num_thresholds : int
        Thresholds from 0 to 1 at equal distances, 2 or more.
    curve : "ROC" or "PR"
        Which curve.
    name : str, optional
        As for every metric.
    summation_method : "interpolation", "minoring" or "majoring"
        The height of each piece: between its ends, the lower or the higher of them. Between two points of PR, true and
        false positives are interpolated, not their quotient (Davis and Goadrich, 2006).
    thresholds : list of float, optional
        Thresholds between 0 and 1 in place of those at equal distances.

    Raises
    ------
    ValueError
        If a parameter has another value.
    """

    sums = ("true_positive", "false_positive", "true_negative", "false_negative")
    true_positive: Tensor
    false_positive: Tensor
    true_negative: Tensor
    false_negative: Tensor

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        name: str | None = None,
        summation_method: str = "interpolation",
        thresholds: Sequence[float] | None = None,
    ) -> None:
        if not isinstance(curve, str) or curve not in ("ROC", "PR"):
            raise ValueError(f"curve: got {curve!r}, must be 'ROC' or 'PR'")
        if not isinstance(summation_method, str) or summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f"summation_method: got {summation_method!r}, must be 'interpolation', 'minoring' or 'majoring'"
            )
        if thresholds is None:
            check_count(num_thresholds, "num_thresholds", 2, 1 << 20)
            thresholds = [at / (num_thresholds - 1) for at in range(1, num_thresholds - 1)]
        else:
            thresholds = check_items(thresholds, "thresholds", "numbers")
            if not all(isinstance(each, int | float) for each in thresholds):
                raise TypeError(f"thresholds: got {thresholds!r}, must be a list of numbers")
        self.curve, self.summation_method = curve, summation_method
        self.shape = (len(thresholds) + 2,)
        super().__init__(name)
        # A little beyond 0 and 1, so that these count on the right side.
        self.thresholds = torch.tensor([-1e-7, *sorted(thresholds), 1 + 1e-7])

    def update(self, labels: Tensor, predictions: Tensor, weights: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        labels : tensor
            Positive if above 0.
        predictions : float tensor of the same shape
            From 0 to 1.
        weights : tensor of the same shape, optional
            What each counts.

        Raises
        ------
        ValueError
            If a shape is another or a value outside.
        """
        labels, predictions, weights = as_rows(weights, labels=labels, predictions=predictions)
        if labels.numel() and labels.min() < 0:
            raise ValueError(f"labels: got {labels.min()}, must be 0 or more")
        if predictions.numel() and not (predictions.min() >= 0 and predictions.max() <= 1):
            raise ValueError(f"predictions: got {predictions.min()} to {predictions.max()}, must be from 0 to 1")
        positive = predictions > self.thresholds.unsqueeze(-1)
        label = labels > 0
        self.true_positive += ((label & positive) * weights).sum(-1)
        self.false_positive += ((~label & positive) * weights).sum(-1)
        self.false_negative += ((label & ~positive) * weights).sum(-1)
        self.true_negative += ((~label & ~positive) * weights).sum(-1)

    def compute(self) -> float:
        """Return the area."""
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._interpolated()
        recall = ratio(self.true_positive, self.true_positive + self.false_negative)
        if self.curve == "ROC":
            x, y = ratio(self.false_positive, self.false_positive + self.true_negative), recall
        else:
            x, y = recall, ratio(self.true_positive, self.true_positive + self.false_positive)
        ends = y[:-1], y[1:]
        height = {
            "interpolation": (ends[0] + ends[1]) / 2,
            "minoring": torch.minimum(*ends),
            "majoring": torch.maximum(*ends),
        }[self.summation_method]
        return float(((x[:-1] - x[1:]) * height).sum())

    def _interpolated(self) -> float:
        """Integrate precision where true and all positives vary linearly between two thresholds."""
        right, positive = self.true_positive, self.true_positive + self.false_positive
        slope = ratio(right[:-1] - right[1:], positive[:-1] - positive[1:])
        offset = right[1:] - slope * positive[1:]
        both = (positive[:-1] > 0) & (positive[1:] > 0)
        growth = torch.where(both, ratio(positive[:-1], positive[1:]), 1.0)
        area = slope * (right[:-1] - right[1:] + offset * torch.log(growth))
        return float(ratio(area, right[1:] + self.false_negative[1:]).sum())


class _OfConfusion(Counting):
    """Rows are labels, columns predictions."""

    sums = ("confusion_matrix",)
    confusion_matrix: Tensor

    def __init__(
        self, num_classes: int, ignored: Sequence[int] | None, name: str | None, argument: str = "ignore_classes"
    ) -> None:
        self.num_classes = check_count(num_classes, "num_classes", 2, 1 << 16)
        classes = [] if ignored is None else check_items(ignored, argument, "classes")
        for each in classes:
            if check_count(each, argument, 0) >= num_classes:
                raise ValueError(f"{argument}: got class {each}, must be 0 to {num_classes - 1}")
        self.shape = (num_classes, num_classes)
        super().__init__(name)
        self.mask = torch.ones(num_classes)
        self.mask[classes] = 0

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


class _AtK(Counting):
    sums = ("true_positive_at_k", "others")
    true_positive_at_k: Tensor
    others: Tensor

    def __init__(self, k: int, name: str | None = None) -> None:
        self.k = check_count(k, "k")
        super().__init__(name)

    def update(self, labels: Tensor, predictions: Tensor, weights: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        labels : int tensor (rows, labels of a row)
            Classes that are right.
        predictions : tensor (rows, classes)
            The larger, the likelier.
        weights : tensor, optional
            One number, or one of every row.

        Raises
        ------
        ValueError
            If the number of weights is another.
        """
        if weights is not None and weights.ndim and weights.numel() != labels.shape[0]:
            raise ValueError(f"weights: got {weights.numel()}, must be one or {labels.shape[0]}, one of every row")
        best = predictions.topk(self.k, dim=-1).indices
        found = (labels.unsqueeze(-1) == best.unsqueeze(-2)).sum((-2, -1)).float()
        factor = 1.0 if weights is None else weights.flatten() if weights.ndim else weights
        self.true_positive_at_k += (found * factor).sum()
        self.others += ((self._out_of(labels) - found) * factor).sum()

    def _out_of(self, labels: Tensor) -> int:
        raise NotImplementedError

    def compute(self) -> float:
        """Return the share."""
        return float(self.true_positive_at_k / (self.true_positive_at_k + self.others))


class PrecisionAtKMetric(_AtK):
    """The share of the `k` best predictions that are right."""

    def _out_of(self, labels: Tensor) -> int:
        return self.k


class RecallAtKMetric(_AtK):
    """The share of the labels that are among the `k` best predictions."""

    def _out_of(self, labels: Tensor) -> int:
        return int(labels.shape[-1])
