"""Every function and module of PyTorch that has exact products, called once in small, and the refused ones.

The tests of the CPU and of a card run the same calls. A test fails if a function that is exact is in none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import golden.torch as cstorch

__all__ = ["LAYERS", "SPECIALS", "Layer", "drawn", "results"]

#: Values that a format rounds, flushes, overflows or keeps as they are.
SPECIALS = (0.0, -0.0, 1e-45, -1e-40, 3e-39, 1e-20, -1e20, 3.3e38, float("inf"), float("-inf"), float("nan"), 65504.0)
_SPECIAL = 0.02  # of the operands

Shape = tuple[int, ...]


class Layer(NamedTuple):
    """A call: a function of float32 tensors of these shapes; or a module of them, whose parameters are drawn, too."""

    run: Callable[..., Any]
    shapes: Sequence[Shape]
    module: Callable[[], nn.Module] | None = None


def drawn(shape: Shape, seed: int, specials: bool) -> Tensor:
    """Draw values near 1; if asked for, some of them are special, one at least."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator) * torch.exp2(torch.randint(-3, 4, shape, generator=generator))
    if specials and x.numel():
        places = torch.rand(shape, generator=generator) < _SPECIAL
        places.view(-1)[torch.randint(x.numel(), (1,), generator=generator)] = True
        x = torch.where(places, torch.tensor(SPECIALS)[torch.randint(len(SPECIALS), shape, generator=generator)], x)
    return x


def results(layer: Layer, device: str, *, specials: bool = False) -> list[Tensor]:
    """Run a layer on a device, forward and backward: its results, then the gradients of operands and parameters."""
    given = [drawn(shape, seed, specials).to(device).requires_grad_() for seed, shape in enumerate(layer.shapes)]
    run, leaves = layer.run, list(given)
    if layer.module is not None:
        model = layer.module().to(device)
        run = partial(layer.run, model)
        leaves += model.parameters()
        for number, parameter in enumerate(model.parameters(), len(given)):
            parameter.data.copy_(drawn(tuple(parameter.shape), number, specials))
    found = [each for each in tree_leaves(run(*given)) if isinstance(each, Tensor) and each.requires_grad]
    upstream = [drawn(tuple(each.shape), 100 + number, False) for number, each in enumerate(found)]
    torch.autograd.backward(found, [g.to(device, each.dtype) for g, each in zip(upstream, found, strict=True)])
    return [*(each.detach() for each in found), *(each.grad for each in leaves if each.grad is not None)]


def _of(function: Callable[..., Any], *shapes: Shape, **named: Any) -> Layer:
    return Layer(partial(function, **named), shapes)


def _module(make: Callable[[], nn.Module], *shapes: Shape, **named: Any) -> Layer:
    return Layer(lambda model, *given: model(*given, **named), shapes, make)


def _grouped(function: Callable[..., Any], a: Tensor, b: Tensor) -> Any:
    return function(a, b, offs=torch.tensor([2, 2, 7], dtype=torch.int32, device=a.device))


def _in_place(name: str) -> Callable[..., Tensor]:
    return lambda start, *given: getattr(start.clone(), name)(*given)


def _masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril(1)
    return F.scaled_dot_product_attention(q, k, v, mask.index_fill(0, torch.tensor(2, device=q.device), False))


def _packed(model: nn.Module, x: Tensor) -> Any:
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2, 1]), batch_first=True)
    output, state = model(packed)
    return output.data, state


def _of_bags(model: nn.Module, *given: Tensor) -> Tensor:
    bags = torch.tensor([[0, 3, 1], [2, 2, 4]], device=next(model.parameters()).device)
    return model(bags)


_MATRICES, _BATCHES = ((6, 20), (20, 5)), ((3, 6, 20), (3, 20, 5))
_HEADS = ((2, 2, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8))
_CELL = ((3, 4), (3, 5))

