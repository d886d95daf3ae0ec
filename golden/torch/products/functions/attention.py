"""Exact attention: both products by the contract, the softmax between them as NUMERICS section 6 has it.

Defined here: the scores leave the first product in the half format; scale and mask are applied in fp32. The softmax
runs in 16 bits at level 2, and at level 1 with cbfloat16, on the scores rounded once more; otherwise in fp32, and its
result is rounded once. Its gradient is computed in fp32 and rounded once. Rows that a mask hides altogether give zeros,
as in PyTorch. ``torch.nn.MultiheadAttention`` with ``need_weights=True`` runs the same softmax; it scales the query
before the first product, and its mask is what that product starts from.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from golden import CBFLOAT16
from golden.torch.products.functions.gradients import round_to_half, softmax_in_half
from golden.torch.products.functions.products import check_tensors, current_plan, matmul

__all__ = ["scaled_dot_product_attention", "weights_of"]


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Exact attention with the parameters of `torch.nn.functional.scaled_dot_product_attention`.

    Parameters
    ----------
    query : tensor of shape (..., heads, L, E)
    key, value : tensors of shape (..., heads, S, E) and (..., heads, S, V)
    attn_mask : tensor, optional
        Broadcasts to (..., heads, L, S): bool, True where attention is allowed, or added to the scores.
    dropout_p : float
        Probability that a weight becomes zero.
    is_causal : bool
        Position i sees positions up to i; not beside a mask.
    scale : float, optional
        Factor of the scores, ``1 / sqrt(E)`` unless given.
    enable_gqa : bool
        Let groups of query heads share the heads of key and value.

    Returns
    -------
    tensor of shape (..., heads, L, V) of the half dtype

    Raises
    ------
    TypeError
        If a tensor has another dtype than float32, float16 or bfloat16.
    ValueError
        If the shapes do not fit, the tensors are not on one device, or `is_causal` comes with a mask.
    """
    check_tensors(query=query, key=key, value=value)
    for name, flag in (("is_causal", is_causal), ("enable_gqa", enable_gqa)):
        if not isinstance(flag, bool | torch.SymBool):
            raise TypeError(f"{name}: got {flag!r}, must be True or False")
    if is_causal and attn_mask is not None:
        raise ValueError("is_causal: got True beside attn_mask, must be False; put both into the mask")
    if attn_mask is not None and not isinstance(attn_mask, torch.Tensor):
        raise TypeError(f"attn_mask: got {type(attn_mask).__name__}, must be a torch.Tensor or None")
    if attn_mask is not None and attn_mask.device != query.device:
        raise ValueError(f"attn_mask: got a tensor on {attn_mask.device}, must be on {query.device} as query is")
    for name, factor in (("dropout_p", dropout_p), ("scale", 0.0 if scale is None else scale)):
        if not isinstance(factor, int | float | torch.SymFloat | torch.SymInt):
            raise TypeError(f"{name}: got {factor!r}, must be a number")
        if isinstance(factor, int) and abs(factor) >= 2**63:
            raise ValueError(f"{name}: got {factor}, must be a number that PyTorch holds")
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"dropout_p: got {dropout_p}, must be from 0 to 1")
    for name, given in (("query", query), ("key", key), ("value", value)):
        if given.ndim < 2:
            raise ValueError(f"{name}: got shape {tuple(given.shape)}, must have two axes at least")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        shapes = ", ".join(str(tuple(given.shape)) for given in (query, key, value))
        raise ValueError(f"query, key, value: got shapes {shapes}, must be (..., L, E), (..., S, E) and (..., S, V)")
    if enable_gqa:
        key, value = (_shared_heads(query, given, name) for given, name in ((key, "key"), (value, "value")))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _scores(query, key) * factor
    if attn_mask is not None:
        _check_mask(attn_mask, scores)
    if is_causal:
        seen = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(seen.logical_not(), -math.inf)
    hidden = None
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
        else:
            scores = scores + attn_mask
        # Softmax of a hidden row would be NaN, and so would be its gradients.
        hidden = (scores == -math.inf).all(-1, keepdim=True)
        scores = scores.masked_fill(hidden, 0.0)
    weights = weights_of(scores)
    if hidden is not None:
        weights = weights.masked_fill(hidden, 0.0)
    return _mixed(F.dropout(weights, dropout_p) if dropout_p else weights, value)


# Two functions, so that `golden.torch.observe` sees two products with different names.
def _scores(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    return matmul(query, key.mT).float()


def _mixed(weights: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return matmul(weights, value)


def weights_of(scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis as attention runs it at the level in force, in the half dtype (NUMERICS section 6)."""
    plan = current_plan()
    half, level = plan.half, plan.level
    if level == 2 or (level == 1 and half.format == CBFLOAT16):
        return softmax_in_half(scores, half)
    return round_to_half(torch.softmax(scores.float(), -1), half, half.dtype)


def _shared_heads(query: torch.Tensor, given: torch.Tensor, argument: str) -> torch.Tensor:
    if min(query.ndim, given.ndim) < 3:
        shapes = f"{tuple(query.shape)} and {tuple(given.shape)}"
        raise ValueError(f"enable_gqa: got True for shapes {shapes}, must be (..., heads, length, width)")
    heads, shared = query.shape[-3], given.shape[-3]
    if shared == 0 or heads % shared:
        raise ValueError(f"{argument}: got {shared} heads, must divide the {heads} heads of query")
    return given.repeat_interleave(heads // shared, dim=-3)


def _check_mask(mask: torch.Tensor, scores: torch.Tensor) -> None:
    sizes = zip(reversed(mask.shape), reversed(scores.shape), strict=False)
    if mask.layout != torch.strided or mask.is_complex():
        raise TypeError(f"attn_mask: got a tensor of {mask.dtype} and {mask.layout}, must be dense and real")
    if any(1 != own != size != 1 for own, size in sizes):
        raise ValueError(f"attn_mask: got shape {tuple(mask.shape)}, must fit the scores of {tuple(scores.shape)}")
