"""torch.compile keeps the operators whole, follows the levels, and gives the same bits."""

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.eval_frame import _debug_get_cache_entry_list
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch
from golden.torch.guard import interception, mode

from .oracle import assert_same_tensors, normal

# The compiler makes an instance of torch.autograd.Function, against the advice of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


def explicit(x, weight, bias, kernel):
    hidden = cstorch.linear(x, weight, bias).relu()
    with cstorch.pol(level=0):
        hidden = cstorch.matmul(hidden, weight)
    hidden = cstorch.pol(fwd_level=2)(cstorch.conv1d)(hidden.unsqueeze(1), kernel, padding="same")
    mixed = cstorch.scaled_dot_product_attention(hidden, hidden, hidden, is_causal=True)
    return cstorch.bmm(mixed, hidden.mT).sum() + cstorch.einsum("bij,bij->i", mixed, hidden).sum()


WEIGHT = normal(8, 8, seed=21)


def operands():
    return [normal(*shape, seed=seed, grad=True) for seed, shape in enumerate([(4, 8), (5, 8), (5,), (2, 1, 3)])]


def gradients(function):
    given = operands()
    result = function(*given)
    return [result, *torch.autograd.grad(result, given)]


@pytest.mark.turns
@BACKENDS
def test_compile_of_the_whole_graph_gives_the_same_bits(backend):
    cstorch.set_half_dtype("cbfloat16")
    compiled = torch.compile(explicit, backend=backend, fullgraph=True)
    for level in (1, 2):  # the second compiles again: compiled code depends on the level
        with cstorch.pol(level=level):
            for got, wanted in zip(gradients(compiled), gradients(explicit), strict=True):
                assert_same_tensors(got, wanted)
    cstorch.set_half_dtype("bfloat16")
    for got, wanted in zip(gradients(compiled), gradients(explicit), strict=True):
        assert_same_tensors(got, wanted)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv1d(4, 4, 3, padding=1)
        self.first, self.second = torch.nn.Linear(8, 6), torch.nn.Linear(6, 3)
        self.third = cstorch.pol(level=2)(torch.nn.Linear(6, 3))

    def forward(self, x):
        hidden = F.relu(self.first(self.convolution(x)))
        result = self.second(hidden) + self.third(hidden) + cstorch.pol(level=0)(self.second)(hidden)
        return F.log_softmax(result, -1).square().mean()


@pytest.mark.turns
@BACKENDS
def test_compile_of_an_unmodified_model_in_a_context_gives_the_same_bits(backend):
    torch.manual_seed(0)
    model, x = Model(), normal(2, 4, 8, seed=9)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    parameters = list(model.parameters())
    plain = compiled(x)
    for half, level in (("cbfloat16", 1), ("bfloat16", 2)):
        with cstorch.precision(half, level):
            got, wanted = compiled(x), model(x)
        assert_same_tensors(got, wanted)
        assert (got != plain).any()
        for one, other in zip(
            torch.autograd.grad(got, parameters), torch.autograd.grad(wanted, parameters), strict=True
        ):
            assert_same_tensors(one, other)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler itself
def test_compile_of_attention_in_a_context_gives_the_same_bits():
    # Not one graph: the compiler leaves Tensor.unflatten to Python while a mode is on.
    torch.manual_seed(0)
    layer, x = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), normal(2, 4, 8, seed=10)
    compiled = torch.compile(layer, backend="eager")
    with cstorch.precision("cbfloat16"):
        assert_same_tensors(compiled(x), layer(x))


