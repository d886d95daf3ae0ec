"""What `torch.utils.flop_counter.FlopCounterMode` counts of the exact operators: two operations for each product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch.utils.flop_counter import register_flop_formula

from golden.torch.functions.grouped import grouped
from golden.torch.operators import registered

__all__: list[str] = []

_Shape = Sequence[int]


@register_flop_formula(registered.matrix_product.overloadpacket)
def _(a: _Shape, b: _Shape, *given: Any, out_shape: _Shape, **kwargs: Any) -> int:
    return 2 * math.prod(out_shape) * a[-1]


@register_flop_formula(registered.convolution.overloadpacket)
def _(x: _Shape, weight: _Shape, *given: Any, out_shape: _Shape, **kwargs: Any) -> int:
    return 2 * math.prod(out_shape) * math.prod(weight[1:])


@register_flop_formula(registered.convolution_transposed.overloadpacket)
def _(x: _Shape, weight: _Shape, *given: Any, **kwargs: Any) -> int:
    return 2 * math.prod(x) * math.prod(weight[1:])


@register_flop_formula(registered.convolution_of_kernels.overloadpacket)
def _(gradient: _Shape, x: _Shape, *given: Any, out_shape: _Shape, **kwargs: Any) -> int:
    return 2 * math.prod(gradient) * math.prod(out_shape[1:])


@register_flop_formula(grouped.overloadpacket)
def _(a: _Shape, b: _Shape, *given: Any, **kwargs: Any) -> int:
    return 2 * math.prod(a) * b[-1] if len(a) <= len(b) else 2 * math.prod(b) * a[-2]
