"""Weights in 16 bits: an optimizer's steps, rounded stochastically, so that small updates are not lost.

Rounded to nearest, a weight does not move as long as an update is below half an ulp of it: the update is swamped.
Rounded stochastically, it moves by a whole ulp now and then, and by the update on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

import golden
from golden.arrays.randomness import random_words
from golden.formats import FloatFormat, as_format
from golden.reduction import Reduction
from golden.rounding import Randomness, Rounding, as_rounding
from golden.torch.amp.iteration import as_optimizer
from golden.torch.common.arguments import check_count

__all__ = ["STEPS", "keep_weights"]

#: Where a group of an optimizer counts its steps, which its state dictionary keeps.
STEPS = "steps_with_rounded_weights"

_MOST_STEPS = 2**32
_MOST_INDICES = 2**32  # that the kernels of cards distinguish
#: The upper half of the generator's key, which no product of `golden.torch.precision` has before its 2**32-th.
_KEY = (2**32 - 1) * 2**32


def keep_weights(
    optimizer: Optimizer,
    fmt: FloatFormat | str = "cbfloat16",
    *,
    rounding: Rounding | str = Rounding.STOCHASTIC,
    seed: int = 0,
) -> RemovableHandle:
    """Keep the parameters of an optimizer in a 16-bit format, in float32 tensors that hold values of it.

    They are rounded to nearest even now, and in mode `rounding` after every step from now on. A step itself computes in
    float32; the state of the optimizer stays as it is. A step that a `GradScaler` skips rounds nothing.

    The place of a rounding gives its random bits (NUMERICS section 10). `output index` counts the elements of a
    parameter in row-major order, `step` the steps of its group, `call` the parameters in the order of the groups.
    The steps are counted in the groups, hence in the optimizer's state dictionary: a run that goes on from a checkpoint
    has the bits of one that never stopped.

    Parameters
    ----------
    optimizer : Optimizer
        Of PyTorch or of `golden.torch.optim`, its parameters of float32.
    fmt : FloatFormat or str
        A format of 16 bits with infinities, cbfloat16 unless given.
    rounding : Rounding or str
        Stochastic unless given.
    seed : int
        Of the random bits, 0 to 2**32 - 1.

    Returns
    -------
    RemovableHandle
        Its ``remove()`` ends it.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or a parameter is not float32.
    ValueError
        If an argument is out of range or names nothing, or the optimizer keeps its weights in 16 bits already.
    """
    as_optimizer(optimizer)
    format_of_weights = as_format(fmt, "fmt")
    if format_of_weights.width != 16 or not format_of_weights.is_ieee:
        raise ValueError(
            f"fmt: got {format_of_weights}, must be a format of 16 bits with infinities, such as cbfloat16"
        )
    mode = as_rounding(rounding, "rounding")
    check_count(seed, "seed", 0, 2**32 - 1)
    for each in _parameters(optimizer):
        if each.dtype != torch.float32 or each.device.type not in ("cpu", "cuda"):
            raise TypeError(
                f"optimizer: got a parameter of {each.dtype} on {each.device}, must be torch.float32 on the CPU or a "
                "CUDA device, which carries 16-bit values"
            )
    if any(STEPS in group for group in optimizer.param_groups):
        raise ValueError("optimizer: got one that keeps its weights in 16 bits already; call keep_weights once only")
    for group in optimizer.param_groups:
        group[STEPS] = 0
    for each in _parameters(optimizer):
        _round(each, Reduction(out=format_of_weights))

    def after_step(stepped: Optimizer, *_: Any) -> None:
        number = 0
        for group in stepped.param_groups:
            step = group[STEPS] = group.get(STEPS, 0) + 1
            for each in group["params"]:
                if each.grad is not None:  # without one, it did not change
                    random = Randomness(seed=_KEY + seed, call=number)
                    conversion = Reduction(out=format_of_weights, out_rounding=mode, random=random)
                    _round(each, conversion, (step - 1) % _MOST_STEPS)
                number += 1

    return optimizer.register_step_post_hook(after_step)


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [each for group in optimizer.param_groups for each in group["params"]]


@torch.no_grad()
def _round(tensor: Tensor, conversion: Reduction, step: int = 0) -> None:
    """Round as the last conversion of a reduction does, by the random bits of a step."""
    if tensor.is_cuda and tensor.numel() <= _MOST_INDICES:
        from golden.torch.products import gpu  # not before there is a card to use it

        tensor.copy_(gpu.rounded(tensor.detach(), conversion, torch.float32, step))
        return
    values = tensor.detach().numpy(force=True)
    random = None if conversion.random is None else random_words(values.shape, conversion.random)(step)
    rounded = golden.quantize(values, conversion.result, rounding=conversion.out_rounding, random=random)
    tensor.copy_(torch.from_numpy(np.asarray(rounded)))
