"""The section ``blocks`` of a bundled model: its linear layers train with blocks of narrow numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt
from torch import nn

from golden.rounding import Randomness
from golden.torch import mx
from golden.torch.common.section import Section

__all__ = ["Blocks"]

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
