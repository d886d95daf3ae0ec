"""The guard beneath the interception: no product of PyTorch passes unseen, wherever it comes from."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import golden.torch as cstorch
from golden.torch.guard import operator_kinds

from .oracle import assert_same_tensors, normal

X, W = normal(8, 8, seed=1), normal(8, 8, seed=2)
ROOT = Path(__file__).resolve().parents[2]
NO_PATH = "has no exact path; run it inside golden.torch.precision.enabled=False."


class Product(torch.autograd.Function):
    """A product by operators of PyTorch, whose backward pass is another one."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        (weight,) = ctx.saved_tensors
        return gradient @ weight.T, None


BENEATH = {  # no function of PyTorch that the interception knows
    "_fft_r2c": lambda: torch.fft.rfft(X),
    "_linalg_solve_ex": lambda: torch.linalg.solve(X, W),
    "linalg_qr": lambda: torch.linalg.qr(X),
    "mm": lambda: torch.cov(X),
    "addr": lambda: torch.addr(X, X[0], X[1]),
    "_embedding_bag_forward_only": lambda: F.embedding_bag(
        torch.tensor([[0, 1]]), X, mode="sum", per_sample_weights=torch.ones(1, 2)
    ),
}


@pytest.mark.parametrize("name", BENEATH)
def test_guard_product_beneath_a_function_without_an_exact_path_is_refused(name):
    with cstorch.precision("cbfloat16"), pytest.raises(NotImplementedError, match=rf"^aten::{name}: {NO_PATH}"):
        BENEATH[name]()
    with torch.inference_mode(), cstorch.precision("cbfloat16"), pytest.raises(NotImplementedError, match=NO_PATH):
        BENEATH[name]()
    with cstorch.precision("cbfloat16"), cstorch.precision(enabled=False):
        BENEATH[name]()


def product(x: torch.Tensor, y: torch.Tensor):
    return torch.mm(x, y)


class Spectrum(torch.nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x).abs()


@pytest.mark.filterwarnings("ignore:.torch.jit.*is deprecated")
@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: torch.jit.script(product), "mm"),
        (lambda: torch.jit.script(Spectrum()), "_fft_r2c"),
        (lambda: torch.jit.trace(product, (X, W)), "mm"),
    ],
)
def test_guard_product_within_torchscript_is_refused_with_its_name(made, name):
    scripted, given = made(), (X,) if name == "_fft_r2c" else (X, W)
    with cstorch.precision("cbfloat16"), pytest.raises(NotImplementedError, match=rf"^aten::{name}: {NO_PATH}") as told:
        scripted(*given)
    assert "TorchScript interpreter" in str(told.value.__cause__)


@pytest.mark.filterwarnings("ignore:.torch.jit.*is deprecated")
def test_guard_leaves_another_error_of_torchscript_as_it_is():
    scripted = torch.jit.script(product)
    with cstorch.precision("cbfloat16"):
        with pytest.raises(NotImplementedError):
            scripted(X, W)
        with cstorch.precision(enabled=False), pytest.raises(RuntimeError, match="TorchScript interpreter") as told:
            scripted(X, W[:3])
    assert told.type is RuntimeError


class Marked(torch.Tensor):
    pass


@pytest.mark.parametrize("given", [[[1.0, 2.0]], X, torch.ones(2, requires_grad=True), torch.ones(2).half()])
def test_tensor_of_a_subclass_is_made_within_a_precision_as_outside(given):
    wanted = Marked(given)
    with cstorch.precision("cbfloat16"):
        got = Marked(given)
        if got.ndim == 2:
            assert type(got @ got.T) is Marked
    assert (type(got), got.requires_grad, got.is_leaf) == (Marked, wanted.requires_grad, wanted.is_leaf)
    assert_same_tensors(got.as_subclass(torch.Tensor), wanted.as_subclass(torch.Tensor))
    assert Marked(3).shape == (3,)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.complex128])
def test_guard_product_of_a_dtype_that_the_kernels_do_not_take_is_refused(dtype):
    name = str(dtype).removeprefix("torch.")
    with cstorch.precision("cbfloat16"):
        with pytest.raises(NotImplementedError, match=rf"float32. It is a product of {name} in Linear"):
            torch.nn.Linear(8, 8, dtype=dtype)(X.to(dtype))
        with pytest.raises(NotImplementedError, match=r"product of float32 and float64|product of float32 and complex"):
            torch.mm(X, W.to(dtype))


def test_guard_integers_among_the_arguments_switch_nothing_off():
    packed = torch.nn.utils.rnn.pack_sequence([normal(3, 4, seed=3), normal(2, 4, seed=4)])
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        layer = kind(4, 4)
        with cstorch.precision("cbfloat16"):
            found = cstorch.audit(layer, packed, show=False)
        assert found.exact + found.refused
        assert not found.unseen


