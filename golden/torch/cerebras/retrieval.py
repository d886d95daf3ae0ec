"""Metrics of the k best predictions."""

from __future__ import annotations

import torch
from torch import Tensor

from golden.torch.cerebras.metric import Metric
from golden.torch.cerebras.steps import check_count

__all__ = ["PrecisionAtKMetric", "RecallAtKMetric"]


class _AtK(Metric):
    true_positive_at_k: Tensor
    others: Tensor

    def __init__(self, k: int, name: str | None = None) -> None:
        self.k = check_count(k, "k")
        super().__init__(name)

    def reset(self) -> None:
        """Begin with nothing."""
        self.register_state("true_positive_at_k", torch.tensor(0.0))
        self.register_state("others", torch.tensor(0.0))

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
