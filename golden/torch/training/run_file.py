"""The YAML file of a training run: model and data, optimizer, precision, length, where it is kept."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    ConfigDict,
    Discriminator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Tag,
    model_validator,
)

from golden.nearest import did_you_mean
from golden.torch.common.section import Section
from golden.torch.examples.digits import DigitsCnn, DigitsMlp
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.training.loop import TrainingLoop
from golden.torch.training.saving import Checkpoint

__all__ = ["Dataloader", "ImportedModel", "Init", "RunFile", "example_names", "find_run_file"]

_BUNDLED = {"digits_mlp": DigitsMlp, "digits_cnn": DigitsCnn, "character_gpt": CharacterGpt}
_LR = AliasChoices("lr", "learning_rate")
# One entry, Name: {setting: value}, or the name alone.
_Named = dict[str, Any] | str


class _Sgd(Section):
    lr: PositiveFloat | None = Field(None, validation_alias=_LR)
    momentum: NonNegativeFloat = 0.0
    dampening: NonNegativeFloat = 0.0
    weight_decay: NonNegativeFloat = 0.0
    nesterov: bool = False
    maximize: bool = False


class _AdamW(Section):
    lr: PositiveFloat | None = Field(None, validation_alias=_LR)
    betas: tuple[NonNegativeFloat, NonNegativeFloat] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    weight_decay: NonNegativeFloat = 1e-2
    correct_bias: bool = True  # which golden.torch.optim.AdamW takes, and PyTorch's does not
    amsgrad: bool = False
    maximize: bool = False


class _Optimizer(Section):
    model_config = ConfigDict(extra="allow", frozen=True)

    SGD: _Sgd | None = None
    AdamW: _AdamW | None = None

    @model_validator(mode="after")
    def _is_one(self) -> _Optimizer:
        if len(self.model_fields_set) != 1 or any(getattr(self, name) is None for name in self.model_fields_set):
            raise ValueError(
                "must be one optimizer, SGD or AdamW, with its settings under it, or another by its name or by its "
                "import path module:Class"
            )
        return self


class _Loop(Section):
    num_steps: PositiveInt | None = None
    max_steps: PositiveInt | None = None
    num_epochs: PositiveInt | None = None
    steps_per_epoch: PositiveInt | None = None
    eval_frequency: NonNegativeInt | Annotated[float, Field(ge=0, le=1)] | None = 1.0
    eval_steps: PositiveInt | None = None
    grad_accum_steps: PositiveInt = 1

    @model_validator(mode="after")
    def _has_an_end(self) -> _Loop:
        if self.num_steps is None and self.max_steps is None and self.num_epochs is None:
            raise ValueError("must have max_steps, num_steps or num_epochs")
        self.settings()
        return self

    def settings(self) -> TrainingLoop:
        """Return the loop for the Trainer."""
        return TrainingLoop(**self.model_dump())


class _Checkpoint(Section):
    without_effect = ("checkpoint_name", "checkpoint_root", "disable_strict_checkpoint_loading", "strict_version")

    steps: NonNegativeInt | None = None
    keep: PositiveInt | None = None
    autoload_last_checkpoint: bool = False  # unlike in Python: the command line goes on with --resume
    save_initial_checkpoint: bool = False

    def settings(self) -> Checkpoint:
        """Return the arguments for the Trainer."""
        return Checkpoint(**self.model_dump())


class _Logging(Section):
    without_effect = ("enable_act_frequency", "log_level", "wsc_log_level")

    log_steps: PositiveInt = 1


class _Observe(Section):
    every: PositiveInt = 20
    rows: PositiveInt = 16
    tensorboard: bool = False


class _Backend(Section):
    model_config = ConfigDict(extra="allow", frozen=True)  # what only a cluster could use

    backend_type: str


class ImportedModel(Section):
    """A model by its import path ``module:Class``; all other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the model is built with."""
        return dict(self.model_extra or {})


def _kind_of_model(given: Any) -> str | None:
    name = given.get("name") if isinstance(given, dict) else getattr(given, "name", None)
    return "by import path" if isinstance(name, str) and ":" in name else name


_Model = Annotated[
    Annotated[DigitsMlp, Tag("digits_mlp")]
    | Annotated[DigitsCnn, Tag("digits_cnn")]
    | Annotated[CharacterGpt, Tag("character_gpt")]
    | Annotated[ImportedModel, Tag("by import path")],
    Discriminator(
        _kind_of_model,
        custom_error_type="unknown_model",
        custom_error_message=f"must have as its name one of {', '.join(_BUNDLED)}, or an import path module:Class",
    ),
]


class Init(Section):
    """The arguments that a `Trainer` is built with."""

    model: _Model
    optimizer: _Optimizer
    schedulers: list[_Named] | _Named | None = None
    loss: str | None = None
    precision: dict[Any, Any]  # of golden.torch.amp.yaml_configuration
    loop: _Loop
    model_dir: Path = Path("model_dir")
    seed: NonNegativeInt = 1
    device: str | None = None
    backend: str | _Backend | None = None
    checkpoint: _Checkpoint = _Checkpoint()
    logging: _Logging = _Logging()
    logger: list[_Named] | _Named | None = None
    loggers: list[_Named] | _Named | None = None
    callbacks: list[_Named] | _Named | None = None
    observe: _Observe | None = None

    @model_validator(mode="after")
    def _loss_is_for_other_models(self) -> Init:
        if self.loss is not None and not isinstance(self.model, ImportedModel):
            raise ValueError("loss must not be there, a bundled model has its own")
        return self


class Dataloader(Section):
    """Data: from `data_processor` by its import path, or from the bundled model."""

    model_config = ConfigDict(extra="allow", frozen=True)

    batch_size: PositiveInt | None = None
    data_processor: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """All keys but the name."""
        of_batches = {} if self.batch_size is None else {"batch_size": self.batch_size}
        return of_batches | dict(self.model_extra or {})


class _Fit(Section):
    train_dataloader: Dataloader
    val_dataloader: Dataloader | None = None
    ckpt_path: Path | None = None


class _Validate(Section):
    val_dataloader: Dataloader
    ckpt_path: Path | None = None


class _ValidateAll(Section):
    val_dataloaders: Dataloader | list[Dataloader]
    ckpt_paths: Path | list[Path] | None = None


class _Trainer(Section):
    init: Init
    fit: _Fit
    validate_: _Validate | None = Field(None, alias="validate")
    validate_all: _ValidateAll | None = None


class RunFile(Section):
    """The whole file, in the form of the Model Zoo: ``trainer.init``, ``trainer.fit`` and ``trainer.validate``."""

    trainer: _Trainer


def example_names() -> list[str]:
    """Return the names of the bundled runs."""
    files = resources.files("golden.torch.examples").iterdir()
    return sorted(each.name.removesuffix(".yaml") for each in files if each.name.endswith(".yaml"))


def about_example(name: str) -> str:
    """Return the first line of a bundled run."""
    return find_run_file(name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").rpartition(":")[0]


def find_run_file(name: str) -> Path:
    """Return the file of a path or of the name of a bundled run, or raise FileNotFoundError."""
    path = Path(name)
    if path.is_file():
        return path
    if path.stem in example_names():
        return Path(str(resources.files("golden.torch.examples") / f"{path.stem}.yaml"))
    known = example_names()
    meant = did_you_mean(path.stem, known)
    raise FileNotFoundError(f"run: got {name!r}, must be a YAML file or one of {', '.join(known)}{meant}")
