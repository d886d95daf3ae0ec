"""Steps of a model at given levels: products of its layers, loss and gradient, and their distance from a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from golden.torch.amp.configuration import MixedPrecision
from golden.torch.common.arguments import loss_of, outputs_of
from golden.torch.instruments.advise.formats import Formats
from golden.torch.instruments.audit import Recorder, unchanged

__all__ = ["PASSES", "Change", "Measured", "Measurement", "ProductCount", "Unit", "loss_function"]

#: Sketched gradients have this many numbers, where whole ones would take more memory than `_MEMORY` bytes.
_SKETCH = 1 << 16
_MEMORY = 1 << 28
_SAMPLE = 8  # rows, columns and matrices of a product whose sums are looked at
_LOWER = 2.0**-4  # factor of the loss scale after a reference that overflowed


def loss_function(model: nn.Module, loss: Callable[[Any, Any], Tensor] | None) -> Callable[[Any], Tensor]:
    """Return the function that gives the loss of a batch, as `golden.torch.advise` says."""

    def of_batch(batch: Any) -> Tensor:
        if loss is not None:
            try:
                inputs, targets = batch
            except (TypeError, ValueError):
                raise ValueError(
                    f"batches: got a batch that is a {type(batch).__name__}, must be a pair of inputs and targets "
                    "with a loss function"
                ) from None
            return loss_of({"loss": loss(model(inputs), targets)})
        if isinstance(batch, Mapping):
            result = model(**batch)
        else:
            result = model(*batch) if isinstance(batch, tuple | list) else model(batch)
        return loss_of(dict(outputs_of(result)))

    return of_batch


#: The passes of a layer; each has its own level.
PASSES = ("fwd", "bwd")


class Unit(NamedTuple):
    """One pass of one layer, for which a level is chosen."""

    layer: str
    run: str  # of PASSES


class ProductCount(Recorder):
    """Counts the single products of every unit.

    Attributes
    ----------
    products : dict of Unit to int
        In the order in which the units run first.
    fixed : int
        Products that have no level: sums of the gradients of biases and of broadcast operands, always in fp32.
    largest : dict of Unit to float
        The largest absolute value that a partial sum takes, of samples of the matrix products, in exact arithmetic.
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: dict[Unit, int] = {}
        self.fixed = 0
        self.largest: dict[Unit, float] = {}

    def exact(self, operator: Any, args: tuple[Any, ...]) -> None:
        """Count the products of a call."""
        if _is_sum(args):
            self.fixed += _products(operator, args)
            return
        module, run = self.place()
        unit = Unit(module, "bwd" if run == "backward" else "fwd")
        self.products[unit] = self.products.get(unit, 0) + _products(operator, args)
        if operator._schema.name == "cbfloat::matrix_product":
            self.largest[unit] = max(self.largest.get(unit, 0.0), _largest_sum(*args[:2]))


def _is_sum(args: tuple[Any, ...]) -> bool:
    """Return whether a product is a sum: its left factor is a row of ones."""
    left = args[0]
    return left.ndim == 2 and left.shape[0] == 1 and left.shape[1] > 0 and bool((left == 1).all())


def _largest_sum(left: Tensor, right: Tensor) -> float:
    """Return the largest partial sum of samples of a product."""
    if not left.numel() or not right.numel():
        return 0.0
    largest = 0.0
    for a, b in zip(_matrices(left), _matrices(right), strict=False):
        rows, columns = (_spread(each, _SAMPLE) for each in (a, b.mT))
        terms = rows.double().numpy()[:, None, :] * columns.double().numpy()[None, :, :]
        with np.errstate(invalid="ignore"):
            largest = max(largest, float(np.abs(np.cumsum(terms, axis=-1)).max()))
    return largest


def _matrices(given: Tensor) -> Tensor:
    return _spread(given.detach().reshape(-1, *given.shape[-2:]), _SAMPLE)


