"""The precision of a training run in one object, under the keys of the documents (``trainer.init.precision``)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn
from torch.optim import Optimizer

from golden.formats import CBFLOAT16, FP16, NARROW_FORMATS
from golden.loss_scaling import DynamicLossScale, as_loss_scale
from golden.reduction import DEFAULT_CHUNK
from golden.rounding import as_rounding
from golden.torch.amp.grad_scaler import GradScaler
from golden.torch.amp.optimizer_step import check_clipping
from golden.torch.amp.precision import precision
from golden.torch.amp.weights import keep_weights
from golden.torch.common.arguments import check_flags, checked_level
from golden.torch.settings.half_type import HalfType, half_named
from golden.torch.settings.level_map import LevelMap

__all__ = ["FORMAT_NAMES", "MixedPrecision"]

_SIXTEEN_BITS = ("float16", "bfloat16", "cbfloat16", "cb16")
#: The formats that a run may name.
FORMAT_NAMES = (*_SIXTEEN_BITS, *(fmt.name for fmt in NARROW_FORMATS))


@dataclass(frozen=True)
class MixedPrecision:
    """Format, precision level, loss scaling and gradient clipping of a training run.

    Parameters
    ----------
    enabled : bool
        False: PyTorch's own fp32 products and no loss scaling; the clipping stays.
    fp16_type : str
        The 16-bit format of the matrix products: ``"float16"``, ``"bfloat16"``, ``"cbfloat16"`` or ``"cb16"``. An
        addition: a narrow format such as ``"float8_e4m3fn"`` for their factors alone.
    precision_opt_level : int, optional
        0, 1 or 2 (NUMERICS section 5), which a `golden.torch.pol` in the model overrides; None for the model-wide level
        in force.
    loss_scaling_factor : None, float or "dynamic"
        None or 1.0: no scaling. Another number: that scale, always. ``"dynamic"``: see
        `golden.loss_scaling.DynamicLossScale`, which the next four configure.
    initial_loss_scale, min_loss_scale, max_loss_scale : float, optional
        First value and limits of the dynamic scale; None for the defaults of the format.
    steps_per_increase : int
        The dynamic scale doubles when more steps than this have passed without an overflow.
    max_gradient_norm, max_gradient_value : float, optional
        Clip the unscaled gradients by their common L2 norm, or each to this absolute value; not both.
    log_loss_scale : bool
        Write the loss scale into the log of the run.
    chunk : int or None
        Products in a chunk of the reductions at level 1, 32 unless given; None is one chunk of any length.
    inner : str, optional
        With a narrow `fp16_type`: the 16-bit format of sums and results, cbfloat16 unless given. This and what follows
        are additions, which the original has not.
    rounding, out_rounding : str
        Modes of the steps of a product and of its last rounding, as of `golden.torch.precision`.
    subnormals : "keep" or "flush"
        What becomes of subnormal operands and results of a product, as of `golden.torch.precision` (NUMERICS section
        12).
    seed : int
        Of stochastic roundings, 0 to 2**32 - 1. In a `Trainer`, random bits go on from step to step, and from a
        checkpoint.
    reduction : str, optional
        What all products compute, in place of a level: the name of one of `golden.accumulators`, such as
        ``"nvidia_hopper"``, or the line of a `golden.Reduction`, such as
        ``"operand=cbfloat16 inner=cbfloat16 chunk=16 outer=float32"``, as of `golden.torch.precision`. Its half format
        is `fp16_type`; `precision_opt_level` and `chunk` keep their defaults.
    weight_type : "float16", "bfloat16", "cbfloat16" or "cb16", optional
        The `Trainer` keeps the weights in this format (see `golden.torch.optim.keep_weights`), in float32 unless given.
    weight_rounding : str
        Mode in which steps of the optimizer round such weights.
    levels : mapping, optional
        A level map, as of `golden.torch.precision`: levels of modules by patterns of their paths in the model.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong, or if cbfloat16 is to train without loss scaling: its gradients would underflow.

    Warns
    -----
    UserWarning
        If float16 is to train without loss scaling, or cbfloat16 with a static scale, which the Model Zoo refuses.

    Examples
    --------
    >>> MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic").grad_scaler().get_scale() == 2.0**31
    True
    """

    enabled: bool = True
    fp16_type: str = "float16"
    precision_opt_level: int | None = 1
    loss_scaling_factor: float | Literal["dynamic"] | None = None
    initial_loss_scale: float | None = None
    steps_per_increase: int = 2000
    min_loss_scale: float | None = None
    max_loss_scale: float | None = None
    max_gradient_norm: float | None = None
    max_gradient_value: float | None = None
    log_loss_scale: bool = False
    chunk: int | None = DEFAULT_CHUNK
    inner: str | None = None
    rounding: str = "nearest_even"
    out_rounding: str = "nearest_even"
    subnormals: str = "keep"
    seed: int = 0
    reduction: str | None = None
    weight_type: str | None = None
    weight_rounding: str = "stochastic"
    levels: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        check_flags(enabled=self.enabled, log_loss_scale=self.log_loss_scale)
        if not isinstance(self.fp16_type, str) or self.fp16_type not in FORMAT_NAMES:
            raise ValueError(f"fp16_type: got {self.fp16_type!r}, must be one of {', '.join(FORMAT_NAMES)}")
        if self.precision_opt_level is not None:
            checked_level(self.precision_opt_level, "precision_opt_level")
        for name in ("inner", "weight_type"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, str) or given not in _SIXTEEN_BITS):
                raise ValueError(f"{name}: got {given!r}, must be None or one of {', '.join(_SIXTEEN_BITS)}")
        for name in ("rounding", "out_rounding", "weight_rounding"):
            if not isinstance(getattr(self, name), str):  # a Rounding is none: the settings go into files
                raise TypeError(f"{name}: got {getattr(self, name)!r}, must be the name of a Rounding")
            as_rounding(getattr(self, name), name)
        if self.reduction is not None:
            if not isinstance(self.reduction, str):  # the settings go into files
                raise TypeError(f"reduction: got {self.reduction!r}, must be a name or a line of text")
            if self.precision_opt_level not in (None, 1):
                raise ValueError(
                    f"precision_opt_level: got {self.precision_opt_level} with reduction {self.reduction!r}, must be "
                    "left out: a reduction has its own level, and another machine none"
                )
        if self.levels is not None:
            object.__setattr__(self, "levels", LevelMap.of(self.levels).document)
        self.autocast()  # checks the chunk, reduction, subnormals and seed
        factor = self.loss_scaling_factor
        if isinstance(factor, str):
            if factor != "dynamic":
                raise ValueError(f"loss_scaling_factor: got {factor!r}, must be None, a positive number or 'dynamic'")
        elif factor is not None:
            as_loss_scale(factor, "loss_scaling_factor")
        if self.initial_loss_scale is not None:
            as_loss_scale(self.initial_loss_scale, "initial_loss_scale")
        DynamicLossScale.for_format(
            self._half.format,
            steps_per_increase=self.steps_per_increase,
            min_loss_scale=self.min_loss_scale,
            max_loss_scale=self.max_loss_scale,
        )
        check_clipping(self.max_gradient_norm, self.max_gradient_value)
        if self.enabled:
            self._check_scaling()

    def _check_scaling(self) -> None:
        given = f"loss_scaling_factor: got {self.loss_scaling_factor!r} with fp16_type {self.fp16_type}"
        if self._half.format == CBFLOAT16 and not self.scales_loss:
            raise ValueError(
                f"{given}, must be 'dynamic' or a number other than 1: without loss scaling, gradients underflow in "
                "the middle of the training"
            )
        if self._half.format == CBFLOAT16 and self.loss_scaling_factor != "dynamic":
            warnings.warn(
                f"{given}; a static scale works here, but the public Model Zoo takes 'dynamic' only",
                stacklevel=4,
            )
        if self._half.format == FP16 and not self.scales_loss:
            warnings.warn(
                f"{given}; gradients below 2^-24 become zero, set 'dynamic' to keep them",
                stacklevel=4,
            )

    @property
    def scales_loss(self) -> bool:
        """Whether the loss is scaled at all."""
        return self.enabled and self.loss_scaling_factor not in (None, 1)

    @property
    def _half(self) -> HalfType:
        return half_named(self.fp16_type, inner=self.inner, argument="fp16_type")

    def autocast(self, model: nn.Module | None = None) -> precision:
        """Return a new context of this precision for a forward pass; `model` is the model of the level map."""
        return precision(
            half=self._half,
            level=self.precision_opt_level if self.reduction is None else None,
            chunk=self.chunk,
            enabled=self.enabled,
            rounding=self.rounding,
            out_rounding=self.out_rounding,
            subnormals=self.subnormals,
            reduction=self.reduction,
            seed=self.seed,
            levels=self.levels,
            model=model if self.levels is not None else None,
        )

    def keep_weights(self, optimizer: Optimizer) -> None:
        """Keep the weights of an optimizer in `weight_type` from now on, if there is one."""
        if self.enabled and self.weight_type is not None:
            keep_weights(optimizer, self.weight_type, rounding=self.weight_rounding, seed=self.seed)

    def grad_scaler(self, named_parameters: Iterable[tuple[str, Tensor]] | None = None) -> GradScaler:
        """Return a new gradient scaler, a disabled one if the loss is not scaled."""
        with self.autocast():  # its defaults follow the format
            return GradScaler(
                loss_scale=self.loss_scaling_factor if self.scales_loss else None,
                init_scale=self.initial_loss_scale,
                steps_per_increase=self.steps_per_increase,
                min_loss_scale=self.min_loss_scale,
                max_loss_scale=self.max_loss_scale,
                named_parameters=named_parameters,
            )
