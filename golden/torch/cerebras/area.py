"""The area under a curve of two classes, from counts at a number of thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from golden.torch.cerebras.metric import Metric, as_rows, ratio
from golden.torch.cerebras.steps import check_count
from golden.torch.common.arguments import check_items

__all__ = ["AUCMetric"]


class AUCMetric(Metric):
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
        super().__init__(name)
        # A little beyond 0 and 1, so that these count on the right side.
        self.thresholds = torch.tensor([-1e-7, *sorted(thresholds), 1 + 1e-7])
        self.reset()

    def reset(self) -> None:
        """Begin with nothing."""
        number = len(getattr(self, "thresholds", ()))
        for name in ("true_positive", "false_positive", "true_negative", "false_negative"):
            self.register_state(name, torch.zeros(number))

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
