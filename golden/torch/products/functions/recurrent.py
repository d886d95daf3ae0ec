"""Exact recurrent layers and cells: LSTM, GRU and Elman networks, padded and packed.

Defined here: ``W_ih x + b_ih`` and ``W_hh h + b_hh`` are two products, each of which starts from its bias; the inputs
take one product for all steps. Gates, their gradients and the cell state of an LSTM are fp32. The hidden state is
rounded to the half format once in every step. The gradient of a weight is one reduction over all rows, step by step, in
each step through the batch, whichever direction the layer runs in. Second derivatives are one exact product for each
step, and PyTorch adds them in fp32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from golden.torch.products.functions.gradients import round_to_half
from golden.torch.products.functions.lstm import Steps, lstm_gates, lstm_steps
from golden.torch.products.functions.products import ELIGIBLE, check_tensors, current_plan, linear
from golden.torch.products.functions.stepwise import Stepwise
from golden.torch.products.operators.registered import is_plain, unwatched
from golden.torch.settings.scopes import scopes

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

_State = tuple[Tensor, ...]
# Gates of the inputs and of the hidden state, and the state, to the new one; all fp32, the hidden state first.
_Cell = Callable[[Tensor, Tensor, _State], _State]


def _gru(x: Tensor, h: Tensor, state: _State) -> _State:
    (x_reset, x_update, x_new), (h_reset, h_update, h_new) = x.chunk(3, -1), h.chunk(3, -1)
    new = (x_new + (x_reset + h_reset).sigmoid() * h_new).tanh()
    return (new + (x_update + h_update).sigmoid() * (state[0] - new),)


def _tanh(x: Tensor, h: Tensor, state: _State) -> _State:
    return ((x + h).tanh(),)


def _relu(x: Tensor, h: Tensor, state: _State) -> _State:
    return ((x + h).relu(),)


def _direction(
    rows: Tensor, sizes: list[int], start: _State, weights: Sequence[Tensor], *given: Any
) -> tuple[Tensor, _State]:
    """Run one layer in one direction; `rows` has the rows of step after step, `sizes` how many each step has."""
    with unwatched(rows, *start, *weights):
        return _steps(rows, sizes, start, weights, *given)


def _steps(
    rows: Tensor, sizes: list[int], start: _State, weights: Sequence[Tensor], cell: _Cell, biased: bool, reverse: bool
) -> tuple[Tensor, _State]:
    w_ih, w_hh, *rest = weights
    b_ih, b_hh = rest[:2] if biased else (None, None)
    order = list(range(len(sizes)))[:: -1 if reverse else 1]
    inputs = linear(rows, w_ih, b_ih).float()
    if cell is lstm_gates and _is_one_node(rows, sizes, start, weights):
        collected, half = current_plan(), current_plan().half
        steps = Steps(order, collected, [current_plan() for _ in order], torch.is_grad_enabled())
        hidden = round_to_half(start[0], half, half.dtype)
        result, *last = lstm_steps(inputs, hidden, start[1].float(), w_hh, b_hh, steps)
        return result, tuple(last)
    gates = inputs.split(sizes)
    recurrent = Stepwise(w_hh, b_hh, sizes)
    projection = Stepwise(rest[-1], None, sizes) if len(rest) % 2 else None
    half = current_plan().half
    start = (round_to_half(start[0], half, half.dtype), *(each.float() for each in start[1:]))
    state, ended, results = tuple(each[: sizes[order[0]]] for each in start), [], [rows] * len(sizes)
    for step in order:
        size, before = sizes[step], len(state[0])
        if size < before:  # sequences that end
            ended.append(tuple(each[size:] for each in state))
            state = tuple(each[:size] for each in state)
        elif size > before:  # sequences whose end the reverse direction reaches here
            state = tuple(torch.cat([each, first[before:size]]) for each, first in zip(state, start, strict=True))
        hidden, *others = cell(gates[step], recurrent(state[0], step), (state[0].float(), *state[1:]))
        if projection is not None:
            hidden = projection(hidden, step)
        results[step] = round_to_half(hidden, half, half.dtype)
        state = (results[step], *others)
    final = tuple(torch.cat(parts) for parts in zip(state, *reversed(ended), strict=False)) if ended else state
    return torch.cat(results), final


def _is_one_node(rows: Tensor, sizes: list[int], start: _State, weights: Sequence[Tensor]) -> bool:
    """Tell whether one node runs all steps of an LSTM: nobody wants to see more, and no sequence ends early."""
    return (
        len(weights) % 2 == 0
        and sizes[0] == sizes[-1]
        and len(start[0]) == sizes[0]
        and scopes.observer is None
        and is_plain(rows, *start, *weights)
    )


def _checked_layers(
    states: _State, params: Sequence[Tensor], has_biases: bool, layers: int, bidirectional: bool
) -> list[Sequence[Tensor]]:
    """Return the weights of every layer and direction."""
    count = layers * (2 if bidirectional else 1)
    projected = len(states) == 2 and states[0].shape[-1] != states[1].shape[-1]
    each = 2 + 2 * has_biases + projected
    if len(params) != count * each:
        raise ValueError(
            f"params: got {len(params)} weights and biases, must be {count * each}: {each} for each of {count} layers "
            f"and directions"
        )
    if any(state.shape[0] != count for state in states):
        raise ValueError(f"hx: got states of {[state.shape[0] for state in states]} layers, must be of {count}")
    check_tensors(**{f"params[{number}]": tensor for number, tensor in enumerate(params)})
    return [params[number * each : (number + 1) * each] for number in range(count)]


class _Settings(NamedTuple):
    """The last arguments of `torch.lstm` and its kin; packed sequences have no `batch_first`."""

    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool = False


def _layers(
    rows: Tensor,
    sizes: list[int],
    states: _State,
    params: Sequence[Tensor],
    given: _Settings,
    cell: _Cell,
) -> tuple[Tensor, _State]:
    has_biases, num_layers, dropout, train, bidirectional = given[:5]
    check_tensors(input=rows, **{f"hx[{number}]": state for number, state in enumerate(states)})
    weights = _checked_layers(states, params, has_biases, num_layers, bidirectional)
    if not sizes:
        raise ValueError("input: got no steps, must have at least one")
    if any(state.shape[1] != max(sizes) for state in states):
        raise ValueError(f"hx: got states of {states[0].shape[1]} sequences, must be of {max(sizes)} as the input")
    finals: list[_State] = []
    directions = 2 if bidirectional else 1
    for layer in range(num_layers):
        results = []
        for number in range(layer * directions, (layer + 1) * directions):
            start = tuple(state[number] for state in states)
            reverse = number % directions == 1
            result, final = _direction(rows, sizes, start, weights[number], cell, has_biases, reverse)
            results.append(result)
            finals.append(final)
        rows = torch.cat(results, -1) if bidirectional else results[0]
        if train and dropout and layer < num_layers - 1:
            rows = F.dropout(rows, dropout)
    return rows, tuple(torch.stack(parts) for parts in zip(*finals, strict=True))


def _padded(
    cell: _Cell,
    input: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    *rest: Any,
    **named: Any,
) -> tuple[Tensor, ...]:
    settings = _Settings(*rest, **named)
    steps = input.transpose(0, 1) if settings.batch_first else input
    states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    length, batch = steps.shape[:2]
    rows, finals = _layers(steps.flatten(0, 1), [batch] * length, states, params, settings, cell)
    result = rows.unflatten(0, (length, batch))
    return (result.transpose(0, 1) if settings.batch_first else result, *finals)


def _packed(
    cell: _Cell, data: Tensor, batch_sizes: Tensor, hx: Any, params: Sequence[Tensor], *rest: Any, **named: Any
) -> tuple[Tensor, ...]:
    states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    rows, finals = _layers(data, batch_sizes.tolist(), states, params, _Settings(*rest, **named), cell)
    return (rows, *finals)


def _run(cell: _Cell, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Tensor, ...]:
    """Tell the two forms of PyTorch's functions apart: of a packed input, the fourth argument is the weights."""
    is_packed = "batch_sizes" in named or (len(given) > 3 and isinstance(given[3], list | tuple))
    return (_packed if is_packed else _padded)(cell, *given, **named)


