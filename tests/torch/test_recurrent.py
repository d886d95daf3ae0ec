"""Recurrent layers and cells: every sequence on its own, every product on codes, the gates between them in fp32."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import golden
import golden.torch as cstorch
from golden.torch.products.functions import recurrent
from golden.torch.settings.half_type import half_named

from .oracle import assert_codes, assert_same_tensors, codes, normal, product, sum_of_codes

HALF = "cbfloat16"
LENGTHS = [4, 4, 2, 1]


def values(codes_of_values, half=HALF):
    return torch.from_numpy(golden.decode(codes_of_values, half))


def rounded(x, half=HALF):
    return values(codes(x, half), half)


def lstm(x, h, state):
    i, f, g, o = (x + h).chunk(4, -1)
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(cell), cell]


def gru(x, h, state):
    r, z = torch.sigmoid(x + h).chunk(3, -1)[:2]
    n = torch.tanh(x.chunk(3, -1)[2] + r * h.chunk(3, -1)[2])
    return [n + z * (state[0] - n)]


CELLS = {
    "LSTM": (lambda *sizes, **kw: torch.nn.LSTM(*sizes, **kw), lstm, recurrent.lstm, torch.nn.LSTMCell),
    "GRU": (lambda *sizes, **kw: torch.nn.GRU(*sizes, **kw), gru, recurrent.gru, torch.nn.GRUCell),
    "tanh": (
        lambda *sizes, **kw: torch.nn.RNN(*sizes, **kw),
        lambda x, h, state: [torch.tanh(x + h)],
        recurrent.rnn_tanh,
        torch.nn.RNNCell,
    ),
    "relu": (
        lambda *sizes, **kw: torch.nn.RNN(*sizes, nonlinearity="relu", **kw),
        lambda x, h, state: [torch.relu(x + h)],
        recurrent.rnn_relu,
        lambda *sizes: torch.nn.RNNCell(*sizes, nonlinearity="relu"),
    ),
}


def sequence(x, start, weights, cell, plan):
    """One layer in one direction over the rows of one sequence: the hidden states of all steps, the last state."""
    half, level, chunk = plan
    w_ih, w_hh, b_ih, b_hh, *projection = weights
    state, hidden = [rounded(start[0], half), *start[1:]], []
    for row in x:
        gates = values(product(row[None], w_ih.T, half, level, chunk, b_ih), half)
        more = values(product(state[0][None], w_hh.T, half, level, chunk, b_hh), half)
        state = [each[0] for each in cell(gates, more, [each[None] for each in state])]
        if projection:
            state[0] = values(product(state[0][None], projection[0].T, half, level, chunk), half)[0]
        state[0] = rounded(state[0], half)
        hidden.append(state[0])
    return torch.stack(hidden), state


def whole_layer(x, starts, params, cell, plan, layers, directions, lengths):
    """All sequences through all layers: rows of every sequence, final states of every layer and direction."""
    finals = [[None] * len(lengths) for _ in range(layers * directions)]
    each, results = len(params) // (layers * directions), []
    for number, length in enumerate(lengths):
        rows = x[:length, number]
        for layer in range(layers):
            parts = []
            for index in range(layer * directions, (layer + 1) * directions):
                weights, turn = params[index * each : (index + 1) * each], [0] if index % directions else []
                start = [state[index, number] for state in starts]
                got, finals[index][number] = sequence(rows.flip(turn) if turn else rows, start, weights, cell, plan)
                parts.append(got.flip(turn) if turn else got)
            rows = torch.cat(parts, -1)
        results.append(rows)
    return results, [
        torch.stack([torch.stack([s[part] for s in row]) for row in finals]) for part in range(len(starts))
    ]


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize(("half", "level"), [("cbfloat16", 1), ("float16", 2), ("bfloat16", 0)])
def test_recurrent_layers_are_sequences_of_exact_products(name, half, level):
    build, cell, function, _ = CELLS[name]
    torch.manual_seed(level)
    projected = {"proj_size": 3} if name == "LSTM" and level == 1 else {}
    model = build(5, 6, 2, bidirectional=True, **projected).requires_grad_(False)
    x, params = normal(4, 4, 5, seed=1), list(model.parameters())
    starts = [normal(4, 4, 3 if projected else 6, seed=2), normal(4, 4, 6, seed=3)][: 2 if name == "LSTM" else 1]
    hx = tuple(starts) if name == "LSTM" else starts[0]
    plan = half, level, 4
    with cstorch.precision(half, level, chunk=4):
        output, *states = [each for part in model(x, hx) for each in (part if isinstance(part, tuple) else [part])]
        packed = pack_padded_sequence(x, torch.tensor(LENGTHS))
        settings = (True, 2, 0.0, False, True)
        data, *packed_states = function(packed.data, packed.batch_sizes, hx, params, *settings)
    for lengths, finals in (([4] * 4, states), (LENGTHS, packed_states)):
        results, wanted = whole_layer(x, starts, params, cell, plan, 2, 2, lengths)
        assert_codes(finals[0], codes(wanted[0], half), half)
        if name == "LSTM":
            assert_same_tensors(finals[1], wanted[1])
        if finals is states:
            assert_codes(output, codes(torch.stack(results, 1), half), half)
        else:
            in_steps = [rows[step] for step in range(4) for rows in results if step < len(rows)]
            assert_codes(data, codes(torch.stack(in_steps), half), half)
    assert output.dtype == half_named(half).dtype


def test_packed_module_runs_exactly_and_its_integers_do_not_matter():
    torch.manual_seed(3)
    model, x = torch.nn.LSTM(5, 6), normal(4, 4, 5, seed=20)
    packed = pack_padded_sequence(x, torch.tensor([2, 4, 1, 4]), enforce_sorted=False)
    with cstorch.precision(HALF, level=2):
        result, (hidden, cell) = model(packed)
        padded = torch.nn.utils.rnn.pad_packed_sequence(result)[0]
        for number, length in enumerate([2, 4, 1, 4]):
            alone, (last, last_cell) = model(x[:length, number])
            assert_same_tensors(padded[:length, number], alone)
            assert_same_tensors(hidden[:, number], last)
            assert_same_tensors(cell[:, number], last_cell)
    assert (result.data != model(packed)[0].data).any()


def gradients_step_by_step(x, weights, cell, plan, upstream, states):
    """The gradients of gates in every step and of inputs, and the hidden states, for a batch of equal lengths."""
    half, level, chunk = plan
    w_ih, w_hh, b_ih, b_hh = weights
    state, steps, hidden = [torch.zeros(x.shape[1], 6) for _ in range(states)], [], []
    for rows in x:
        given = [
            values(product(rows, w_ih.T, half, level, chunk, b_ih), half),
            values(product(state[0], w_hh.T, half, level, chunk, b_hh), half),
            *state,
        ]
        given = [each.detach().requires_grad_() for each in given]
        new = cell(given[0], given[1], given[2:])
        hidden.append(state[0])
        steps.append((given, new))
        state = [rounded(new[0].detach(), half), *(each.detach() for each in new[1:])]
    back, of_gates = [torch.zeros(x.shape[1], 6) for _ in range(states)], []
    for step in range(len(x) - 1, -1, -1):
        given, new = steps[step]
        back[0] = rounded(back[0] + upstream[step], half)
        of_x, of_h, *back = torch.autograd.grad(new, given, back, allow_unused=True)
        back = [torch.zeros(x.shape[1], 6) if each is None else each for each in back]
        back[0] = back[0] + values(product(of_h, w_hh, half, level, chunk), half)
        of_gates.insert(0, (of_x, of_h))
    return [torch.cat(each) for each in zip(*of_gates, strict=True)], torch.cat(hidden)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrent_gradient_of_a_weight_is_one_reduction_over_all_steps(name, reverse):
    build, cell, function, _ = CELLS[name]
    torch.manual_seed(4)
    params = list(build(5, 6, bidirectional=True).parameters())
    x, upstream = normal(4, 3, 5, seed=5), torch.zeros(4, 3, 6)
    upstream[0 if reverse else 3] = normal(3, 6, seed=6)  # a single addend beside the product and the gates' own
    zeros = torch.zeros(2, 3, 6)
    with cstorch.precision(HALF, level=1, chunk=4):
        result = function(x, (zeros, zeros) if name == "LSTM" else zeros, params, True, 1, 0.0, True, True, False)[0]
    result.chunk(2, -1)[reverse].backward(upstream)
    weights = params[4 * reverse : 4 * reverse + 4]
    turn = [0] if reverse else []
    (of_x, of_h), hidden = gradients_step_by_step(
        x.flip(turn), [each.detach() for each in weights], cell, (HALF, 1, 4), upstream.flip(turn), len(name) // 4 + 1
    )
    if reverse:  # the rows of a reduction are in the order of the data
        of_x, of_h, hidden = (each.reshape(4, 3, -1).flip(0).flatten(0, 1) for each in (of_x, of_h, hidden))
    for given, wanted in zip(
        weights,
        (product(of_x.T, x.flatten(0, 1), HALF, 1, 4), product(of_h.T, hidden, HALF, 1, 4)),
        strict=False,
    ):
        assert_codes(given.grad, wanted, HALF)
    for bias, terms in zip(weights[2:], (of_x, of_h), strict=True):
        assert_codes(bias.grad, sum_of_codes(codes(terms, HALF), HALF), HALF)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_layers": 3, "bias": False, "batch_first": True},
        {"num_layers": 2, "bidirectional": True, "dropout": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", CELLS)
def test_recurrent_layers_come_near_those_of_pytorch(name, settings):
    torch.manual_seed(7)
    model = CELLS[name][0](5, 6, **settings)
    x = normal(4, 3, 5, seed=8, grad=True)

    def results():
        output, states = model(x)
        states = states if isinstance(states, tuple) else (states,)
        loss = sum(each.float().square().sum() for each in (output, *states))
        return [output, *states, *torch.autograd.grad(loss, [x, *model.parameters()], materialize_grads=True)]

    plain = results()
    with cstorch.precision("float16", level=0):
        exact = results()
    for got, wanted in zip(exact, plain, strict=True):
        assert got.shape == wanted.shape
        assert (got - wanted).abs().max() <= 0.01 * max(wanted.abs().max(), 1e-6)
    assert (exact[0] != plain[0]).any()


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_cell_is_one_step_of_the_layer(name, bias):
    build, _, _, make_cell = CELLS[name]
    torch.manual_seed(9)
    model, cell = build(5, 6), make_cell(5, 6)
    cell.load_state_dict({key.removesuffix("_l0"): each for key, each in model.state_dict().items()})
    if not bias:
        model = build(5, 6, bias=False)
        cell = make_cell(5, 6).requires_grad_(False)
        cell.register_parameter("bias_ih", None)
        cell.register_parameter("bias_hh", None)
        cell.load_state_dict({key.removesuffix("_l0"): each for key, each in model.state_dict().items()})
    x = normal(3, 5, seed=10)
    with cstorch.precision(HALF, level=2):
        output, last = model(x[None])
        step = cell(x)
        again = cell(x, step)
        together, _ = model(torch.stack([x, x]))
    last = last if isinstance(last, tuple) else (last,)
    step = step if isinstance(step, tuple) else (step,)
    assert_same_tensors(step[0], output[0])
    for got, wanted in zip(step, last, strict=True):
        assert_same_tensors(got, wanted[0])
    assert_same_tensors((again if isinstance(again, tuple) else (again,))[0], together[1])
    assert (step[0] != (cell(x)[0] if name == "LSTM" else cell(x))).any()


def test_recurrent_layer_with_no_bias_gradient_or_none_at_all():
    model = torch.nn.LSTM(5, 6, proj_size=4)
    model.bias_hh_l0.requires_grad_(False)
    x = normal(2, 3, 5, seed=11)
    with cstorch.precision(HALF):
        trained = model(x)[0]
        with torch.no_grad():
            plain = model(x)[0]
    assert_same_tensors(trained.detach(), plain)
    trained.sum().backward()
    assert model.bias_hh_l0.grad is None
    assert all(each.grad is not None for key, each in model.named_parameters() if key != "bias_hh_l0")


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("packed", [False, True])
def test_recurrent_layer_after_a_layer_that_leaves_16_bits_takes_them(half, packed):
    torch.manual_seed(13)
    before, model = torch.nn.Linear(4, 5), torch.nn.LSTM(5, 6)

    def results(as_float32):
        x = before(normal(4, 3, 4, seed=14))
        assert x.dtype == cstorch.get_half_dtype()
        x = x.float() if as_float32 else x
        output, (hidden, cell) = model(pack_padded_sequence(x, [4, 2, 1]) if packed else x)
        return [output.data if packed else output, hidden, cell]

    with cstorch.precision(half):
        for got, wanted in zip(results(False), results(True), strict=True):
            assert_same_tensors(got, wanted)


def test_recurrent_layer_of_another_size_is_refused_as_by_pytorch():
    with cstorch.precision("bfloat16"), pytest.raises(RuntimeError, match=r"input\.size"):
        torch.nn.LSTM(5, 6)(torch.ones(2, 3, 4, dtype=torch.bfloat16))
    with pytest.raises(ValueError, match="dtype"):  # outside of a precision
        torch.nn.LSTM(5, 6)(torch.ones(2, 3, 5, dtype=torch.bfloat16))


def second_derivatives(outputs, given):
    """Derivatives of a gradient, of all inputs with respect to all inputs and to the gradient that came from above."""
    upstream = [normal(*each.shape, seed=40 + number, grad=True) for number, each in enumerate(outputs)]
    first = torch.autograd.grad(outputs, given, upstream, create_graph=True)
    directions = [normal(*each.shape, seed=50 + number) for number, each in enumerate(first)]
    return torch.autograd.grad(first, [*given, *upstream], directions, materialize_grads=True)


@pytest.mark.parametrize("name", CELLS)
def test_recurrent_layer_of_one_step_has_the_second_derivatives_of_its_cell(name):
    build, _, _, make_cell = CELLS[name]
    torch.manual_seed(15)
    model, cell = build(5, 6), make_cell(5, 6)
    cell.load_state_dict({key.removesuffix("_l0"): each for key, each in model.state_dict().items()})
    x = normal(3, 5, seed=16, grad=True)
    states = [normal(3, 6, seed=seed, grad=True) for seed in (17, 18)][: 2 if name == "LSTM" else 1]
    with cstorch.precision(HALF, level=2, chunk=3):
        _, last = model(x[None], (states[0][None], states[1][None]) if name == "LSTM" else states[0][None])
        step = cell(x, tuple(states) if name == "LSTM" else states[0])
    last, step = (each if isinstance(each, tuple) else (each,) for each in (last, step))
    got = second_derivatives([each[0] for each in last], [x, *states, *model.parameters()])
    wanted = second_derivatives(step, [x, *states, *cell.parameters()])
    for one, other in zip(got, wanted, strict=True):
        assert_same_tensors(one, other)


@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("packed", [False, True])
def test_second_derivatives_of_recurrent_layers_come_near_those_of_pytorch(packed, name, settings):
    torch.manual_seed(19)
    model = CELLS[name][0](5, 6, **settings)
    x = normal(4, 3, 5, seed=20)

    def results(dtype):
        model.to(dtype)
        given = x.to(dtype, copy=True).requires_grad_()
        output, states = model(pack_padded_sequence(given, [4, 2, 1]) if packed else given)
        states = states if isinstance(states, tuple) else (states,)
        loss = (output.data if packed else output).float().square().sum() + sum(each.square().sum() for each in states)
        (slope,) = torch.autograd.grad(loss, given, create_graph=True)
        penalty = slope.square().sum()  # as of a gradient penalty
        return torch.autograd.grad(penalty, [given, *model.parameters()], materialize_grads=True)

    plain = results(torch.float64)
    with cstorch.precision("float16", level=1):
        exact = results(torch.float32)
    for got, wanted in zip(exact, plain, strict=True):
        assert got.shape == wanted.shape
        assert (got - wanted).abs().max() <= 0.02 * max(wanted.abs().max(), 1e-6)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("shape", [(1, 6), (2, 1), (6,)])
def test_recurrent_cell_with_a_state_of_another_shape_is_refused(name, shape):
    cell, x = CELLS[name][3](5, 6), torch.ones(2, 5)
    number = 1 if name == "LSTM" else 0
    hx = (torch.zeros(2, 6), torch.zeros(shape)) if name == "LSTM" else torch.zeros(shape)
    function = getattr(recurrent, {"tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell"}.get(name, f"{name.lower()}_cell"))
    with pytest.raises(ValueError, match=rf"^hx\[{number}\]: got shape \({shape[0]},.*, must be \(2, 6\) for this"):
        function(x, hx, *cell.parameters())


W, H = torch.ones(4, 1), torch.zeros(1, 2, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recurrent.lstm(torch.ones(3, 2, 1), (H, H), [W] * 3, True, 1, 0.0, False, False, False), r"^params: "),
        (
            lambda: recurrent.lstm(torch.ones(3, 2, 1), (H, H), [W] * 8, True, 2, 0.0, False, False, False),
            r"^hx: got states of \[1, 1\] layers, must be of 2",
        ),
        (
            lambda: recurrent.gru(torch.ones(3, 5, 1), H, [W] * 4, True, 1, 0.0, False, False, False),
            r"^hx: got states of 2 sequences, must be of 5",
        ),
        (
            lambda: recurrent.gru(torch.ones(0, 2, 1), H, [W] * 4, True, 1, 0.0, False, False, False),
            r"^input: got no steps",
        ),
    ],
)
def test_recurrent_layer_of_bad_arguments_names_them(call, message):
    with pytest.raises(ValueError, match=message):
        call()
