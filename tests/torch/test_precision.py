"""The precision context: unmodified models take the exact path, nothing passes by it unseen."""

import contextlib

import pytest
import torch
import torch.nn.functional as F

import golden.torch as cstorch
from golden.torch.guard import interception
from golden.torch.products.operators import registered as operators

from .oracle import assert_codes, assert_same_tensors, normal, product

HALF = "cbfloat16"


A, B, BATCH = normal(6, 20, seed=8), normal(20, 5, seed=9), normal(3, 6, 20, seed=10)
START, VECTOR = normal(6, 5, seed=11), normal(20, seed=12)

CALLS = {
    "@": (lambda: A @ B, lambda: cstorch.matmul(A, B)),
    "torch.matmul": (lambda: torch.matmul(BATCH, B), lambda: cstorch.matmul(BATCH, B)),
    "keywords": (lambda: torch.matmul(input=A, other=B), lambda: cstorch.matmul(A, B)),
    "linalg.matmul": (lambda: torch.linalg.matmul(A, B), lambda: cstorch.matmul(A, B)),
    "Tensor.matmul": (lambda: A.matmul(B), lambda: cstorch.matmul(A, B)),
    "__rmatmul__": (lambda: B.__rmatmul__(A), lambda: cstorch.matmul(A, B)),
    "mm": (lambda: torch.mm(A, B), lambda: cstorch.matmul(A, B)),
    "Tensor.mm": (lambda: A.mm(B), lambda: cstorch.matmul(A, B)),
    "bmm": (lambda: torch.bmm(BATCH, BATCH.mT), lambda: cstorch.bmm(BATCH, BATCH.mT)),
    "mv": (lambda: torch.mv(A, VECTOR), lambda: cstorch.matmul(A, VECTOR)),
    "dot": (lambda: torch.dot(VECTOR, VECTOR), lambda: cstorch.matmul(VECTOR, VECTOR)),
    "vdot": (lambda: torch.vdot(VECTOR, VECTOR), lambda: cstorch.matmul(VECTOR, VECTOR)),
    "inner": (lambda: torch.inner(BATCH, A), lambda: cstorch.matmul(BATCH, A.T)),
    "tensordot": (lambda: torch.tensordot(BATCH, B, dims=1), lambda: cstorch.matmul(BATCH, B)),
    "tensordot of axes": (
        lambda: torch.tensordot(B, BATCH, dims=([0], [2])),
        lambda: cstorch.matmul(B.T, BATCH.reshape(18, 20).T).reshape(5, 3, 6),
    ),
    "einsum": (lambda: torch.einsum("bik,kj->bij", BATCH, B), lambda: cstorch.matmul(BATCH, B)),
    "einsum of lists": (
        lambda: torch.einsum(BATCH, [0, 1, 2], B, [2, 3], [0, 1, 3]),
        lambda: cstorch.matmul(BATCH, B),
    ),
    "linear": (lambda: F.linear(A, B.T, START[0]), lambda: cstorch.linear(A, B.T, START[0])),
    "addmm": (lambda: torch.addmm(START[0], A, B), lambda: cstorch.linear(A, B.T, START[0])),
    "addmv": (lambda: torch.addmv(START[:, 0], A, VECTOR), lambda: torch.addmm(START[:, :1], A, VECTOR[:, None])[:, 0]),
    "addbmm": (
        lambda: torch.addbmm(START, BATCH[:2], torch.stack([B, B])),
        lambda: torch.addmm(START, torch.cat([BATCH[0], BATCH[1]], 1), torch.cat([B, B])),
    ),
    "baddbmm": (
        lambda: torch.baddbmm(START, BATCH, B.expand(3, -1, -1)),
        lambda: torch.stack([torch.addmm(START, matrix, B) for matrix in BATCH]),
    ),
    "sdpa": (
        lambda: F.scaled_dot_product_attention(BATCH, BATCH, BATCH, is_causal=True),
        lambda: cstorch.scaled_dot_product_attention(BATCH, BATCH, BATCH, is_causal=True),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_precision_runs_functions_and_methods_of_pytorch_exactly(name):
    plain, explicit = CALLS[name]
    with cstorch.precision(HALF, level=2):
        got, wanted = plain(), explicit()
    assert_same_tensors(got, wanted)
    with contextlib.suppress(RuntimeError):
        assert got.shape == plain().shape
        assert (got != plain()).any()


def test_addmm_starts_its_reduction_from_the_input():
    with cstorch.precision(HALF, level=2, chunk=8):
        got = torch.addmm(START, A, B)
    assert_codes(got, product(A, B, HALF, 2, 8, START), HALF)


def test_addmm_with_factors_scales_and_adds_in_fp32():
    with cstorch.precision(HALF, level=2):
        got = torch.addmm(START, A, B, beta=0.3, alpha=-2.0)
        start = operators.rounded(START, HALF, torch.float32)
        wanted = operators.rounded(cstorch.matmul(A, B) * -2.0 + start * 0.3, HALF, torch.float32)
        assert_same_tensors(got, wanted)
        nan = torch.full_like(START, torch.nan)
        assert_same_tensors(torch.addmm(nan, A, B, beta=0), cstorch.matmul(A, B))


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_precision_widens_sums_norms_losses_to_fp32(half):
    x = normal(4, 6, seed=13).to(cstorch.set_half_dtype(half))
    labels = torch.tensor([0, 1, 2, 3])
    norm = torch.nn.LayerNorm(6)
    with cstorch.precision(half):
        for got, wanted in (
            (x.exp(), x.float().exp()),
            (torch.log(x.abs()), x.float().abs().log()),
            (x.sum(), x.float().sum()),
            (x.mean(0), x.float().mean(0)),
            (x.norm(), x.float().norm()),
            (torch.linalg.vector_norm(x), torch.linalg.vector_norm(x.float())),
            (x**2, x.float() ** 2),
            (2.0**x, 2.0 ** x.float()),
            (x.softmax(-1), x.float().softmax(-1)),
            (F.softmax(x, -1), x.float().softmax(-1)),
            (F.log_softmax(x, -1), x.float().log_softmax(-1)),
            (F.gelu(x), F.gelu(x.float())),
            (norm(x), norm(x.float())),
            (F.group_norm(x, 2), F.group_norm(x.float(), 2)),
            (F.batch_norm(x, torch.zeros(6), torch.ones(6)), F.batch_norm(x.float(), torch.zeros(6), torch.ones(6))),
            (F.cross_entropy(x, labels), F.cross_entropy(x.float(), labels)),
            (F.mse_loss(x, x * 2), F.mse_loss(x.float(), x.float() * 2)),
        ):
            assert_same_tensors(got, wanted)
        assert (x + x).dtype == x.dtype
        assert (x * 2.0).dtype == x.dtype
        assert F.relu(x).dtype == x.dtype
        assert (x + torch.ones(6)).dtype == torch.float32


def test_precision_leaves_products_of_integers_to_pytorch():
    a = torch.arange(6).reshape(2, 3)
    with cstorch.precision(HALF):
        got = a @ a.T
    assert got.dtype == torch.int64
    assert (got == a @ a.T).all()


REFUSED = {
    "smm": lambda: torch.smm(torch.ones(2, 2), torch.ones(2, 2)),
    "mm": lambda: torch.ops.aten.mm(torch.ones(2, 2), torch.ones(2, 2)),
    "mm.default": lambda: torch.ops.aten.mm.default(torch.ones(2, 2), torch.ones(2, 2)),
    "_sparse_mm": lambda: torch.sparse.mm(torch.ones(2, 2), torch.ones(2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_precision_refuses_products_without_an_exact_path(name):
    with cstorch.precision(HALF):
        with pytest.raises(NotImplementedError, match=rf"{name}: has no exact path; run it inside .*enabled=False"):
            REFUSED[name]()
        with contextlib.suppress(RuntimeError), cstorch.precision(enabled=False):
            REFUSED[name]()


def test_precision_refuses_a_tensor_to_write_into():
    out = torch.empty(6, 5)
    with cstorch.precision(HALF):
        with pytest.raises(NotImplementedError, match=r"^out: got a tensor for mm, must be None"):
            torch.mm(A, B, out=out)
        assert_codes(torch.mm(A, B, out=None), product(A, B, HALF, 1), HALF)


def test_precision_disabled_runs_pytorchs_own_products():
    x, layer = normal(5, 40, seed=14), torch.nn.Linear(40, 3)
    with cstorch.precision(enabled=False):
        assert_same_tensors(layer(x), layer(x))
        plain = layer(x)
    assert_same_tensors(plain, layer(x))
    with cstorch.precision(HALF, level=2):
        exact = layer(x)
        with cstorch.precision(enabled=False):
            assert_same_tensors(layer(x), plain)
            with cstorch.precision(HALF, level=2):
                assert_same_tensors(layer(x), exact)
            assert_same_tensors(layer(x), plain)
        assert_same_tensors(layer(x), exact)
    assert (exact != plain).any()


def test_precision_nested_uses_the_innermost_and_inherits_what_is_not_given():
    x = normal(4, 64, seed=15)
    with cstorch.precision(HALF, level=2, chunk=4):
        with cstorch.precision("bfloat16", chunk=8):
            assert_codes(x @ x.T, product(x, x.T, "bfloat16", 2, 8), "bfloat16")
        with cstorch.precision(level=0):
            assert_codes(x @ x.T, product(x, x.T, HALF, 0), HALF)
        with cstorch.precision(chunk=None):
            assert_codes(x @ x.T, product(x, x.T, HALF, 2, None), HALF)
        assert_codes(x @ x.T, product(x, x.T, HALF, 2, 4), HALF)


def test_precision_is_left_on_an_exception():
    with pytest.raises(ZeroDivisionError), cstorch.precision(HALF, level=2):
        raise ZeroDivisionError
    assert cstorch.get_half_dtype_str() == "float16"
    assert cstorch.current_pol() == (1, 1)
    assert (A @ B).dtype == torch.float32
    assert_same_tensors(A @ B, torch.mm(A, B))


def test_precision_decorates_a_function_and_may_be_entered_again():
    context = cstorch.precision(HALF, level=2)

    @context
    def train(depth):
        if depth:
            return train(depth - 1)
        return A @ B

    wanted = product(A, B, HALF, 2)
    assert_codes(train(2), wanted, HALF)
    with context, context:
        assert_codes(A @ B, wanted, HALF)
    assert_same_tensors(A @ B, torch.mm(A, B))


def test_precision_obeys_pol_around_and_inside():
    layer = torch.nn.Linear(20, 5, bias=False)
    wanted = product(A, layer.weight.detach().T, HALF, 0)
    with cstorch.precision(HALF, level=2):
        assert_codes(cstorch.pol(level=0)(layer)(A), wanted, HALF)
    with cstorch.pol(level=0), cstorch.precision(HALF, level=2):
        assert_codes(layer(A), wanted, HALF)


def test_precision_with_the_float16_proxy_gives_float16_tensors():
    with cstorch.precision(HALF, proxy=torch.float16):
        assert (A @ B).dtype == torch.float16
        assert cstorch.get_half_dtype() == torch.float16
        assert cstorch.get_half_dtype_str() == HALF


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"half": "fp8"}, ValueError, r"^half: got 'fp8', must be 'float16'"),
        ({"half": 3}, TypeError, r"^half: got 3"),
        ({"level": 3}, ValueError, r"^level: got 3"),
        ({"level": True}, TypeError, r"^level: got True"),
        ({"chunk": 0}, ValueError, r"^chunk: got 0, must be at least 1"),
        ({"chunk": 2.0}, TypeError, r"^chunk: got 2.0"),
        ({"enabled": None}, TypeError, r"^enabled: got None, must be True or False"),
        ({"proxy": torch.float16}, ValueError, r"^proxy: got torch.float16 without half"),
    ],
)
def test_precision_of_bad_parameters_names_them(given, error, message):
    with pytest.raises(error, match=message):
        cstorch.precision(**given)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.mm(BATCH, B),
        lambda: torch.mv(A, B),
        lambda: torch.dot(A, A),
        lambda: torch.addmm(START, BATCH, B),
        lambda: torch.bmm(A, B),
        lambda: A @ A,
        lambda: torch.baddbmm(START, A, B),
        lambda: torch.addmm(START, A, A),
        lambda: torch.addmm(BATCH, A, B),
        lambda: torch.tensordot(A, A, dims=1),
    ],
)
def test_precision_shapes_that_pytorch_refuses_raise_here_too(call):
    with pytest.raises((RuntimeError, IndexError)):
        call()
    with cstorch.precision(HALF), pytest.raises(ValueError, match="got"):
        call()


def test_every_function_has_one_treatment():
    tables = [interception.EXACT, interception.WITHOUT_EXACT_PATH, interception.IN_FP32, interception.COMPOSITES]
    listed = [function for table in tables[:3] for function in table]
    assert len(listed) == len(set(listed))
    for name in (*interception._EXACT_BY_NAME, *interception._PRODUCTS_WITHOUT_EXACT_PATH.split()):
        assert list(interception._functions(name)), name
    for name in interception._EXPONENTIALS_SUMS_NORMS_LOSSES.split():
        assert list(interception._functions(name)), name
