"""Microscaled operands of exact products: values are rounded to blocks with scales before a product meets them.

Defined here: which random bits a stochastic rounding has. One number gives those of a tensor, or of a layer with its
gradient; its branches 1, 2 and 3 are those of the tensor, of the weight, and of the gradient (NUMERICS section 13).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad

from golden.formats import FloatFormat
from golden.lines import format_text
from golden.mx import BlockFormat
from golden.rounding import Randomness, Rounding, as_rounding
from golden.torch.common.arguments import check_count
from golden.torch.common.pytorch import constant
from golden.torch.products.functions.gradients import without_tangents
from golden.torch.products.functions.products import check_tensors, refuse_in_compiled_code
from golden.torch.products.functions.products import linear as exact_linear
from golden.torch.products.operators.registered import rounded_to_blocks
from golden.torch.settings.blocks import Blocks
from golden.torch.settings.draws import branched
from golden.torch.settings.reductions import is_stochastic
from golden.torch.settings.scopes import scopes

__all__ = [
    "Roundings",
    "check_operands",
    "fake_quantize",
    "linear",
    "linear_of_blocks",
    "roundings",
]

_NEAREST_EVEN = "nearest_even"
# Branches of the random bits of a call.
_TENSOR, _WEIGHT, _GRADIENT = 1, 2, 3


class Roundings(NamedTuple):
    """The blocks of operands, and those of gradients, as lines; None: they are not rounded."""

    operands: str | None
    gradients: str | None

    @property
    def are_stochastic(self) -> bool:
        """Whether one of them takes random bits."""
        return any(line is not None and is_stochastic(line) for line in self)


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, blocks: str | None, of_gradient: str | None, axis: int) -> torch.Tensor:
        ctx.gradient = of_gradient, axis
        return x.view_as(x) if blocks is None else rounded_to_blocks(x, blocks, axis)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (blocks, axis), (gradient,) = ctx.gradient, gradients
        return gradient if blocks is None else rounded_to_blocks(gradient, blocks, axis), None, None, None


class _FakeQuantizeWithoutTangents(_FakeQuantize):
    jvp = staticmethod(without_tangents)


def _rounded(x: torch.Tensor, blocks: str | None, of_gradient: str | None, axis: int = -1) -> torch.Tensor:
    function = _FakeQuantizeWithoutTangents if forward_ad._current_level >= 0 else _FakeQuantize
    result: torch.Tensor = function.apply(x, blocks, of_gradient, axis)
    return result


def roundings(
    element: FloatFormat | BlockFormat | str | None,
    gradient_element: FloatFormat | BlockFormat | str | None,
    block: int | None,
    scale: str | None,
    rounding: Rounding | str,
    gradient_scale: str | None,
    gradient_rounding: Rounding | str,
) -> Roundings:
    """Return the blocks that the keywords of a public function stand for; an error names the keyword."""
    given = element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding
    if torch.compiler.is_compiling():  # the compiler knows text and numbers
        return _roundings_of_words(*map(_word, given))
    try:
        return _roundings_once(*given)
    except TypeError:  # an argument without a hash raises it, too
        return _roundings(*given)


def _word(given: Any) -> Any:
    if isinstance(given, FloatFormat):
        return format_text(given)
    if isinstance(given, BlockFormat):
        return given.name
    return str(given) if isinstance(given, Rounding) else given


@constant
def _roundings_of_words(*given: Any) -> Roundings:
    return _roundings(*given)


def _roundings(element: Any, gradient_element: Any, block: Any, *how: Any) -> Roundings:
    return Roundings(_line("", element, block, *how[:2]), _line("gradient_", gradient_element, block, *how[2:]))


# By type as well: a bool equals a number that is allowed.
_roundings_once = lru_cache(maxsize=256, typed=True)(_roundings)


def _line(of: str, element: Any, block: Any, scale: Any, rounding: Any) -> str | None:
    """Return the line of the blocks of operands, or of gradients: `of` is how their keywords begin."""
    try:
        if element is not None:
            return str(Blocks(element, block, scale, rounding))
        if block is not None:
            check_count(block, "block")
    except (TypeError, ValueError) as error:
        if of and str(error).startswith(("element:", "scale:", "rounding:")):
            raise type(error)(f"{of}{error}") from None
        raise
    for argument, value, is_given in (
        ("scale", scale, scale is not None),
        ("rounding", rounding, as_rounding(rounding, f"{of}rounding") is not Rounding.NEAREST_EVEN),
    ):
        if is_given:
            raise ValueError(
                f"{of}{argument}: got {value!r} without {of}element, must be left out: nothing is rounded in this way"
            )
    return None


def _random_of(given: Roundings, random: Randomness | None) -> Randomness | None:
    """Return the random bits of a call: those that are given, or of the next number of the precision in force."""
    if not isinstance(random, Randomness | None):
        raise TypeError(f"random: got {random!r}, must be a golden.Randomness or None")
    if not given.are_stochastic:
        if random is not None:
            raise ValueError(f"random: got {random}, must be None: only a rounding 'stochastic' takes random bits")
        return None
    refuse_in_compiled_code()
    if random is not None:
        return random
    draws = scopes.precisions[-1].draws if scopes.precisions else None
    if draws is None:
        raise ValueError(
            "random: got None for a rounding 'stochastic', must be a golden.Randomness, another one in every call; in "
            "a precision that rounds products stochastically it may be left out, and mx.Linear counts by itself"
        )
    return draws.next()


def _with_bits(line: str | None, random: Randomness | None, branch: int) -> str | None:
    if line is None or random is None or not is_stochastic(line):
        return line
    return str(Blocks.parse(line).with_random(branched(random, branch)))


def fake_quantize(
    x: torch.Tensor,
    element: FloatFormat | BlockFormat | str | None,
    *,
    gradient_element: FloatFormat | BlockFormat | str | None = None,
    axis: int = -1,
    block: int | None = None,
    scale: str | None = None,
    rounding: Rounding | str = _NEAREST_EVEN,
    gradient_scale: str | None = None,
    gradient_rounding: Rounding | str = _NEAREST_EVEN,
    random: Randomness | None = None,
) -> torch.Tensor:
    """Round a tensor to blocks of narrow numbers with a scale each, and back.

    Parameters
    ----------
    x : float32, float16 or bfloat16 tensor
    element : FloatFormat, BlockFormat, str or None
        Format of the elements, or ``golden.mx.NVFP4`` or its name, as of `golden.mx.quantize`; None leaves the values
        as they are. The scale of the tensor that NVFP4 has is that of the whole tensor `x`.
    gradient_element : FloatFormat, BlockFormat, str or None
        Rounds the gradient likewise, along the same axis; it passes unchanged unless given.
    axis : int
        The axis that blocks lie along: the one that a product sums over. Zeros fill up the last block.
    block : int, optional
        Values that share a scale, 32 unless given; NVFP4 has 16.
    scale : str, optional
        The recipe of the scales, one of `golden.mx.RECIPES`: ``"ocp_floor"`` unless given, for NVFP4
        ``"nvidia_nvfp4"``.
    rounding : Rounding or str
        Of the elements, to nearest even unless given.
    gradient_scale, gradient_rounding
        The same for the gradient.
    random : golden.Randomness, optional
        The random bits of stochastic roundings: another one for each call. Unless given, they are those of the next
        number of the precision in force, if this rounds products stochastically.

    Returns
    -------
    tensor of the shape and dtype of `x`
        The values of ``golden.mx.dequantize(*golden.mx.quantize(x))``; NaN in a block with a NaN or an infinity.

    Raises
    ------
    TypeError
        If `x` is no dense tensor of such a dtype, or another argument is of another type.
    ValueError
        If there is no such format, recipe, mode or axis, `block` is no length of such blocks, or random bits are
        missing or without use.
    NotImplementedError
        If a rounding is stochastic in code that torch.compile makes.
    """
    check_operands(x=x)
    given = roundings(element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding)
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"axis: got {axis!r}, must be an int")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis: got {axis}, must be {-x.ndim} to {x.ndim - 1} for a tensor of shape {tuple(x.shape)}")
    bits = _random_of(given, random)
    return _rounded(x, _with_bits(given.operands, bits, _TENSOR), _with_bits(given.gradients, bits, _GRADIENT), axis)


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    element: FloatFormat | BlockFormat | str = "float8_e4m3fn",
    gradient_element: FloatFormat | BlockFormat | str | None = None,
    block: int | None = None,
    scale: str | None = None,
    rounding: Rounding | str = _NEAREST_EVEN,
    gradient_scale: str | None = None,
    gradient_rounding: Rounding | str = _NEAREST_EVEN,
    random: Randomness | None = None,
) -> torch.Tensor:
    """Exact linear layer of microscaled operands, ``x @ weight.T + bias``.

    The blocks of `x` and `weight` lie along their last axes. The backward pass multiplies by the same rounded operands.

    Parameters
    ----------
    x : tensor of shape (..., K)
    weight : tensor of shape (N, K)
    bias : tensor of shape (N,), optional
        It is not rounded to blocks.
    element : FloatFormat, BlockFormat or str
        Format of the elements of both operands, or ``golden.mx.NVFP4`` or its name.
    gradient_element : FloatFormat, BlockFormat or str, optional
        Rounds the gradient of the result to blocks along its last axis before the two products of the backward pass.
    block, scale, rounding, gradient_scale, gradient_rounding, random
        As of `fake_quantize`. Both operands and the gradient have random bits of their own.

    Returns
    -------
    tensor of shape (..., N) of the half dtype

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        As `fake_quantize` and `golden.torch.linear`.
    """
    check_operands(x=x, weight=weight, bias=bias)
    if element is None:
        raise TypeError("element: got None, must be a FloatFormat or the name of one, or 'nvfp4'")
    given = roundings(element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding)
    return linear_of_blocks(x, weight, bias, given, _random_of(given, random))


def check_operands(**tensors: torch.Tensor | None) -> None:
    """Raise, naming the argument, unless all are tensors that products take, with an axis that blocks lie along."""
    check_tensors(**tensors)
    for argument, tensor in tensors.items():
        if argument != "bias" and tensor is not None and not tensor.ndim:
            raise ValueError(f"{argument}: got a tensor of shape (), must have an axis for the blocks to lie along")


def linear_of_blocks(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    given: Roundings,
    random: Randomness | None,
) -> torch.Tensor:
    """`linear` of operands that are checked, by these blocks, with random bits where they are stochastic."""
    rows = _rounded(x, _with_bits(given.operands, random, _TENSOR), None)
    columns = _rounded(weight, _with_bits(given.operands, random, _WEIGHT), None)
    result = exact_linear(rows, columns, bias)
    return _rounded(result, None, _with_bits(given.gradients, random, _GRADIENT))