def _spread(given: Tensor, count: int) -> Tensor:
    return given[:: max(1, len(given) // count)][:count]


def _products(operator: Any, args: tuple[Any, ...]) -> int:
    shapes = tuple(each.to("meta") if isinstance(each, Tensor) else each for each in args)
    return int(flop_registry[operator.overloadpacket](*shapes, out_val=operator(*shapes))) // 2


@dataclass(frozen=True)
class Measured:
    """A step: the mean loss of the batches, and the gradient of their sum, as one vector without the loss scale."""

    loss: float
    gradient: Tensor

    @property
    def is_finite(self) -> bool:
        """Whether nothing overflowed."""
        return math.isfinite(self.loss) and bool(self.gradient.isfinite().all())


@dataclass(frozen=True)
class Change:
    """The difference of a step from the reference, relative to it.

    Parameters
    ----------
    loss : float
        Change of the loss, with its sign; infinite if the step overflowed.
    gradient : float
        Norm of the change of the gradient of all parameters.
    direction : Tensor, optional
        What the step adds to the change of the gradient at the start, or a sketch of it whose inner products are nearly
        the same.
    """

    loss: float
    gradient: float
    direction: Tensor | None = None

    @property
    def is_finite(self) -> bool:
        """Whether the step did not overflow."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient)


_OVERFLOW = Change(math.inf, math.inf)


class Measurement:
    """Runs steps and counts them.

    Parameters
    ----------
    model : nn.Module
        It is left as it is: gradients, buffers and random generators.
    batches : list
        All of them make one step.
    loss : callable
        Gives the loss of a batch.
    precision : MixedPrecision
        Format, modes and loss scaling.
    formats : Formats
        All formats. With others than that of the precision, the reference is in fp32.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: list[Any],
        loss: Callable[[Any], Tensor],
        precision: MixedPrecision,
        formats: Formats,
    ) -> None:
        self._model, self._batches, self._loss, self._precision = model, batches, loss, precision
        self._parameters = [each for each in model.parameters() if each.requires_grad]
        if not self._parameters:
            raise ValueError("model: has no parameters that require a gradient, must have some")
        self._formats = formats
        self.loss_scale = formats.first_scale(precision)
        self.steps = 0
        self._reference: Measured | None = None
        self._start: Measured | None = None
        self._least = math.inf
        self._norm = 0.0
        self._places: tuple[Tensor, Tensor] | None = None

    def begin(self, candidates: int) -> None:
        """Run the reference, in fp32; without other formats, `start` does it."""
        if self._formats.others:
            reference = self._run(None)
            if not reference.is_finite:
                raise ValueError("model: its loss or gradient is not finite in fp32, must be finite; see the batches")
            self._refer(reference, candidates)

    def start(self, levels: Mapping[str, Any], candidates: int) -> tuple[Change, ProductCount]:
        """Run a step that others may start from, at level 0; return its change, and the products of every unit.

        Others start from that with the least change. As long as there is none, a step whose gradient overflows is run
        again with a lower loss scale. If that does not help, its change is infinite; without other formats it is an
        error.
        """
        first = self.loss_scale
        while True:
            counter = ProductCount()
            step = self._run(levels, counter)
            if step.is_finite:
                break
            if not math.isfinite(step.loss) or self.loss_scale <= 1.0 or self._start is not None:
                if not self._formats.others:
                    raise ValueError(
                        "model: its loss or gradient is not finite at level 0, must be finite; look for overflows in "
                        "the model or the batches"
                    )
                self.loss_scale = first
                return _OVERFLOW, counter
            self.loss_scale *= _LOWER
        if self._reference is None:
            self._refer(step, candidates)
        change = self._compared(step, None)
        if self._start is None or change.gradient < self._least:
            self._start, self._least = step, change.gradient
        return change, counter

    def started(self) -> Change:
        """Return the change of the step that others start from, with its direction from the reference."""
        assert self._start is not None
        return self._compared(self._start, self._reference)

    def change(self, levels: Mapping[str, Any], *, with_direction: bool = False) -> Change:
        """Run a step at the levels of a map, and at level 0 where it says nothing."""
        step = self._run(levels)
        return self._compared(step, self._start if with_direction else None) if step.is_finite else _OVERFLOW

    def _refer(self, reference: Measured, candidates: int) -> None:
        self._reference, self._norm = reference, reference.gradient.double().norm().item()
        if not self._norm:
            raise ValueError("model: its gradient is zero on these batches, must not be")
        size = reference.gradient.numel()
        if size * candidates * 4 > _MEMORY and size > _SKETCH:
            generator = torch.Generator().manual_seed(size)
            places = torch.randint(_SKETCH, (size,), generator=generator)
            self._places = places, torch.randint(2, (size,), generator=generator).float().mul_(2).sub_(1)

    def _compared(self, step: Measured, start: Measured | None) -> Change:
        """Return the change of a step, with a direction if there is a start."""
        assert self._reference is not None
        reference = self._reference
        norm = (step.gradient - reference.gradient).double().norm().item() / self._norm
        moved = (step.loss - reference.loss) / max(abs(reference.loss), torch.finfo(torch.float32).tiny)
        return Change(
            moved, norm, None if start is None else self._sketched((step.gradient - start.gradient) / self._norm)
        )

    def _sketched(self, vector: Tensor) -> Tensor:
        if self._places is None:
            return vector
        places, signs = self._places
        return vector.new_zeros(_SKETCH).index_add_(0, places, vector * signs)

    def _run(self, levels: Mapping[str, Any] | None, counter: ProductCount | None = None) -> Measured:
        """Run a step at the levels of a map, or None: in fp32."""
        self.steps += 1
        if levels is None:
            precision = replace(self._precision, enabled=False)
        else:
            precision = replace(self._precision, precision_opt_level=0, levels=levels or None)
        total = 0.0
        with unchanged(self._model, self._batches, {}):
            counting = nullcontext() if counter is None else counter.following(self._model)
            with counting, precision.autocast(self._model):
                for batch in self._batches:
                    total += self._backward(batch)
            gradients = [
                torch.zeros(each.numel()) if each.grad is None else each.grad.detach().float().reshape(-1)
                for each in self._parameters
            ]
            gradient = torch.cat(gradients) / self.loss_scale
        return Measured(total / len(self._batches), gradient)

    def _backward(self, batch: Any) -> float:
        """Add the gradients of a batch, times the loss scale, to the gradients of the parameters; return the loss."""
        loss = self._loss(batch)
        if not loss.requires_grad:
            raise ValueError("loss: got a loss that depends on no parameter, must depend on the model's")
        (loss * self.loss_scale).backward()
        return loss.item()
