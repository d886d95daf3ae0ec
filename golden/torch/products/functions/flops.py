"""Counts for `torch.utils.flop_counter.FlopCounterMode`: two operations for each product of an exact operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula

from golden.torch.products.functions import grouped  # noqa: F401 - it registers its operator
from golden.torch.products.operators import registered  # noqa: F401 - likewise

__all__: list[str] = []

_Shape = Sequence[int]


@register_flop_formula(torch.ops.cbfloat.matrix_product)
def _(a: _Shape, b: _Shape, *given: Any, out_shape: _Shape, **kwargs: Any) -> int:
    return 2 * math.prod(out_shape) * a[-1]


@register_flop_formula(torch.ops.cbfloat.convolution)
def _(x: _Shape, weight: _Shape, *given: Any, out_shape: _Shape, **kwargs: Any) -> int:
    return 2 * math.prod(out_shape) * math.prod(weight[1:])


@register_flop_formula(torch.ops.cbfloat.convolution_transposed)
def _(x: _Shape, weight: _Shape, *given: Any, **kwargs: Any) -> int:
    return 2 * math.prod(x) * math.prod(weight[1:])


@register_flop_formula(torch.ops.cbfloat.convolution_of_kernels)
def _(gradient: _Shape, x: _Shape, *given: Any, out_shape: _Shape, **kwargs: Any) -> int:
    return 2 * math.prod(gradient) * math.prod(out_shape[1:])


@register_flop_formula(torch.ops.cbfloat.grouped_product)
def _(a: _Shape, b: _Shape, *given: Any, **kwargs: Any) -> int:
    return 2 * math.prod(a) * b[-1] if len(a) <= len(b) else 2 * math.prod(b) * a[-2]
