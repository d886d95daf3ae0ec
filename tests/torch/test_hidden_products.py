"""Places where products once ran in fp32 unseen: bodies that run later, hooks, tensors of other classes, threads.

In cbfloat16 the sum 0x5200 * 0x3E00 + 0x3E00 * 0x3E00, which is 1024 + 1, is 0x5200; in fp32 it is 1025.
"""

import asyncio
import threading

import pytest
import torch
from torch import nn

import golden
import golden.torch as cstorch
from golden.torch import amp

from .oracle import assert_same_tensors, normal

ROW = torch.from_numpy(golden.decode([[0x5200, 0x3E00]], "cbfloat16"))
ONES = torch.from_numpy(golden.decode([[0x3E00], [0x3E00]], "cbfloat16"))
SQUARE = normal(8, 8, seed=1)
NO_PATH = "has no exact path"


def is_exact(result):
    assert result.item() in (1024.0, 1025.0)
    return result.item() == 1024.0


def in_thread(function):
    """Run a function in a new thread, and raise its error here."""
    caught = []

    def run():
        try:
            function()
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if caught:
        raise caught[0]


@pytest.mark.parametrize("context", [cstorch.precision, amp.autocast])
def test_precision_of_a_generator_is_in_force_inside_and_not_between(context):
    @context("cbfloat16")
    def products():
        yield ROW @ ONES
        yield ROW @ ONES

    for result in products():
        assert is_exact(result)
        assert not cstorch.mixed_precision()


def test_precision_of_a_generator_in_a_generator_is_the_inner_one():
    @cstorch.precision("cbfloat16")
    @cstorch.precision(enabled=False)
    def off():
        yield ROW @ ONES

    assert not is_exact(next(off()))


def test_precision_of_a_coroutine_is_in_force_inside():
    @cstorch.precision("cbfloat16")
    async def product():
        await asyncio.sleep(0)
        return ROW @ ONES

    async def both():
        return await asyncio.gather(product(), plain())

    async def plain():
        return ROW @ ONES

    assert [is_exact(each) for each in asyncio.run(both())] == [True, False]


def test_precision_of_a_static_method_is_in_force_inside():
    class Holder:
        @cstorch.precision("cbfloat16")
        @staticmethod
        def product():
            return ROW @ ONES

    assert is_exact(Holder.product())


async def later():
    yield ROW @ ONES


@pytest.mark.parametrize(("given", "message"), [(later, "got the async generator later"), (3, "got 3, must be callab")])
def test_precision_of_what_it_cannot_wrap_is_an_error(given, message):
    with pytest.raises(TypeError, match=rf"^precision: {message}"):
        cstorch.precision("cbfloat16")(given)


def test_traced_step_that_is_a_generator_is_an_error():
    def step():
        yield ROW @ ONES

    for given in (step, later):
        with pytest.raises(TypeError, match=r"^step_fn: got .* whose body would run outside of the step"):
            cstorch.trace(given)


class Model(nn.Module):
    """A model with other ways in than a call: a generator, a coroutine, a static method, a class method."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(ONES.clone())

    def forward(self, x):
        return x @ self.weight

    def stream(self, x):
        yield x @ self.weight

    def lazily(self, x):
        return (each @ self.weight for each in [x])

    async def answer(self, x):
        return x @ self.weight

    async def answers(self, x):
        yield x @ self.weight

    @staticmethod
    def static(x):
        return x @ ONES

    @classmethod
    def of_class(cls, x):
        return x @ ONES


WAYS = {
    "generator": lambda model: next(model.stream(ROW)),
    "generator expression": lambda model: next(model.lazily(ROW)),
    "coroutine": lambda model: asyncio.run(model.answer(ROW)),
    "static method": lambda model: model.static(ROW),
    "class method": lambda model: model.of_class(ROW),
}


@pytest.mark.parametrize("way", WAYS)
def test_initialised_model_is_exact_whichever_way_its_body_runs(way):
    assert not is_exact(WAYS[way](Model()))
    assert is_exact(WAYS[way](amp.initialize(Model(), half="cbfloat16")))
    assert not cstorch.mixed_precision()


def test_initialised_model_refuses_an_async_generator():
    with pytest.raises(TypeError, match=r"^answers: got an async generator"):
        amp.initialize(Model(), half="cbfloat16").answers(ROW)


HOOKS = {
    "forward": lambda model: model.register_forward_hook(lambda *_: ROW @ ONES),
    "before": lambda model: model.register_forward_pre_hook(lambda *_: (ROW * (ROW @ ONES - 1023),)),
    "of all modules": lambda _: nn.modules.module.register_module_forward_hook(lambda *_: ROW @ ONES),
}


@pytest.mark.parametrize("name", HOOKS)
def test_initialised_model_runs_its_own_hooks_exactly(name):
    model = amp.initialize(Model(), half="cbfloat16")
    hook = HOOKS[name](model)
    try:
        assert is_exact(model(ROW))
    finally:
        hook.remove()


def test_initialised_model_refuses_a_product_in_its_own_backward_hook():
    model = amp.initialize(Model(), half="cbfloat16")
    model.register_full_backward_hook(lambda _, of_inputs, __: (of_inputs[0] @ ONES @ ONES.T,))
    loss = model(ROW.clone().requires_grad_()).sum()
    with pytest.raises(NotImplementedError, match=NO_PATH):
        loss.backward()


COMPILED = {
    "function": lambda model: torch.compile(model, backend="eager"),
    "method": lambda model: model.compile(backend="eager") or model,
    "exported": lambda model: torch.export.export(model, (ROW,)).module(),
}


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
def test_initialised_model_is_exact_when_a_new_thread_compiles_it(name):
    torch._dynamo.reset()
    found = []
    in_thread(lambda: found.append(COMPILED[name](amp.initialize(Model(), half="cbfloat16"))(ROW)))
    assert is_exact(found[0])


class LowRank(torch.Tensor):
    """A product of two tensors that is computed when an operator needs it."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, (a.shape[0], b.shape[1]), dtype=a.dtype)

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(each.a @ each.b if isinstance(each, cls) else each for each in args), **kwargs or {})


