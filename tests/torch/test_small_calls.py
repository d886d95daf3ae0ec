"""Quick small calls: threads that follow PyTorch, and operators that run without the guard."""

import os
import subprocess
import sys
from collections.abc import Hashable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import golden.torch as cstorch
from golden import kernels
from golden.torch.guard import interception
from golden.torch.guard.operator_kinds import kind_of_operator


def test_products_use_as_many_threads_as_pytorch_unless_told():
    code = """
import golden, torch
import golden.torch as cstorch
found = []
for threads in (3, 1):
    torch.set_num_threads(threads)
    cstorch.matmul(torch.ones(2, 2), torch.ones(2, 2))
    found.append(golden.kernel_info()["threads"])
with golden.kernels.use(threads=2):
    cstorch.matmul(torch.ones(2, 2), torch.ones(2, 2))
    found.append(golden.kernel_info()["threads"])
print(*found)
"""
    for own, wanted in (("", "3 1 2"), ("4", "4 4 2")):
        environment = {**os.environ, "CBFLOAT_THREADS": own}
        said = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        assert said.stdout.split() == (wanted.split() if len(kernels.paths()) > 1 else ["1"] * 3)


def test_functions_that_run_without_the_guard_are_one_operator_that_it_lets_pass():
    exact = {*interception.EXACT, *interception.WITHOUT_EXACT_PATH}
    owners = (torch, torch.Tensor, torch._C._nn, torch.linalg, torch.fft, torch.special, torch.sparse)
    found = [getattr(owner, name) for owner in owners for name in dir(owner)]
    leaves = [each for each in found if isinstance(each, Hashable) and callable(each) and interception.is_leaf(each)]
    assert len(leaves) > 300
    assert exact.isdisjoint(leaves)
    for each in leaves:
        packet = getattr(torch.ops.aten, each.__name__, None)
        if isinstance(packet, torch._ops.OpOverloadPacket) and each not in interception._COPIES:
            kinds = {kind_of_operator(getattr(packet, overload)) for overload in packet.overloads()}
            assert kinds == {"other"}, each


@pytest.mark.parametrize(
    "function", sorted(interception.ACTIVATIONS, key=lambda each: each.__name__), ids=lambda each: each.__name__
)
def test_activation_that_runs_without_the_guard_is_one_operator(function):
    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen, x = [], torch.randn(4)
    with Seeing():
        function(x)
    assert {kind_of_operator(each) for each in seen} == {"other"}
    assert len(seen) == 1
    seen.clear()
    with cstorch.precision(), Seeing():  # who looks in a precision still sees it
        got = function(x)
    assert len(seen) == 1
    assert torch.equal(got, function(x))