_PRODUCTS = {
    "matmul": _of(torch.matmul, *_MATRICES),
    "matmul of vectors": _of(torch.matmul, (20,), (20,)),
    "matmul of batches": _of(torch.matmul, (2, 1, 6, 20), (3, 20, 5)),
    "@": _of(lambda a, b: a @ b, *_MATRICES),
    "__rmatmul__": _of(lambda a, b: b.__rmatmul__(a), *_MATRICES),
    "mm": _of(torch.mm, *_MATRICES),
    "bmm": _of(torch.bmm, *_BATCHES),
    "mv": _of(torch.mv, (6, 20), (20,)),
    "dot": _of(torch.dot, (70,), (70,)),
    "vdot": _of(torch.vdot, (70,), (70,)),
    "inner": _of(torch.inner, (3, 6, 20), (5, 20)),
    "tensordot": _of(torch.tensordot, (3, 6, 20), (20, 6, 4), dims=([2, 1], [0, 1])),
    "einsum": _of(partial(torch.einsum, "bhqd,bhkd->bhqk"), (2, 2, 3, 9), (2, 2, 4, 9)),
    "einsum of three": _of(partial(torch.einsum, "ij,jk,kl->il"), (3, 9), (9, 4), (4, 5)),
    "linear": _of(F.linear, (4, 3, 40), (7, 40), (7,)),
    "linear without bias": _of(F.linear, (5, 40), (7, 40)),
    "bilinear": _of(F.bilinear, (4, 6), (4, 5), (3, 6, 5), (3,)),
    "addmm": _of(torch.addmm, (6, 5), *_MATRICES),
    "addmm with factors": _of(torch.addmm, (6, 5), *_MATRICES, beta=0.5, alpha=2),
    "addmv": _of(torch.addmv, (6,), (6, 20), (20,)),
    "addbmm": _of(torch.addbmm, (6, 5), *_BATCHES),
    "baddbmm": _of(torch.baddbmm, (3, 6, 5), *_BATCHES),
    "addmm_": _of(_in_place("addmm_"), (6, 5), *_MATRICES),
    "addmv_": _of(_in_place("addmv_"), (6,), (6, 20), (20,)),
    "addbmm_": _of(_in_place("addbmm_"), (6, 5), *_BATCHES),
    "baddbmm_": _of(_in_place("baddbmm_"), (3, 6, 5), *_BATCHES),
    "multi_dot": _of(lambda *given: torch.linalg.multi_dot(given), (4, 6), (6, 6), (6, 3)),
    "chain_matmul": _of(lambda *given: torch._C._VariableFunctions.chain_matmul(given), (4, 6), (6, 3)),
    "vecdot": _of(torch.linalg.vecdot, (4, 20), (20,)),
    "matrix_power": _of(partial(torch.linalg.matrix_power, n=6), (2, 5, 5)),
    "grouped_mm of rows": _of(partial(_grouped, F.grouped_mm), (8, 16), (3, 16, 8)),
    "grouped_mm of columns": _of(partial(_grouped, F.grouped_mm), (3, 8, 16), (16, 8)),
    "grouped_mm of k": _of(partial(_grouped, F.grouped_mm), (4, 7), (7, 5)),
    "_grouped_mm": _of(partial(_grouped, torch._grouped_mm), (8, 16), (3, 16, 8)),
    "products of blocks": _of(cstorch.mx.linear, (5, 40), (6, 40), (6,)),
    "affine_grid": _of(lambda theta: F.affine_grid(theta, [2, 3, 5, 4], align_corners=False), (2, 2, 3)),
}
_CONVOLUTIONS = {
    "conv1d": _of(F.conv1d, (2, 6, 15), (4, 3, 4), (4,), stride=2, padding=3, dilation=2, groups=2),
    "conv2d": _of(F.conv2d, (2, 3, 9, 8), (4, 3, 3, 2), (4,), stride=(2, 1), padding=(1, 2)),
    "conv2d of one channel each": _of(F.conv2d, (2, 4, 7, 7), (4, 1, 3, 3), (4,), groups=4, padding="same"),
    "conv3d": _of(F.conv3d, (1, 2, 4, 5, 4), (3, 2, 2, 2, 2), (3,)),
    "conv_tbc": _of(torch.conv_tbc, (7, 2, 3), (3, 3, 4), (4,), pad=1),
    "conv_transpose1d": _of(F.conv_transpose1d, (2, 4, 6), (4, 2, 3), (4,), groups=2, dilation=2, stride=3),
    "conv_transpose2d": _of(
        F.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 2), (3,), stride=2, padding=1, output_padding=1
    ),
    "conv_transpose3d": _of(F.conv_transpose3d, (1, 2, 3, 2, 3), (2, 2, 2, 2, 2), (2,)),
    "convolution": Layer(
        lambda x, w, b: torch.convolution(x, w, b, [2], [1], [1], False, [0], 1), ((2, 3, 9), (4, 3, 3), (4,))
    ),
    "_convolution": Layer(
        lambda x, w, b: torch._convolution(x, w, b, [2], [1], [1], True, [1], 1, False, False, False, False),
        ((2, 3, 9), (3, 4, 3), (4,)),
    ),
}
_ATTENTION = {
    "attention": _of(F.scaled_dot_product_attention, *_HEADS),
    "causal attention": _of(F.scaled_dot_product_attention, *_HEADS, is_causal=True, scale=0.3),
    "masked attention": Layer(_masked, _HEADS),
    "attention of shared heads": _of(
        F.scaled_dot_product_attention, (1, 4, 5, 8), (1, 2, 6, 8), (1, 2, 6, 8), enable_gqa=True
    ),
}
_MODULES = {
    "Linear": _module(partial(nn.Linear, 12, 7), (3, 5, 12)),
    "Bilinear": _module(partial(nn.Bilinear, 6, 5, 3), (4, 6), (4, 5)),
    "Conv1d": _module(partial(nn.Conv1d, 4, 6, 3, padding=1), (2, 4, 9)),
    "Conv2d": _module(partial(nn.Conv2d, 2, 3, 3, padding=1, padding_mode="reflect"), (1, 2, 5, 5)),
    "Conv3d": _module(partial(nn.Conv3d, 2, 3, 2), (1, 2, 4, 3, 4)),
    "ConvTranspose1d": _module(partial(nn.ConvTranspose1d, 4, 3, 3, stride=2), (2, 4, 5)),
    "ConvTranspose2d": _module(partial(nn.ConvTranspose2d, 4, 4, 3, groups=2), (1, 4, 4, 3)),
    "ConvTranspose3d": _module(partial(nn.ConvTranspose3d, 2, 2, 2), (1, 2, 3, 2, 2)),
    "EmbeddingBag before Linear": Layer(
        _of_bags, (), lambda: nn.Sequential(nn.EmbeddingBag(5, 12, mode="sum"), nn.Linear(12, 3))
    ),
    "MultiheadAttention": _module(
        partial(nn.MultiheadAttention, 8, 2, batch_first=True), *[(2, 5, 8)] * 3, need_weights=False
    ),
    "MultiheadAttention with weights": _module(
        partial(nn.MultiheadAttention, 8, 2, batch_first=True, kdim=6, vdim=4), (2, 5, 8), (2, 3, 6), (2, 3, 4)
    ),
    "TransformerEncoderLayer": _module(
        partial(nn.TransformerEncoderLayer, 8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)
    ),
    "TransformerDecoderLayer": _module(
        partial(nn.TransformerDecoderLayer, 8, 2, 16, dropout=0.0, activation="gelu"), (5, 2, 8), (4, 2, 8)
    ),
    "Transformer": _module(
        partial(nn.Transformer, 8, 2, 1, 1, 16, dropout=0.0, batch_first=True), (2, 4, 8), (2, 3, 8)
    ),
    "LSTM": _module(partial(nn.LSTM, 4, 5, num_layers=2, bidirectional=True), (4, 3, 4)),
    "LSTM with projections": _module(partial(nn.LSTM, 4, 5, proj_size=3, batch_first=True), (3, 4, 4)),
    "GRU": _module(partial(nn.GRU, 4, 5, bidirectional=True), (4, 3, 4)),
    "RNN": _module(partial(nn.RNN, 4, 5), (4, 3, 4)),
    "RNN of relu": _module(partial(nn.RNN, 4, 5, nonlinearity="relu", bias=False), (4, 3, 4)),
    "packed LSTM": Layer(_packed, ((3, 4, 4),), partial(nn.LSTM, 4, 5, batch_first=True)),
    "packed GRU": Layer(_packed, ((3, 4, 4),), partial(nn.GRU, 4, 5, batch_first=True, bidirectional=True)),
    "LSTMCell": Layer(lambda cell, x, h, c: cell(x, (h, c)), (*_CELL, (3, 5)), partial(nn.LSTMCell, 4, 5)),
    "GRUCell": _module(partial(nn.GRUCell, 4, 5), *_CELL),
    "RNNCell": _module(partial(nn.RNNCell, 4, 5), *_CELL),
    "RNNCell of relu": _module(partial(nn.RNNCell, 4, 5, nonlinearity="relu"), *_CELL),
}

#: Every layer by its name.
LAYERS: dict[str, Layer] = {**_PRODUCTS, **_CONVOLUTIONS, **_ATTENTION, **_MODULES}
