"""torch.func: the same exact products inside its transformations, item by item, and forward derivatives."""

import pytest
import torch
import torch.nn.functional as F
from torch import func

import golden
import golden.torch as cstorch

from .oracle import assert_same_tensors, normal

HALF = "cbfloat16"
X, W, BIAS = normal(5, 4, 6, seed=1), normal(5, 6, 3, seed=2), normal(5, 3, seed=3)


def gradient(function, *given):
    """The gradient of the first argument, by torch.autograd."""
    leaf = given[0].clone().requires_grad_()
    return torch.autograd.grad(function(leaf, *given[1:]), leaf)[0]


BATCHED = {
    "both": (torch.matmul, (X, W), (0, 0)),
    "left": (torch.matmul, (X, W[0]), (0, None)),
    "right": (torch.matmul, (X[0], W), (None, 0)),
    "other axes": (torch.matmul, (X.movedim(0, 1), W.movedim(0, -1)), (1, -1)),
    "more axes on one side": (torch.matmul, (X, W[0].expand(5, 2, 6, 3)), (0, 0)),
    "bias": (F.linear, (X, W.mT[0], BIAS), (0, None, 0)),
    "bias alone": (F.linear, (X[0], W.mT[0], BIAS), (None, None, 0)),
    "convolution": (F.conv1d, (X, normal(2, 4, 3, seed=4)), (0, None)),
    "kernels": (F.conv1d, (X, normal(5, 2, 4, 3, seed=5)), (None, 0)),
    "transposed": (F.conv_transpose1d, (X, normal(5, 4, 2, 3, seed=6)), (0, 0)),
    "attention": (F.scaled_dot_product_attention, (X, X, X), (0, 0, 0)),
}


@pytest.mark.parametrize("name", BATCHED)
def test_vmap_runs_the_exact_product_of_every_item(name):
    function, given, dims = BATCHED[name]
    with cstorch.precision(HALF, level=2, chunk=3):
        got = func.vmap(function, dims)(*given)
        items = [
            function(*(each if dim is None else each.select(dim, item) for each, dim in zip(given, dims, strict=True)))
            for item in range(5)
        ]
    assert_same_tensors(got, torch.stack(items))
    assert (got != func.vmap(function, dims)(*given)).any()


def loss(weight, x, bias):
    return F.linear(F.relu(F.linear(x, weight, bias)), weight.mT[:, :6]).square().sum()


def test_grad_of_every_sample_is_that_of_autograd():
    weight, bias = normal(6, 6, seed=7), normal(6, seed=8)
    with cstorch.precision(HALF, level=2, chunk=3):
        whole = func.grad(loss)(weight, X, bias)
        assert_same_tensors(whole, gradient(loss, weight, X, bias))
        samples = func.vmap(func.grad(loss), (None, 0, None))(weight, X, bias)
        assert_same_tensors(samples, torch.stack([gradient(loss, weight, x, bias) for x in X]))
    assert (whole != func.grad(loss)(weight, X, bias)).any()


def test_jacobian_and_second_derivatives_are_those_of_autograd():
    with cstorch.precision(HALF, level=1, chunk=3):
        jacobian = func.jacrev(torch.matmul)(X[0], W[0])
        wanted = torch.autograd.functional.jacobian(lambda x: torch.matmul(x, W[0]), X[0])
        assert_same_tensors(jacobian, wanted)
        hessian = func.jacrev(func.grad(lambda x: (x @ W[0]).square().sum()))(X[0, :1])
        wanted = torch.autograd.functional.hessian(lambda x: (x @ W[0]).square().sum(), X[0, :1])
        assert_same_tensors(hessian, wanted)


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose1d"])
def test_gradients_of_convolutions_in_transformations_are_those_of_autograd(name):
    kernels, bias = normal(4, 4, 3, seed=9), normal(4, seed=10)

    def of(weight, x, bias):
        return getattr(F, name)(x, weight, bias).square().sum()

    with cstorch.precision(HALF, level=1, chunk=3):
        got = func.grad(of)(kernels, X, bias)
        assert_same_tensors(got, gradient(of, kernels, X, bias))
        samples = func.vmap(func.grad(of), (None, 0, None))(kernels, X, bias)
        assert_same_tensors(samples, torch.stack([gradient(of, kernels, x, bias) for x in X]))
        twice = func.jacrev(func.grad(lambda x: of(kernels, x, bias)))(X[:1, :, :3])
        of_x = torch.autograd.functional.hessian(lambda x: of(kernels, x, bias), X[:1, :, :3])
        assert_same_tensors(twice, of_x)


def test_functional_call_runs_a_module_with_other_parameters():
    module = torch.nn.Linear(6, 3)
    parameters = {"weight": W[0].T, "bias": BIAS[0]}
    with cstorch.precision(HALF):
        got = func.functional_call(module, parameters, (X,))
        assert_same_tensors(got, F.linear(X, W[0].T, BIAS[0]))