def test_guard_products_of_integers_are_allowed():
    whole = torch.arange(4).reshape(2, 2)
    with cstorch.precision("cbfloat16"):
        assert_same_tensors(torch.ops.aten.mm(whole, whole), whole @ whole)


@pytest.mark.parametrize("inside", [True, False])
def test_guard_product_in_the_backward_pass_of_a_function_is_exact_inside_and_refused_outside(inside):
    x = X.clone().requires_grad_()
    with cstorch.precision("cbfloat16", level=2):
        result = Product.apply(x, W).sum()
        wanted = cstorch.matmul(torch.ones_like(X), W.T)
        if inside:
            result.backward()
            assert_same_tensors(x.grad, wanted)
    if not inside:
        with pytest.raises(NotImplementedError, match=rf"^aten::mm: {NO_PATH}.* in the backward pass, in Product"):
            result.backward()
        with pytest.raises(NotImplementedError, match=NO_PATH):
            torch.autograd.grad(Product.apply(x * 1.0, W).sum() + result, x)


def test_guard_hook_that_multiplies_outside_of_the_context_is_refused():
    x = X.clone().requires_grad_()
    with cstorch.precision("cbfloat16"):
        hidden = x @ W
        hidden.register_hook(lambda gradient: gradient @ W)
        loss = hidden.sum()
    with pytest.raises(NotImplementedError, match=NO_PATH):
        loss.backward()


def test_guard_leaves_forward_passes_outside_of_a_precision_alone():
    x = X.clone().requires_grad_()
    plain = Product.apply(x, W).sum()
    (wanted,) = torch.autograd.grad(plain, x, retain_graph=True)
    with cstorch.precision("cbfloat16"):
        with cstorch.precision(enabled=False):
            disabled = Product.apply(x, W).sum()
        (inside,) = torch.autograd.grad((x.sigmoid() * 0).sum() + disabled, x, retain_graph=True)
    for result in (plain, disabled):
        result.backward()
        assert_same_tensors(x.grad, wanted)
        x.grad = None
    assert inside.shape == wanted.shape
    F.linear(x, W).square().sum().backward()


def test_guard_context_in_a_backward_pass_decides_before_the_node():
    class Disabled(Product):
        @staticmethod
        def backward(ctx, gradient):
            with cstorch.precision(enabled=False):
                return Product.backward(ctx, gradient)

    x = X.clone().requires_grad_()
    with cstorch.precision("cbfloat16"):
        loss = Disabled.apply(x, W).sum()
    loss.backward()
    assert_same_tensors(x.grad, torch.ones_like(X) @ W.T)


def test_guard_policy_count_lets_pytorch_compute_and_counts_by_module():
    class Spectrum(torch.nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x, n=14).abs()

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), Spectrum())
    with cstorch.precision("cbfloat16", unseen="count") as context, warnings.catch_warnings():
        warnings.simplefilter("error")
        got = model(model(X))
    assert got.shape == (8, 8)
    assert dict(context.unseen_products) == {("aten::_fft_r2c", "in Sequential.1 (Spectrum)"): 2}


def test_guard_policy_warn_tells_each_place_once():
    layer = torch.nn.Linear(8, 8, dtype=torch.float64)
    train = cstorch.precision(unseen="warn")(lambda: [layer(X.double()) for _ in range(3)])
    with pytest.warns(UserWarning, match=rf"addmm: {NO_PATH}.*float64 in Linear") as told:
        train()
    assert len(told) == 1


def test_guard_policy_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match=r"^unseen: got 'ignore', must be 'error', 'warn' or 'count'"):
        cstorch.precision(unseen="ignore")