def lstm(*given: Any, **named: Any) -> tuple[Tensor, ...]:
    """Exact `torch.lstm`, padded or packed, also with projections: output, last hidden states, last cell states.

    Output and hidden states are of the half dtype, cell states of float32.
    """
    return _run(lstm_gates, given, named)


def gru(*given: Any, **named: Any) -> tuple[Tensor, ...]:
    """Exact `torch.gru`, padded or packed: output and last hidden states, of the half dtype."""
    return _run(_gru, given, named)


def rnn_tanh(*given: Any, **named: Any) -> tuple[Tensor, ...]:
    """Exact `torch.rnn_tanh`, padded or packed: output and last hidden states, of the half dtype."""
    return _run(_tanh, given, named)


def rnn_relu(*given: Any, **named: Any) -> tuple[Tensor, ...]:
    """Exact `torch.rnn_relu`, padded or packed: output and last hidden states, of the half dtype."""
    return _run(_relu, given, named)


def _cell(
    cell: _Cell, x: Tensor, state: _State, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> _State:
    check_tensors(input=x, **{f"hx[{number}]": each for number, each in enumerate(state)})
    wanted = (*x.shape[:-1], w_hh.shape[-1])
    for number, each in enumerate(state):
        if each.shape != wanted:  # it would broadcast, one state to all rows
            raise ValueError(f"hx[{number}]: got shape {tuple(each.shape)}, must be {wanted} for this input and weight")
    half = current_plan().half
    hidden = round_to_half(state[0], half, half.dtype)
    gates = linear(x, w_ih, b_ih).float(), linear(hidden, w_hh, b_hh).float()
    new, *others = cell(*gates, (hidden.float(), *(each.float() for each in state[1:])))
    return round_to_half(new, half, half.dtype), *others


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> _State:
    """Exact `torch.lstm_cell`: the hidden state in the half dtype and the cell state in float32."""
    return _cell(lstm_gates, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


def _single_state(cell: _Cell, name: str) -> Callable[..., Tensor]:
    def run(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Tensor:
        return _cell(cell, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"Exact `torch.{name}`: the new hidden state in the half dtype."
    return run


gru_cell = _single_state(_gru, "gru_cell")
rnn_tanh_cell = _single_state(_tanh, "rnn_tanh_cell")
rnn_relu_cell = _single_state(_relu, "rnn_relu_cell")

_check_input = torch.nn.RNNBase.check_input


@functools.wraps(_check_input)
def _check_input_of_any_half(self: torch.nn.RNNBase, input: Tensor, batch_sizes: Tensor | None) -> None:
    """Let a layer with weights in float32 take what another left in the half dtype, as torch.autocast does."""
    in_precision = bool(scopes.precisions) and scopes.precisions[-1].enabled
    if in_precision and input.dtype in ELIGIBLE:
        weight = self._flat_weights[0]
        if isinstance(weight, Tensor) and weight.dtype in ELIGIBLE:
            input = torch.empty(input.shape, dtype=weight.dtype, device="meta")  # its form is all that is looked at
    _check_input(self, input, batch_sizes)


torch.nn.RNNBase.check_input = _check_input_of_any_half  # type: ignore[method-assign]