KERNELS, TRANSPOSED = normal(2, 4, 3, seed=4), normal(4, 2, 3, seed=4)
BILINEAR = {
    "product": (torch.matmul, X, W),
    "linear": (F.linear, X, W[0].T),
    "convolution": (F.conv1d, X, KERNELS),
    "transposed": (lambda x, weight: F.conv_transpose1d(x, weight, stride=2), X, TRANSPOSED),
    "groups": (lambda x, weight: F.grouped_mm(x, weight), X, W),
    "groups of rows": (lambda x, weight: F.grouped_mm(x, weight, offs=OFFS), X[0], W[:2]),
}
OFFS = torch.tensor([1, 4], dtype=torch.int32)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
@pytest.mark.parametrize("name", BILINEAR)
def test_tangent_of_a_product_is_two_products_at_the_backward_level_added_and_rounded_once(name):
    function, x, weight = BILINEAR[name]
    of_x, of_weight = normal(*x.shape, seed=13), normal(*weight.shape, seed=14)
    with cstorch.precision(HALF, level=0, chunk=3), cstorch.pol(bwd_level=2):
        value, got = func.jvp(function, (x, weight), (of_x, of_weight))
        _, alone = func.jvp(lambda weight: function(x, weight), (weight,), (of_weight,))
        assert_same_tensors(value, function(x, weight))
    with cstorch.precision(HALF, level=2, chunk=3):
        first, second = function(of_x, weight), function(x, of_weight)
    assert_same_tensors(alone, second)
    assert_same_tensors(got, torch.from_numpy(golden.quantize((first + second).numpy(), HALF)))
    assert (got != first + second).any()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
def test_tangent_of_a_bias_is_the_start_of_the_first_product():
    x, weight, bias = X[0], W[0].T, BIAS[0]
    of_x, of_bias = X[1], BIAS[1] * 2**-9
    with cstorch.precision(HALF, level=2):
        _, got = func.jvp(lambda x, bias: F.linear(x, weight, bias), (x, bias), (of_x, of_bias))
        assert_same_tensors(got, F.linear(of_x, weight, of_bias))
        _, got = func.jvp(lambda bias: F.linear(x, weight * torch.inf, bias), (bias,), (of_bias,))
        assert_same_tensors(got, torch.from_numpy(golden.quantize(of_bias.numpy(), HALF)).expand(4, 3))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
def test_jacobian_and_hessian_in_forward_mode_are_those_of_reverse_mode():
    def penalty(weight):
        return F.conv1d(X[:1], weight).square().sum()

    with cstorch.precision(HALF, level=2, chunk=3):
        assert_same_tensors(func.jacfwd(torch.matmul)(X[0], W[0]), func.jacrev(torch.matmul)(X[0], W[0]))
        assert_same_tensors(func.hessian(penalty)(KERNELS), func.jacrev(func.grad(penalty))(KERNELS))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
def test_tangent_of_attention_is_near_that_of_pytorch_in_float64():
    def attend(x):
        return F.scaled_dot_product_attention(x, x * 0.5, x - 1)

    with cstorch.precision(HALF, level=2):  # a softmax in 16 bits
        _, got = func.jvp(attend, (X,), (X * 0.25 + 1,))
    _, wanted = func.jvp(attend, (X.double(),), (X.double() * 0.25 + 1,))
    assert (got - wanted).abs().max() < 2**-6 * wanted.abs().max()
    assert (got != 0).all()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
def test_forward_derivative_of_a_recurrent_layer_to_train_is_refused_and_of_a_frozen_one_is_not():
    model, x = torch.nn.GRU(3, 4), normal(5, 2, 3, seed=25)
    with cstorch.precision(HALF), torch.autograd.forward_ad.dual_level():
        with pytest.raises(NotImplementedError, match=r"^forward-mode derivatives: got one of a recurrent layer"):
            model(torch.autograd.forward_ad.make_dual(x, x))
        with pytest.raises(NotImplementedError, match=r"^forward-mode derivatives: .* of mx.fake_quantize"):
            cstorch.mx.fake_quantize(torch.autograd.forward_ad.make_dual(x, x), "float8_e4m3fn")
        result, _ = model.requires_grad_(False)(torch.autograd.forward_ad.make_dual(x, x))
        tangent = torch.autograd.forward_ad.unpack_dual(result).tangent
    difference = (model.double()(x.double() * (1 + 2**-20))[0] - model(x.double())[0]) * 2**20
    assert (tangent - difference).abs().max() < 2**-6 * difference.abs().max()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda dense, sparse: dense @ sparse,
            r"^other: got a tensor of torch.sparse_coo, must be dense; .to_dense\(\)",
        ),
        (lambda dense, sparse: sparse @ dense, r"^input: got a tensor of torch.sparse_coo"),
        (lambda dense, sparse: sparse.to_sparse_csr() @ dense, r"^input: got a tensor of torch.sparse_csr"),
        (lambda dense, sparse: torch.matmul(dense, sparse), r"^other: got a tensor of torch.sparse_coo"),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_operand_of_an_operator_is_named(call, message):
    with cstorch.precision(HALF), pytest.raises(NotImplementedError, match=message):
        call(torch.ones(2, 2), torch.eye(2).to_sparse())


