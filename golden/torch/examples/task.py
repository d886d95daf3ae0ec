"""The interface of an example: a model, data, a loss and a measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.utils.data import Dataset

from golden.rounding import Randomness
from golden.torch import mx
from golden.torch.common.section import Section

__all__ = ["Blocks", "Task"]


@dataclass(frozen=True)
class Task:
    """A model to train and what to train it on.

    Parameters
    ----------
    model : nn.Module
        With the weights that the seed of PyTorch gave it.
    loss : callable
        ``loss(outputs, targets)``, a scalar.
    train, validation : Dataset
        Pairs of inputs and targets.
    measure_name, measure
        What is reported after the training: ``measure(outputs, targets)``, a number for each example.
    notes : tuple of str
        What the log of the run shall tell about the data.
    """

    model: nn.Module
    loss: Callable[[Any, Any], Tensor]
    train: Dataset[Any]
    validation: Dataset[Any]
    measure_name: str
    measure: Callable[[Any, Any], Tensor]
    notes: tuple[str, ...] = ()


_STOCHASTIC = "stochastic"


class Blocks(Section):
    """The arguments of `golden.torch.mx.convert`; `seed` is that of stochastic roundings."""

    element: str
    gradient_element: str | None = None
    block: PositiveInt | None = None
    scale: str | None = None
    rounding: str = "nearest_even"
    gradient_scale: str | None = None
    gradient_rounding: str = "nearest_even"
    keep: tuple[str, ...] = ()
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    def put_into(self, model: nn.Module) -> tuple[str, ...]:
        """Convert a model, and return what the log of the run shall tell about it.

        Raises
        ------
        ValueError
            If a setting names nothing, with its place in the file.
        """
        is_random = _STOCHASTIC in (self.rounding, self.gradient_rounding)
        try:
            mx.convert(
                model,
                random=Randomness(seed=self.seed) if is_random else None,
                **self.model_dump(exclude={"seed"}),
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"trainer.init.model.blocks.{error}") from None
        layers = [each for each in model.modules() if isinstance(each, mx.Linear)]
        return tuple(f"linear layers of blocks: {len(layers)}, the first is {first}" for first in layers[:1])
