"""All steps of an LSTM as one node of the graph.

It calls the operations of PyTorch that single nodes would call, forward and backward, on the same arrays, so the bits
are the same. In a small layer, single nodes took most of the time. Second derivatives run through single nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from golden.torch.products.functions.gradients import exact_product, round_to_half, summed
from golden.torch.products.functions.stepwise import Stepwise, gates_of, gradient_of_rows
from golden.torch.products.operators.registered import unwatched
from golden.torch.settings.plan import Plan

__all__ = ["Steps", "lstm_gates", "lstm_steps"]


def lstm_gates(x: Tensor, h: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return hidden state and cell state from the gates of the inputs and of the hidden state, all in fp32."""
    i, f, g, o = (x + h).chunk(4, -1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


class Steps(NamedTuple):
    """The steps in their order, and how products are made.

    Parameters
    ----------
    order : list of int
        Numbers of the steps, each of which has as many rows.
    collected : plan
        Of the gradient of the weight.
    plans : list of plans
        Of the products, step after step in this order.
    is_kept : bool
        Whether a backward pass may follow.
    """

    order: list[int]
    collected: Plan
    plans: list[Plan]
    is_kept: bool = True


class _LstmSteps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, bias: Tensor | None, steps: Steps
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        gates, half = inputs.split(len(hidden)), steps.plans[0].half
        results, kept = [hidden] * len(gates), [hidden, cell]
        for step, plan in zip(steps.order, steps.plans, strict=True):
            operand = hidden
            i, f, g, o = (gates[step] + gates_of(operand, weight, bias, plan)).chunk(4, -1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            before, cell = cell, f * cell + i * g
            reached = cell.tanh()
            hidden = results[step] = round_to_half(o * reached, plan.half, half.dtype)
            if steps.is_kept:
                kept += operand, before, i, f, g, o, reached
        ctx.steps, ctx.plan = steps, steps.collected.of_gradients
        ctx.save_for_backward(inputs, weight, bias, *kept)
        return torch.cat(results), hidden, cell

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        inputs, weight, bias, hidden, cell, *kept = ctx.saved_tensors
        steps: Steps = ctx.steps
        if torch.is_grad_enabled():
            return *_differentiable((inputs, hidden, cell, weight, bias), gradients, steps), None
        with torch._C.DisableTorchFunction(), unwatched(weight, *gradients):
            return *_gradients(ctx, weight, bias, kept, gradients), None


def _gradients(
    ctx: Any, weight: Tensor, bias: Tensor | None, kept: list[Tensor], gradients: tuple[Any, ...]
) -> tuple[Tensor | None, ...]:
    for_results, for_hidden, for_cell = gradients
    steps, backward, size = ctx.steps, torch.ops.aten, len(kept[0])
    each = [None] * len(steps.order) if for_results is None else for_results.split(size)
    gates: list[Any] = [None] * len(steps.order)
    operands: list[Any] = [None] * len(steps.order)
    for at in reversed(range(len(steps.order))):
        step, plan = steps.order[at], steps.plans[at]
        operand, before, i, f, g, o, reached = kept[7 * at : 7 * at + 7]
        given = [one for one in (each[step], for_hidden) if one is not None]
        new, last = for_cell, torch.zeros_like(o)
        if not given and new is None:  # nothing asks for what this step gave
            gates[step], operands[step] = torch.cat([last] * 4, -1), torch.zeros_like(operand, dtype=torch.float32)
            continue
        if given:
            hidden = given[0] + given[1] if len(given) > 1 else given[0]
            hidden = round_to_half(hidden, plan.half.of_gradients, torch.float32)
            through = backward.tanh_backward(hidden * o, reached)
            new = through if new is None else new + through
            last = backward.sigmoid_backward(hidden * reached, o)
        parts = (
            backward.sigmoid_backward(new * g, i),
            backward.sigmoid_backward(new * before, f),
            backward.tanh_backward(new * i, g),
            last,
        )
        gates[step], operands[step] = torch.cat(parts, -1), operand.float()
        for_hidden = None
        if at > 0 or ctx.needs_input_grad[1]:
            for_hidden = gradient_of_rows(gates[step], operand, weight, plan.of_gradients)
        for_cell = new * f
    gradient = torch.cat(gates)
    for_weight = for_bias = None
    if ctx.needs_input_grad[3]:
        for_weight = exact_product(gradient.mT, torch.cat(operands), None, ctx.plan.branch(1), weight.dtype)
    if bias is not None and ctx.needs_input_grad[4]:
        for_bias = summed(gradient, bias.shape, bias.dtype, ctx.plan.branch(2))
    return gradient, for_hidden, for_cell if ctx.needs_input_grad[2] else None, for_weight, for_bias


def _differentiable(
    given: tuple[Tensor | None, ...], gradients: tuple[Any, ...], steps: Steps
) -> tuple[Tensor | None, ...]:
    """Return the gradients so that they can be differentiated again."""
    aliases = [None if each is None else each.view_as(each) for each in given]
    inputs, hidden, cell, weight, bias = aliases
    results = _by_single_nodes(inputs, hidden, cell, weight, bias, steps)  # type: ignore[arg-type]  # only bias may be None
    pairs = [pair for pair in zip(results, gradients, strict=True) if pair[1] is not None]
    roots, seeds = zip(*pairs, strict=True)
    wanted = [each for each in aliases if each is not None and each.requires_grad]
    found = iter(torch.autograd.grad(roots, wanted, seeds, create_graph=True, allow_unused=True))
    return tuple(next(found) if each is not None and each.requires_grad else None for each in aliases)


def _by_single_nodes(
    inputs: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, bias: Tensor | None, steps: Steps
) -> tuple[Tensor, ...]:
    sizes = [len(hidden)] * len(steps.order)
    recurrent, gates = Stepwise(weight, bias, sizes, steps.collected), inputs.split(sizes)
    results = [hidden] * len(sizes)
    for step, plan in zip(steps.order, steps.plans, strict=True):
        new, cell = lstm_gates(gates[step], recurrent(hidden, step, plan), (hidden, cell))
        hidden = results[step] = round_to_half(new, plan.half, plan.half.dtype)
    return torch.cat(results), hidden, cell


# Without the search for wrappers that an ended transformation left behind.
lstm_steps = super(torch.autograd.Function, _LstmSteps).apply