def test_guard_of_a_second_thread_is_its_own():
    import threading

    caught = []

    def run():
        try:
            torch.fft.rfft(X)  # no precision here
            with cstorch.precision("cbfloat16"):
                torch.fft.rfft(X)
        except NotImplementedError as error:
            caught.append(error)

    with cstorch.precision("cbfloat16"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(caught) == 1


WALK = """
import importlib, pkgutil, warnings
import torch
from golden.torch.guard import operator_kinds

def is_public(name):
    return not any(part.startswith("_") for part in name.split("."))

def walk(module):
    for _, name, _ in pkgutil.iter_modules(getattr(module, "__path__", ()), module.__name__ + "."):
        if is_public(name):
            try:
                walk(importlib.import_module(name))
            except ModuleNotFoundError as error:  # an optional one, such as tensorboard
                assert not error.name.startswith("torch"), error

warnings.simplefilter("ignore")
walk(torch)
names = set(torch._C._dispatch_get_all_op_names())
assert {"torch_attn::_varlen_attn", "pippy::_pipe_split"} <= names
assert all(operator_kinds.is_of_pytorch(each) for each in names if not each.startswith(("cbfloat::", "_test::")))
print("unclassified:", operator_kinds.unclassified_operators())
"""


def test_operators_of_the_installed_pytorch_are_all_classified():
    # In a new process: operators of libraries that other tests have imported are registered in this one.
    found = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith("unclassified: []\n")


def message_of(call):
    with cstorch.precision("cbfloat16"), pytest.raises(NotImplementedError) as told:
        call()
    return str(told.value)


IN_PYTORCH = """
import torch
def {name}_implementation(x: torch.Tensor) -> torch.Tensor:
    return x * 2
if {custom}:
    torch.library.custom_op("{space}::{name}", {name}_implementation, mutates_args=())
else:
    library = torch.library.Library("{space}", "FRAGMENT")
    library.define("{name}(Tensor x) -> Tensor")
    library.impl("{name}", {name}_implementation, "CPU")
"""


@pytest.mark.parametrize("custom", [True, False])
@pytest.mark.parametrize("space", ["torch_later", "torch_nn"])
def test_operator_that_pytorch_registers_later_is_a_product_and_cannot_be_declared(space, custom):
    name = f"twice_{custom}".lower()
    code = compile(IN_PYTORCH.format(space=space, name=name, custom=custom), torch.nn.__file__, "exec")
    scope = {"__name__": "torch.later"}
    exec(code, scope)
    message = message_of(lambda: getattr(getattr(torch.ops, space), name)(X))
    assert message.startswith(
        f"{space}::{name}: has no exact path; run it inside golden.torch.precision(enabled=False)"
    )
    assert "declare_operator" not in message
    with pytest.raises(
        ValueError,
        match=rf"^name: got '{space}::{name}', which is known already; must be an operator of another library",
    ):
        cstorch.declare_operator(f"{space}::{name}", product=False)


def test_attention_of_packed_sequences_is_refused_as_a_product_of_pytorch():
    from torch.nn.attention.varlen import varlen_attn

    q, ends = normal(6, 2, 8, seed=5), torch.tensor([0, 2, 6], dtype=torch.int32)
    message = message_of(lambda: varlen_attn(q, q, q, ends, ends, 4, 4))
    assert message.startswith("torch_attn::_varlen_attn: has no exact path")
    assert "declare_operator" not in message


def test_operator_of_another_library_is_unclassified_until_it_is_declared(foreign):
    assert "trial::twice" in operator_kinds.unclassified_operators()
    cstorch.declare_operator("trial::twice", product=False)
    assert "trial::twice" not in operator_kinds.unclassified_operators()


def test_operators_that_the_table_forgets_are_told(monkeypatch):
    monkeypatch.setattr(operator_kinds, "_kinds", {})
    monkeypatch.setattr(operator_kinds, "_OTHERS", operator_kinds._OTHERS - {"aten::embedding"})
    monkeypatch.setattr(operator_kinds, "_PRODUCTS", operator_kinds._PRODUCTS - {"aten::mm"})
    assert {"aten::embedding", "aten::mm"} <= set(operator_kinds.unclassified_operators())


def test_operators_are_not_both_products_and_others():
    assert not operator_kinds._PRODUCTS & operator_kinds._OTHERS


@pytest.fixture
def foreign():
    with torch.library._scoped_library("trial", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        yield torch.ops.trial.twice
        operator_kinds._declared.clear()
        operator_kinds._kinds.clear()


def test_operator_of_another_library_is_refused_until_it_is_declared(foreign):
    with cstorch.precision("cbfloat16"):
        with pytest.raises(
            NotImplementedError, match=r"^trial::twice: unknown.*torch.profiler lists.*product=True"
        ) as told:
            foreign(X)
        assert "product=False only if it sums no products" in str(told.value)
        cstorch.declare_operator("trial::twice", product=False)
        assert_same_tensors(foreign(X), X * 2)
        cstorch.declare_operator("trial::twice", product=True)
        with pytest.raises(NotImplementedError, match=rf"^trial::twice: {NO_PATH}"):
            foreign(X)
        assert foreign(torch.ones(2, dtype=torch.int64)).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"name": 3, "product": True}, TypeError, r"^name: got 3"),
        ({"name": "twice", "product": True}, ValueError, r"^name: got 'twice', must be library::operator"),
        (
            {"name": "aten::mm", "product": False},
            ValueError,
            r"^name: got 'aten::mm', which is known already; must be an operator of another",
        ),
        ({"name": "trial::twice", "product": 1}, TypeError, r"^product: got 1, must be True or False"),
    ],
)
def test_declare_operator_of_bad_arguments_names_them(given, error, message):
    with pytest.raises(error, match=message):
        cstorch.declare_operator(**given)
