"""A step of an LSTM as one node of the graph: the product, the gates and the rounding of the hidden state.

It makes the operations of PyTorch that the single nodes would make, forward and backward, on the same arrays; so the
bits are theirs. Of a small layer, most of the time went into the nodes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from golden.torch.functions.gradients import exact_product, plan_of_gradients, round_to_half
from golden.torch.functions.stepwise import gates_of, gradients_of_step
from golden.torch.operators.registered import unwatched

__all__ = ["lstm_gates", "lstm_step"]


def lstm_gates(x: Tensor, h: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return hidden state and cell state from the gates of the inputs and of the hidden state, all in fp32."""
    i, f, g, o = (x + h).chunk(4, -1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


class _LstmStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        operand: Tensor,
        cell: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        place: Tensor,
        plan: tuple[Any, ...],
    ) -> tuple[Tensor, Tensor]:
        i, f, g, o = (x + gates_of(operand, weight, bias, plan)).chunk(4, -1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        new = f * cell + i * g
        reached = new.tanh()
        half = plan[0]
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, operand, cell, weight, bias, i, f, g, o, reached)
        return round_to_half(o * reached, half, half.dtype), new

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, operand, cell, weight, bias, i, f, g, o, reached = ctx.saved_tensors
        if torch.is_grad_enabled() or gradients[0] is None:
            return _differentiable((x, operand, cell, weight, bias), ctx, gradients)
        backward = torch.ops.aten
        with unwatched(weight, *gradients):
            hidden = round_to_half(gradients[0], ctx.plan[0].of_gradients, torch.float32)
            new = backward.tanh_backward(hidden * o, reached)
            if gradients[1] is not None:
                new = gradients[1] + new
            parts = (
                backward.sigmoid_backward(new * g, i),
                backward.sigmoid_backward(new * cell, f),
                backward.tanh_backward(new * i, g),
                backward.sigmoid_backward(hidden * reached, o),
            )
            gates = torch.cat(parts, -1)
            plan, for_rows = plan_of_gradients(ctx.plan), ctx.needs_input_grad[1]
            for_operand, for_place = gradients_of_step(gates, operand, weight, plan, for_rows)
            for_cell = new * f if ctx.needs_input_grad[2] else None
        return gates, for_operand, for_cell, None, None, for_place, None


def _differentiable(inputs: tuple[Tensor, ...], ctx: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the gradients so that they can be differentiated again; the place is none that this would use again."""
    x, operand, cell, weight, bias = inputs
    half = ctx.plan[0]
    with torch.enable_grad():
        cell = cell.view_as(cell)
        h = exact_product(operand, weight.mT, bias, ctx.plan, half.dtype).float()
        hidden, new = lstm_gates(x, h, (operand, cell))
        results = round_to_half(hidden, half, half.dtype), new
        given = [pair for pair in zip(results, gradients, strict=True) if pair[1] is not None]
        roots, seeds = zip(*given, strict=True)
        wanted = [h, cell] if ctx.needs_input_grad[2] else [h]
        gates, *for_cell = torch.autograd.grad(roots, wanted, seeds, create_graph=True)
    rows, place = gradients_of_step(gates, operand, weight, plan_of_gradients(ctx.plan), ctx.needs_input_grad[1])
    return gates, rows, for_cell[0] if for_cell else None, None, None, place, None


# Without the search for wrappers that an ended transformation left behind.
lstm_step = super(torch.autograd.Function, _LstmStep).apply
