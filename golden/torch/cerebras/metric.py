"""The base of all metrics, and those that count: means, accuracy, perplexity."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar
from weakref import WeakSet

import torch
from torch import Tensor, nn

from golden.torch.common.arguments import check_count, check_name

__all__ = [
    "AccuracyMetric",
    "MeanMetric",
    "MeanPerClassAccuracyMetric",
    "Metric",
    "PerplexityMetric",
    "compute_all_metrics",
    "get_all_metrics",
]


_living: WeakSet[Metric] = WeakSet()
_made = 0


class Metric(nn.Module, ABC):
    """The base of metrics; a call updates one with its arguments and returns its value.

    Parameters
    ----------
    name : str, optional
        What `get_all_metrics` calls it; the name of the class unless given.
    """

    def __init__(self, name: str | None = None) -> None:
        global _made
        super().__init__()
        self.name = check_name(name) or type(self).__name__
        self._num_updates = 0
        self._dtype: torch.dtype | None = None
        _made += 1
        self._place = _made
        _living.add(self)
        self._updating = False
        self.reset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, counted in (("update", _counting), ("reset", _starting_anew)):
            if name in vars(cls):
                setattr(cls, name, counted(vars(cls)[name]))

    @property
    def num_updates(self) -> int:
        """Updates since the last reset."""
        return self._num_updates

    @abstractmethod
    def reset(self) -> None:
        """Register every state with its first value."""

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> None:
        """Change the state by a batch."""

    @abstractmethod
    def compute(self) -> Any:
        """Return the value."""

    def register_state(self, name: str, tensor: Tensor, persistent: bool = False) -> None:
        """Make a tensor a state, which `reset` brings back; it is a buffer of the module."""
        self.register_buffer(name, tensor, persistent=persistent)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Update, and return the value."""
        self.update(*args, **kwargs)
        return self.compute()

    def _as(self, value: Tensor, dtype: torch.dtype | None) -> Tensor:
        return value if dtype is None else value.to(dtype)

    def __float__(self) -> float:
        return float(self.compute())


def _counting(update: Any) -> Any:
    """Count an update once, even if it calls the update of its base."""

    @functools.wraps(update)
    def counted(self: Metric, *args: Any, **kwargs: Any) -> None:
        outermost, self._updating = not self._updating, True
        try:
            with torch.no_grad():
                update(self, *args, **kwargs)
        finally:
            self._updating = not outermost
        self._num_updates += outermost

    return counted


def _starting_anew(reset: Any) -> Any:
    @functools.wraps(reset)
    def anew(self: Metric) -> None:
        reset(self)
        self._num_updates = 0

    return anew


def get_all_metrics() -> Iterator[tuple[str, Metric]]:
    """Give the name and the metric of all that exist, in the order in which they were made.

    Metrics of the same name are called ``name.0``, ``name.1`` and so on.
    """
    by_name: dict[str, list[Metric]] = {}
    for metric in sorted(_living, key=lambda each: each._place):
        by_name.setdefault(metric.name, []).append(metric)
    for name, metrics in by_name.items():
        for at, metric in enumerate(metrics):
            yield (name if len(metrics) == 1 else f"{name}.{at}"), metric


def compute_all_metrics() -> dict[str, Any]:
    """Return the value of every metric that has been updated, by the name that `get_all_metrics` gives."""
    return {name: metric.compute() for name, metric in get_all_metrics() if metric.num_updates}


def as_rows(weights: Tensor | None, **tensors: Tensor) -> list[Tensor]:
    """Return tensors of one shape, flat; then the weights, ones unless given. Other shapes are errors."""
    (first, expected), *others = ((name, tensor.shape) for name, tensor in tensors.items())
    if weights is not None:
        others.append(("weights", weights.shape))
    for name, shape in others:
        if shape != expected:
            raise ValueError(f"{name}: got shape {tuple(shape)}, must be {tuple(expected)} as {first}")
    rows = [tensor.flatten() for tensor in tensors.values()]
    return [*rows, torch.ones(rows[0].shape) if weights is None else weights.flatten().float()]


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Return a quotient, zero where the denominator is."""
    return torch.where(denominator == 0, 0.0, numerator / torch.where(denominator == 0, 1.0, denominator))


class Counting(Metric):
    """The base of metrics whose states are sums of one shape."""

    sums: ClassVar[tuple[str, ...]]
    shape: tuple[int, ...] = ()

    def reset(self) -> None:
        """Begin with nothing."""
        for name in self.sums:
            self.register_state(name, torch.zeros(self.shape))


class MeanMetric(Counting):
    """The mean of values, weighted on request."""

    sums = ("mean_value", "weight")
    mean_value: Tensor
    weight: Tensor

    def update(self, value: Tensor | float, weight: Tensor | float = 1.0, dtype: torch.dtype | None = None) -> None:
        """Add values; `weight` broadcasts to them. `dtype` is the dtype of the result."""
        value = torch.as_tensor(value, dtype=torch.float32)
        weight = torch.broadcast_to(torch.as_tensor(weight, dtype=torch.float32), value.shape)
        self.mean_value += (value * weight).sum()
        self.weight += weight.sum()
        self._dtype = dtype

    def compute(self) -> Tensor:
        """Return the mean; NaN of nothing."""
        return self._as(self.mean_value / self.weight, self._dtype)


class AccuracyMetric(Counting):
    """The share of predictions that are the label."""

    sums = ("total_correct_predictions", "total_num_tokens")
    total_correct_predictions: Tensor
    total_num_tokens: Tensor

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


class PerplexityMetric(Counting):
    """The exponential of the loss per token."""

    sums = ("total_loss", "total_num_tokens")
    total_loss: Tensor
    total_num_tokens: Tensor

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


class MeanPerClassAccuracyMetric(Counting):
    """The mean over the classes of the share of each that is recognised; a class without labels counts as 0."""

    sums = ("total_per_class_correct_predictions", "total_per_class_tokens")
    total_per_class_correct_predictions: Tensor
    total_per_class_tokens: Tensor

    def __init__(self, num_classes: int, name: str | None = None) -> None:
        self.num_classes = check_count(num_classes, "num_classes", most=1 << 24)
        self.shape = (num_classes,)
        super().__init__(name)

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
