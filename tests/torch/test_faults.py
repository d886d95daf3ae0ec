"""Faults in the layer's source that other tests once passed: each is seen here, and the source as it is passes."""

import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import golden
import golden.torch as cstorch
from golden.torch import MixedPrecision
from golden.torch.products.functions import gradients
from golden.torch.settings import half
from golden.torch.settings.plan import plan_of
from golden.torch.settings.scopes import NEAREST_EVEN
from lab.mutants.table import seen_by
from tools.paths import ROOT

from .oracle import array, assert_codes, codes, normal, product

FAULTS = seen_by(__file__)


def changed(fault):
    """Return a new module, compiled from the source of another with a fault in it."""
    name, path = fault.file.removesuffix(".py").replace("/", "."), ROOT / fault.file
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(fault.applied(path.read_text(encoding="utf-8")), path, "exec"), vars(module))
    return module


def holds(check, *given):
    try:
        check(*given)
    except AssertionError:
        return False
    return True


def levels_of_second_derivatives(exact_product):
    x, weight, direction = normal(3, 40, seed=1), normal(40, 5, seed=2), normal(3, 40, seed=3)
    upstream = normal(3, 5, seed=4, grad=True)
    x.requires_grad_()
    plan = plan_of(half.half_named("cbfloat16"), 0, 2, 32, NEAREST_EVEN)
    result = exact_product(x, weight, None, plan, torch.float32)
    (first,) = torch.autograd.grad(result, x, upstream, create_graph=True)
    (second,) = torch.autograd.grad(first, upstream, direction)
    wanted = product(direction, weight, "cbfloat16", 2)
    assert (wanted != product(direction, weight, "cbfloat16", 0)).any()
    assert_codes(second, wanted, "cbfloat16")


def dtype_of_an_fp32_operands_gradient(exact_product):
    # 60000 * 4 is beyond float16, the proxy, but not beyond the fp32 operand's gradient: 0x61AA in cbfloat16.
    x, weight = torch.ones(1, 1, requires_grad=True), torch.full((1, 1), 4.0, requires_grad=True)
    plan = plan_of(half.half_named("cbfloat16", torch.float16), 1, 1, 32, NEAREST_EVEN)
    result = exact_product(x, weight, None, plan, torch.float16)
    result.backward(torch.full((1, 1), 60000.0, dtype=torch.float16))
    assert codes(x.grad, "cbfloat16").tolist() == [[0x61AA]]
    assert x.grad.tolist() == [[240128.0]]


def sum_of_softmax_gradients(softmax_in_half):
    # With weights 0.25 and gradients 1 + 2^-12, -1, 0, 0 the products sum to 2^-14, or to 0 if they are rounded before.
    scores = torch.zeros(1, 4, requires_grad=True)
    result = softmax_in_half(scores, half.half_named("cbfloat16"))
    result.backward(torch.tensor([[1 + 2.0**-12, -1.0, 0.0, 0.0]]))
    assert codes(result, "cbfloat16").tolist() == [[0x3A00] * 4]
    assert codes(scores.grad, "cbfloat16")[0, 2:].tolist() == [0x9E00, 0x9E00]  # -2^-16


@pytest.mark.parametrize(
    ("check", "function"),
    [
        (levels_of_second_derivatives, "exact_product"),
        (dtype_of_an_fp32_operands_gradient, "exact_product"),
        (sum_of_softmax_gradients, "softmax_in_half"),
    ],
)
def test_gradient_of_the_source_passes_and_of_a_fault_does_not(check, function):
    check(getattr(gradients, function))
    (fault,) = [fault for fault in FAULTS.values() if fault.by == check.__name__]
    assert not holds(check, getattr(changed(fault), function))


def precision_of_an_evaluation(trainer_class):
    torch.manual_seed(5)
    model, inputs = nn.Linear(50, 3, bias=False), normal(4, 50, seed=6)
    precision = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", precision_opt_level=2)
    trainer = trainer_class(model, torch.optim.SGD(model.parameters(), lr=0.1), precision=precision, progress=False)
    mean = trainer.evaluate([(inputs, None)], lambda outputs, _: outputs)
    wanted = product(inputs, model.weight.detach().T, "cbfloat16", 2)
    assert mean == golden.decode(wanted, "cbfloat16").astype(np.float64).mean()
    assert mean != array(model(inputs)).astype(np.float64).mean()


def test_trainer_evaluate_runs_in_the_precision(monkeypatch):
    precision_of_an_evaluation(cstorch.Trainer)
    fault = changed(FAULTS["evaluation_without_its_precision"])
    monkeypatch.setattr(sys.modules[cstorch.Trainer.__module__], "measured", fault.measured)
    assert not holds(precision_of_an_evaluation, cstorch.Trainer)
