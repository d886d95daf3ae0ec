"""Every model of the zoo on a card, forward and backward: each of its exact operators has the bits of the CPU."""

import pytest
import torch
from torch.utils._pytree import tree_map_only

import golden.torch as cstorch
from tests.cuda.device.card import IN_MEMORY, faulty
from tests.cuda.device.judge import Judge, differing
from tests.zoo.catalogue import MODELS

pytestmark = [
    pytest.mark.zoo,
    pytest.mark.long,
    pytest.mark.filterwarnings("default"),  # the libraries' own warnings
]


def stepped(name, device, half, level):
    """Run a model forward and backward; return its loss and gradients."""
    torch.manual_seed(0)
    model = MODELS[name]()
    inputs = tree_map_only(torch.Tensor, lambda each: each.to(device), model.inputs())
    model = model.to(device)
    with cstorch.precision(half, level):
        loss = model(*inputs)
    (loss * 1024).backward()
    return [loss.detach(), *(each.grad for each in model.parameters() if each.grad is not None)]


#: On a card every half type at every level; in memory, where that takes minutes, a part of them.
PRECISIONS = [
    (half, level)
    for half in ("cbfloat16", "bfloat16", "float16")
    for level in (0, 1, 2)
    if not IN_MEMORY or (half, level) in {("cbfloat16", 1), ("cbfloat16", 2), ("bfloat16", 0), ("float16", 1)}
]


@pytest.mark.parametrize(("half", "level"), PRECISIONS)
@pytest.mark.parametrize("name", MODELS)
def test_model_on_a_card_has_exact_products_of_the_cpu(name, half, level):
    judge = Judge()
    with judge:
        found = stepped(name, "cuda", half, level)
    assert judge.outputs > 0
    assert judge.wrong == []
    if IN_MEMORY and (half, level) == ("cbfloat16", 1):
        expected = stepped(name, "cpu", half, level)
        assert [told for pair in zip(found, expected, strict=True) if (told := differing(*pair))] == []


@pytest.mark.parametrize("name", ["resnet18", "gpt2"])
def test_model_on_a_faulty_card_is_found(name):
    judge = Judge()
    with judge, faulty():
        stepped(name, "cuda", "cbfloat16", 1)
    assert judge.wrong