class Checkpointed(torch.nn.Module):
    """Products that are computed again in the backward pass, at the level in force and at other levels."""

    def __init__(self, reentrant, has_context):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.reentrant, self.has_context = reentrant, has_context

    def body(self, x):
        hidden = self.first(x).relu()
        if not self.has_context:
            return self.second(hidden)
        # The compiler leaves such a function to Python, and compiles its parts.
        with cstorch.precision(enabled=False):
            hidden = hidden.float() @ WEIGHT
        with cstorch.pol(fwd_level=2, bwd_level=0):
            return self.second(hidden)

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=self.reentrant).float().square().sum()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler itself
@BACKENDS
@pytest.mark.parametrize("has_context", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_compile_of_a_checkpoint_gives_the_same_bits(reentrant, has_context, backend):
    torch.manual_seed(0)
    model, x = Checkpointed(reentrant, has_context), normal(64, 8, seed=25, grad=True)
    compiled = torch.compile(model, backend=backend, fullgraph=not has_context)
    plain = {}
    for level in (0, 1, 2):
        results = []
        for function in (compiled, model):
            model.zero_grad()
            x.grad = None
            with cstorch.precision("cbfloat16", level, chunk=4):
                result = function(x)
            result.backward()  # a reentrant checkpoint refuses torch.autograd.grad
            results.append((result.detach(), x.grad, *(each.grad for each in model.parameters())))
        for got, wanted in zip(*results, strict=True):
            assert_same_tensors(got, wanted)
        plain[level] = results[1]
    for level in (0, 2):
        assert any((one != other).any() for one, other in zip(plain[level], plain[1], strict=True))


def test_compile_of_a_checkpoint_hides_no_product_without_an_exact_path():
    def body(x):
        return checkpoint(spectrum, x, use_reentrant=False)

    with (
        pytest.raises(Exception, match=r"_fft_r2c.*: has no exact path"),
        cstorch.precision("cbfloat16"),
    ):
        torch.compile(body, backend="aot_eager")(normal(8, 8, seed=22, grad=True))


def test_operators_pass_pytorchs_own_checks():
    a, b, ours = normal(2, 3, 4), normal(4, 5), torch.ops.cbfloat
    given = ["operand=cbfloat16 inner=cbfloat16 chunk=32 outer=float32 out=cbfloat16", torch.float32]
    for operator, arguments in (
        (ours.matrix_product, (a, b, None, *given)),
        (ours.matrix_product, (a, b.expand(2, 4, 5), normal(5), *given)),
        (ours.convolution, (a, normal(2, 3, 2), normal(2), [1], [1], [1, 0], 1, *given)),
        (ours.convolution_transposed, (a, normal(3, 2, 2), normal(2), [5], [1], [1], [0, 0], 1, *given)),
        (ours.convolution_of_kernels, (normal(2, 3, 3), normal(2, 3, 4), [2], [1], [1], [0, 0], 3, *given)),
        (ours.grouped_product, (b, normal(2, 5, 3), torch.tensor([1, 3]), *given)),
        (ours.grouped_product, (a, b, torch.tensor([0, 5]), *given)),
        (ours.grouped_product, (b, normal(5, 3), torch.tensor([2, 2, 4]), *given)),
        (ours.rounded, (a, "bfloat16", torch.bfloat16)),
        (ours.rounded_to_blocks, (a, "element=nvfp4 block=16 scale=nvidia_nvfp4", -2)),
        (ours.softmax16, (a, "cbfloat16", torch.float32)),
    ):
        assert set(torch.library.opcheck(operator.default, arguments).values()) == {"SUCCESS"}


def test_operators_have_shapes_without_values():
    with torch._subclasses.FakeTensorMode():
        x = torch.empty(7, 2, 3, 4)
        assert cstorch.matmul(x, torch.empty(2, 4, 5)).shape == (7, 2, 3, 5)
        assert cstorch.scaled_dot_product_attention(x, x, x).shape == x.shape
    assert cstorch.linear(torch.empty(2, 3, device="meta"), torch.empty(4, 3, device="meta")).shape == (2, 4)


def spectrum(x):
    return torch.fft.rfft(x @ WEIGHT).abs().sum()


def determinant(x):  # Dynamo keeps it whole, and its operators multiply
    return torch.logdet(x @ WEIGHT @ x.mT)


class ProductInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return torch.fft.rfft(gradient, n=14).abs()


HIDDEN = {
    "forward": (spectrum, "_fft_r2c"),
    "solver": (determinant, "_linalg_slogdet"),
    "backward": (lambda x: ProductInBackward.apply(x @ WEIGHT).sum(), "_fft_r2c"),
}


@BACKENDS
@pytest.mark.parametrize("name", HIDDEN)
def test_compile_in_a_precision_of_a_product_without_an_exact_path_is_an_error(backend, name):
    function, operator = HIDDEN[name]
    compiled, x = torch.compile(function, backend=backend), normal(8, 8, seed=22, grad=True)
    with pytest.raises(Exception, match=rf"{operator}.*: has no exact path"), cstorch.precision("cbfloat16"):
        compiled(x).backward()
    compiled(x).backward()  # fp32 was meant here


@BACKENDS
def test_compile_of_a_context_inside_is_looked_through_too(backend):
    def inside(x):
        with cstorch.precision("cbfloat16"):
            return spectrum(x)

    with pytest.raises(Exception, match=r"_fft_r2c: has no exact path.* compiled"):
        torch.compile(inside, backend=backend)(normal(8, 8, seed=22))


@BACKENDS
def test_compile_of_a_disabled_block_leaves_its_products_to_pytorch(backend):
    def partly(x):
        with cstorch.precision(enabled=False):
            hidden = x @ WEIGHT
        return (hidden @ WEIGHT).sum()

    x = normal(8, 8, seed=23, grad=True)
    results = []
    for function in (torch.compile(partly, backend=backend), partly):
        with cstorch.precision("cbfloat16"):
            result = function(x)
        results.append((result, *torch.autograd.grad(result, x)))
    for got, wanted in zip(*results, strict=True):
        assert_same_tensors(got, wanted)


@BACKENDS
def test_compile_where_python_must_help_is_watched_as_well(backend):
    def broken(x):
        with cstorch.precision("cbfloat16"):
            hidden = x @ WEIGHT
            return torch.cov(hidden) if hidden.sum().item() != 0 else hidden

    with pytest.raises(NotImplementedError, match="aten::mm: has no exact path"):
        torch.compile(broken, backend=backend)(normal(8, 8, seed=24))
    assert not cstorch.mixed_precision()
    torch.fft.rfft(WEIGHT)


def test_compile_with_policy_count_lets_the_product_pass_and_counts_it():
    compiled = torch.compile(spectrum, backend="aot_eager")
    with cstorch.precision("cbfloat16", unseen="count") as context:
        compiled(normal(8, 8, seed=22))
    assert {name for name, _ in context.unseen_products} == {"aten::_fft_r2c"}


@pytest.mark.parametrize("axis", [0, -1])
def test_compile_of_blocks_and_their_gradients_gives_the_same_bits(axis):
    def run(x):
        return cstorch.mx.fake_quantize(x, "float4_e2m1fn", gradient_element="float8_e5m2", axis=axis, block=8)

    x, gradient = normal(12, 20, seed=9, grad=True), normal(12, 20, seed=10)
    found = []
    for function in (run, torch.compile(run, backend="aot_eager", fullgraph=True)):
        x.grad = None
        result = function(x)
        result.backward(gradient)
        found.append((result, x.grad))
    for one, other in zip(*found, strict=True):
        assert_same_tensors(one, other)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_questions_of_the_mode_are_never_compiled_on_their_own():
    # Compiled, is_leaf took Tensor.unflatten for one operator: the compiler has other types for some functions.
    layer, x = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), normal(2, 4, 8, seed=10)
    interception._leaves.clear()
    with cstorch.precision("cbfloat16"):
        torch.compile(layer, backend="eager")(x)
    for question in (interception.is_leaf, interception._is_passed, interception.kind_of, mode._is_bare, mode._handle):
        assert not _debug_get_cache_entry_list(question.__code__)
    assert not interception.is_leaf(torch.Tensor.unflatten)