FORWARD = {
    "product": lambda x: x @ W[0],
    "linear": lambda x: F.linear(x, W[0].T),
    "convolution": lambda x: F.conv1d(x[None], KERNELS),
    "transposed": lambda x: F.conv_transpose1d(x[None], TRANSPOSED),
    "groups": lambda x: F.grouped_mm(x[None], W[:1]),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
@pytest.mark.parametrize("name", FORWARD)
def test_forward_derivatives_without_gradients_are_those_of_torch_func(name):
    with cstorch.precision(HALF), torch.no_grad(), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(X[0], X[1])
        got = torch.autograd.forward_ad.unpack_dual(FORWARD[name](dual)).tangent
    with cstorch.precision(HALF):
        assert_same_tensors(got, func.jvp(FORWARD[name], (X[0],), (X[1],))[1])


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_batch_of_gradients_is_that_of_each_gradient(name):
    x = X[0].clone().requires_grad_()
    with cstorch.precision(HALF, level=2, chunk=3):
        result = FORWARD[name](x)
    batch = normal(3, *result.shape, seed=11)
    (got,) = torch.autograd.grad(result, x, batch, is_grads_batched=True, retain_graph=True)
    assert_same_tensors(
        got, torch.stack([torch.autograd.grad(result, x, each, retain_graph=True)[0] for each in batch])
    )


@pytest.mark.parametrize(
    "transformed", [lambda x: func.vmap(lambda row: row @ W[0])(x), func.grad(lambda x: (x @ W[0]).square().sum())]
)
def test_compiled_transformation_is_an_error_and_loses_no_derivative(transformed):
    # Its gradient was zero.
    torch._dynamo.reset()
    compiled, x = torch.compile(lambda x: transformed(x), backend="eager"), X[0].clone().requires_grad_()
    with cstorch.precision(HALF), pytest.raises(Exception, match=r"torch.func: got an exact product within"):
        compiled(x)
    assert_same_tensors(compiled(x), transformed(x))


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
def test_recurrent_layer_within_torch_func_has_the_gradients_of_autograd(layer, rounding):
    torch.manual_seed(21)
    model, x = layer(5, 6, 2, bidirectional=True), normal(3, 2, 5, seed=22)
    params = {key: each.detach() for key, each in model.named_parameters()}

    def loss(params, x):
        output, states = func.functional_call(model, params, (x,))
        return output.square().sum() + sum(each.square().sum() for each in states)

    with cstorch.precision(HALF, level=2, rounding=rounding):
        of_params, of_x = func.grad(loss, (0, 1))(params, x)
    leaves, x = {key: each.clone().requires_grad_() for key, each in params.items()}, x.clone().requires_grad_()
    with cstorch.precision(HALF, level=2, rounding=rounding):
        wanted = torch.autograd.grad(loss(leaves, x), [*leaves.values(), x])
    for one, other in zip([*of_params.values(), of_x], wanted, strict=True):
        assert_same_tensors(one, other)


def test_recurrent_layer_within_jacrev_and_a_second_grad_has_the_derivatives_of_autograd():
    torch.manual_seed(23)
    model, x = torch.nn.LSTM(3, 4), normal(3, 2, 3, seed=24)
    weight = model.weight_hh_l0.detach().clone()

    def last(weight):
        return func.functional_call(model, {"weight_hh_l0": weight}, (x,))[0][-1, 0]

    def penalty(weight):
        return func.grad(lambda each: last(each).sum())(weight).square().sum()

    leaf = weight.clone().requires_grad_()
    with cstorch.precision(HALF, level=2):
        rows = last(leaf)
        assert_same_tensors(
            func.jacrev(last)(weight),
            torch.stack([torch.autograd.grad(each, leaf, retain_graph=True)[0] for each in rows]),
        )
        (slope,) = torch.autograd.grad(rows.sum(), leaf, create_graph=True)
        assert_same_tensors(func.grad(penalty)(weight), torch.autograd.grad(slope.square().sum(), leaf)[0])


def test_recurrent_layer_within_vmap_is_refused_and_its_cell_is_not():
    model, cell, x = torch.nn.GRU(3, 4), torch.nn.GRUCell(3, 4), normal(5, 2, 3, seed=25)
    with cstorch.precision(HALF):
        with pytest.raises(NotImplementedError, match=r"^torch\.vmap: got a recurrent layer .* must be a cell"):
            func.vmap(model)(x)
        got = func.vmap(cell)(x)
        assert_same_tensors(got, torch.stack([cell(each) for each in x]))