@pytest.mark.parametrize("call", [lambda x: x + 1, lambda x: x.flatten(), lambda x: SQUARE @ x])
def test_guard_sees_products_within_a_class_of_tensors(call):
    given = LowRank(SQUARE, SQUARE)
    with cstorch.precision("cbfloat16"), pytest.raises(NotImplementedError, match=NO_PATH):
        call(given)
    with cstorch.precision("cbfloat16"), cstorch.precision(enabled=False):
        assert_same_tensors(call(given), call(SQUARE @ SQUARE))


class Wrapped(LowRank):
    """A tensor within another."""

    @staticmethod
    def __new__(cls, a):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

    def __init__(self, a):
        self.a, self.b = a, torch.eye(8)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(each.a if isinstance(each, cls) else each for each in args), **kwargs or {})


def test_product_of_a_class_of_tensors_that_unwraps_itself_is_exact_and_counted_once():
    with cstorch.precision("cbfloat16"):
        assert_same_tensors(SQUARE @ Wrapped(SQUARE), SQUARE @ SQUARE)
        found = cstorch.audit(lambda: SQUARE @ Wrapped(SQUARE), show=False)
    assert (found.exact, found.unseen, found.refused) == (1, 0, 0)


class ProductInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ SQUARE


def test_backward_pass_in_another_thread_refuses_a_product_beside_exact_ones():
    x = SQUARE.clone().requires_grad_()
    with cstorch.precision("cbfloat16"):
        result = ProductInBackward.apply(x @ SQUARE)
    edge = torch.autograd.graph.get_gradient_edge(result)
    for starts, gradients in (([result.sum()], None), ([edge], [SQUARE])):
        with pytest.raises(NotImplementedError, match=rf"^aten::mm: {NO_PATH}"):
            in_thread(lambda given=(starts, gradients): torch.autograd.backward(*given, retain_graph=True))
    in_thread(ProductInBackward.apply(x).sum().backward)  # fp32 was meant here


def test_backward_pass_by_the_function_beneath_is_watched():
    x = SQUARE.clone().requires_grad_()
    with cstorch.precision("cbfloat16"):
        loss = ProductInBackward.apply(x).sum()
    with pytest.raises(NotImplementedError, match=rf"^aten::mm: {NO_PATH}"):
        torch.autograd.graph._engine_run_backward(
            (loss,), (torch.ones(()),), False, False, (), allow_unreachable=True, accumulate_grad=True
        )


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_torchscript_that_was_optimised_for_inference_is_refused():
    network, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval(), normal(1, 3, 8, 8, seed=2)
    script = torch.jit.optimize_for_inference(torch.jit.script(network))
    script(x)
    told = pytest.raises(NotImplementedError, match=r"^aten::to_mkldnn: has no exact path")
    with cstorch.precision("cbfloat16"), torch.no_grad(), told:
        script(x)


@pytest.mark.filterwarnings("ignore:.torch.jit", "ignore::torch.jit.TracerWarning")
def test_torchscript_trace_of_an_exact_product_multiplies_what_it_is_given():
    # It once returned memory that nobody had written.
    with cstorch.precision("cbfloat16"):
        traced = torch.jit.trace(lambda x: x @ ONES, (ROW,), check_trace=False)
        assert_same_tensors(traced(ROW * 2), ROW * 2 @ ONES)
    assert_same_tensors(traced(ROW), torch.tensor([[1024.0]]))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("product", [torch.matmul, torch.bmm, lambda x, y: nn.functional.linear(x, SQUARE)])
def test_product_of_a_nested_tensor_names_the_argument(product):
    nested = torch.nested.nested_tensor([SQUARE, SQUARE[:3]])
    with (
        cstorch.precision("cbfloat16"),
        pytest.raises((TypeError, NotImplementedError), match=r"^(x|input): got a nested tensor, must be dense"),
    ):
        product(nested, nested)
