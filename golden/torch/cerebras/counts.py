"""Metrics that are a quotient of two sums: mean, accuracy, perplexity."""

from __future__ import annotations

import torch
from torch import Tensor

from golden.torch.cerebras.metric import Metric, as_rows, ratio
from golden.torch.cerebras.steps import check_count

__all__ = ["AccuracyMetric", "MeanMetric", "MeanPerClassAccuracyMetric", "PerplexityMetric"]


class MeanMetric(Metric):
    """The mean of values, weighted on request."""

    mean_value: Tensor
    weight: Tensor

    def reset(self) -> None:
        """Begin with nothing."""
        self.register_state("mean_value", torch.tensor(0.0))
        self.register_state("weight", torch.tensor(0.0))

    def update(self, value: Tensor | float, weight: Tensor | float = 1.0, dtype: torch.dtype | None = None) -> None:
        """Add values; `weight` broadcasts to them. `dtype` is that of the result."""
        value = torch.as_tensor(value, dtype=torch.float32)
        weight = torch.broadcast_to(torch.as_tensor(weight, dtype=torch.float32), value.shape)
        self.mean_value += (value * weight).sum()
        self.weight += weight.sum()
        self._dtype = dtype

    def compute(self) -> Tensor:
        """Return the mean; NaN of nothing."""
        return self._as(self.mean_value / self.weight, self._dtype)


class AccuracyMetric(Metric):
    """The share of predictions that are the label."""

    total_correct_predictions: Tensor
    total_num_tokens: Tensor

    def reset(self) -> None:
        """Begin with nothing."""
        self.register_state("total_correct_predictions", torch.tensor(0.0))
        self.register_state("total_num_tokens", torch.tensor(0.0))

    def update(
        self, labels: Tensor, predictions: Tensor, weights: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> None:
        """Add a batch of classes.

        Parameters
        ----------
        labels, predictions : tensors of as many elements
            Classes.
        weights : tensor, optional
            Of the same shape; what has weight 0 does not count, what has more counts once in the number.
        dtype : torch.dtype, optional
            Of the result.

        Raises
        ------
        ValueError
            If the numbers of elements differ.
        """
        if labels.numel() != predictions.numel():
            raise ValueError(
                f"predictions: got shape {tuple(predictions.shape)}, must be {tuple(labels.shape)}, that of labels"
            )
        labels, predictions, weights = as_rows(weights, labels=labels, predictions=predictions.reshape(labels.shape))
        self.total_correct_predictions += ((labels == predictions) * weights).sum()
        self.total_num_tokens += (weights > 0).sum()
        self._dtype = dtype

    def compute(self) -> Tensor:
        """Return the share; NaN of nothing."""
        return self._as(self.total_correct_predictions / self.total_num_tokens, self._dtype)


class PerplexityMetric(Metric):
    """The exponential of the loss per token."""

    total_loss: Tensor
    total_num_tokens: Tensor

    def reset(self) -> None:
        """Begin with nothing."""
        self.register_state("total_loss", torch.tensor(0.0))
        self.register_state("total_num_tokens", torch.tensor(0.0))

    def update(
        self, labels: Tensor, loss: Tensor, weights: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> None:
        """Add a batch.

        Parameters
        ----------
        labels : tensor
            Its elements are the tokens.
        loss : tensor
            The sum of the losses of all tokens, not their mean.
        weights : tensor, optional
            Tokens with weight 0 do not count.
        dtype : torch.dtype, optional
            Of the result.
        """
        self.total_loss += loss.detach().float()
        self.total_num_tokens += float(labels.numel()) if weights is None else (weights > 0).sum()
        self._dtype = dtype

    def compute(self) -> Tensor:
        """Return the perplexity."""
        return self._as(torch.exp(self.total_loss / self.total_num_tokens), self._dtype)


class MeanPerClassAccuracyMetric(Metric):
    """The mean over the classes of the share of each that is recognised; a class without labels counts as 0."""

    total_per_class_correct_predictions: Tensor
    total_per_class_tokens: Tensor

    def __init__(self, num_classes: int, name: str | None = None) -> None:
        self.num_classes = check_count(num_classes, "num_classes", most=1 << 24)
        super().__init__(name)

    def reset(self) -> None:
        """Begin with nothing."""
        self.register_state("total_per_class_correct_predictions", torch.zeros(self.num_classes))
        self.register_state("total_per_class_tokens", torch.zeros(self.num_classes))

    def update(
        self, labels: Tensor, predictions: Tensor, weights: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> None:
        """Add a batch of classes; weights multiply what each element counts."""
        labels, predictions, weights = as_rows(weights, labels=labels.long(), predictions=predictions)
        self.total_per_class_correct_predictions.scatter_add_(0, labels, (labels == predictions) * weights)
        self.total_per_class_tokens.scatter_add_(0, labels, weights)
        self._dtype = dtype

    def compute(self) -> Tensor:
        """Return the mean."""
        shares = ratio(self.total_per_class_correct_predictions, self.total_per_class_tokens)
        return self._as(shares.mean(), self._dtype)
