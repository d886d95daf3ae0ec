"""The YAML file of a training run: model and data, optimizer, precision, length, where it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor
from torch.optim import Optimizer

from golden.torch.examples.digits import DigitsCnn, DigitsMlp
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.section import Section

__all__ = ["RunFile", "example_names", "find_run_file"]


class _Sgd(Section):
    lr: PositiveFloat
    momentum: NonNegativeFloat = 0.0
    weight_decay: NonNegativeFloat = 0.0


class _AdamW(Section):
    lr: PositiveFloat = 1e-3
    betas: tuple[NonNegativeFloat, NonNegativeFloat] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    weight_decay: NonNegativeFloat = 1e-2


class _Optimizer(Section):
    SGD: _Sgd | None = None
    AdamW: _AdamW | None = None

    @model_validator(mode="after")
    def _is_one(self) -> _Optimizer:
        if len(self.model_fields_set) != 1 or (self.SGD or self.AdamW) is None:
            raise ValueError("must be one optimizer, SGD or AdamW, with its settings under it")
        return self

    def build(self, parameters: Iterable[Tensor]) -> Optimizer:
        """Return the optimizer of these parameters."""
        (name,) = self.model_fields_set
        return getattr(torch.optim, name)(parameters, **getattr(self, name).model_dump())


class _Loop(Section):
    max_steps: PositiveInt


class _Checkpoint(Section):
    steps: PositiveInt | None = None


class _Logging(Section):
    log_steps: PositiveInt = 1


class _Init(Section):
    model: Annotated[DigitsMlp | DigitsCnn | CharacterGpt, Field(discriminator="name")]
    optimizer: _Optimizer
    precision: dict[Any, Any]  # of golden.torch.yaml_configuration
    loop: _Loop
    model_dir: Path
    seed: NonNegativeInt = 1
    checkpoint: _Checkpoint = _Checkpoint()
    logging: _Logging = _Logging()


class _Dataloader(Section):
    batch_size: PositiveInt


class _Fit(Section):
    train_dataloader: _Dataloader


class _Trainer(Section):
    init: _Init
    fit: _Fit


class RunFile(Section):
    """The whole file, in the form of the Model Zoo: ``trainer.init`` and ``trainer.fit``."""

    trainer: _Trainer


def example_names() -> list[str]:
    """Return the names of the bundled runs."""
    files = resources.files("golden.torch.examples").iterdir()
    return sorted(each.name.removesuffix(".yaml") for each in files if each.name.endswith(".yaml"))


def find_run_file(name: str) -> Path:
    """Return the file of a path or of the name of a bundled run.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    path = Path(name)
    if path.is_file():
        return path
    if path.stem in example_names():
        return Path(str(resources.files("golden.torch.examples") / f"{path.stem}.yaml"))
    raise FileNotFoundError(f"run: got {name!r}, must be a YAML file or one of {', '.join(example_names())}")
