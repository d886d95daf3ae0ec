"""Forward and backward of real models: no product but exact ones, in eager mode, compiled, with checkpoints."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import golden.torch as cstorch
from golden.torch.guard import interception
from tests.zoo.catalogue import MODELS
from tests.zoo.judge import watched

# The libraries' own warnings.
pytestmark = [
    pytest.mark.zoo,
    pytest.mark.filterwarnings("default"),
]


def made(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a model of the zoo and inputs, the same in every call."""
    torch.manual_seed(0)
    model = MODELS[name]()
    return model, model.inputs()


def trained(model: nn.Module, inputs: tuple[Tensor, ...], level: int = 1) -> dict[str, Tensor]:
    """Return the loss of a step and the gradients; backward runs outside the context, as in the documents."""
    with cstorch.precision(half="cbfloat16", level=level):
        loss = model(*inputs)
    (loss * 1024).backward()
    results = {"loss": loss.detach()}
    for parameter_name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, f"{parameter_name} has no gradient"
            results[parameter_name.removeprefix("_orig_mod.")] = parameter.grad
    return results


def differing(left: dict[str, Tensor], right: dict[str, Tensor]) -> list[str]:
    """Return the names of the tensors that are not alike in every bit."""
    return [name for name in left if not torch.equal(left[name], right[name])]


#: PyTorch compiles most models for seconds: of convolutions, attention and recurrence one is tried with every change.
QUICK = ("resnet18", "bert", "packed_rnn")


# First in the file that runs last: at the end no process waits for another that compiles.
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in MODELS]
)
def test_compiled_model_has_no_unseen_product_and_the_same_bits(name: str) -> None:
    torch.compiler.reset()
    plain, inputs = made(name)
    model, _ = made(name)
    compiled = torch.compile(model, backend="aot_eager")
    assert differing(trained(plain, inputs), trained(compiled, inputs)) == []
    model.zero_grad()
    seen = watched(lambda: trained(compiled, inputs))  # not the call before, in which PyTorch traces and compiles
    assert seen.exact > 0
    assert not seen.unseen


@pytest.mark.turns
@pytest.mark.parametrize("name", MODELS)
def test_model_in_precision_has_no_unseen_product(name: str) -> None:
    model, inputs = made(name)
    results: dict[str, Tensor] = {}
    seen = watched(lambda: results.update(trained(model, inputs)))
    assert seen.exact > 0
    assert not seen.unseen
    assert [each for each, tensor in results.items() if not tensor.isfinite().all()] == []


@pytest.mark.turns
@pytest.mark.parametrize("name", MODELS)
def test_model_audited_has_exact_products_alone_in_both_passes(name: str) -> None:
    model, inputs = made(name)
    with cstorch.precision(half="cbfloat16", level=1):
        found = cstorch.audit(model, *inputs, show=False)
    assert (found.unseen, found.refused) == (0, 0)
    assert {"forward", "backward"} <= {row.run for row in found.rows if row.exact}


@pytest.mark.turns
@pytest.mark.parametrize("name", MODELS)
def test_model_in_fp32_is_seen_by_the_judge(name: str) -> None:
    # The judge of the test above must know the products of every model.
    model, inputs = made(name)
    seen = watched(lambda: model(*inputs).backward())
    assert seen.exact == 0
    assert seen.unseen.total() > 0


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_llama_has_the_gradients_of_the_plain_one(reentrant: bool, level: int) -> None:
    plain, inputs = made("llama_sdpa")
    checkpointed, _ = made("llama_checkpointed_reentrant" if reentrant else "llama_checkpointed")
    checkpointed.load_state_dict(plain.state_dict())
    assert differing(trained(plain, inputs, level), trained(checkpointed, inputs, level)) == []


def test_operator_of_transformers_for_experts_is_the_exact_product_of_groups() -> None:
    MODELS["mixtral"]()  # imports it
    results = []
    for function in (torch.ops.transformers.grouped_mm_fallback, cstorch.grouped_mm):
        torch.manual_seed(0)
        rows, weights = torch.randn(9, 6, requires_grad=True), torch.randn(3, 6, 5, requires_grad=True)
        with cstorch.precision("cbfloat16", level=1, chunk=2):
            result = function(rows, weights, offs=torch.tensor([2, 2, 9]))
        results.append((result, *torch.autograd.grad(result.square().sum(), (rows, weights))))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    # The table has only PyTorch's functions, no matter which libraries were imported before its first use.
    assert torch.ops.transformers.grouped_mm_fallback not in interception.EXACT
