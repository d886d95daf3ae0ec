"""Observing a step of real models: every layer in every pass, and the bits of the step that is not observed."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch
from torch import Tensor, nn

import golden.torch as cstorch
from golden.torch.observing import ObservationReport
from golden.torch.settings.scopes import scopes
from lab.speed import libraries
from tests.zoo.test_zoo import differing, made, pytestmark

__all__ = ["pytestmark"]

Gradients = dict[str, Tensor]
NAMES = ("resnet18", "gpt2", "mixtral", "llama_checkpointed", "llama_checkpointed_reentrant", "packed_lstm")
#: Layers whose input has no gradient: the first one of a network for pictures.
FIRST = {"resnet18": {"network.conv1"}}


def step(model: nn.Module, inputs: tuple[Tensor, ...], *, observed: bool = True) -> tuple[Gradients, ObservationReport]:
    """Return the gradients of one step, and its observation."""
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.0), cstorch.amp.GradScaler(1024.0)
    with cstorch.observe(model, 1, rows=2) as report:
        if not observed:
            scopes.observer = None
        with cstorch.precision(half="cbfloat16", level=2):
            scaler.scale(model(*inputs)).backward()
        scaler.step(optimizer)
        scaler.update()
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}, report


@pytest.mark.parametrize("name", NAMES)
def test_observed_model_has_the_same_bits_and_every_layer_in_every_pass(name: str) -> None:
    model, inputs = made(name)
    gradients, report = step(model, inputs)
    twin, inputs = made(name)
    assert differing(gradients, step(twin, inputs, observed=False)[0]) == []
    passes: dict[str, set[str]] = defaultdict(set)
    for row in report.rows:
        passes[row.module].add(row.direction)
        assert row.products.steps > 0
    layers = {name for name, each in model.named_modules() if isinstance(each, nn.Linear | nn.Conv2d)}
    assert layers <= passes.keys()
    assert {each for each in layers if len(passes[each]) < 3} == FIRST.get(name, set())
    assert passes.keys() <= {name for name, _ in model.named_modules()}
    assert any(row.recomputed for row in report.rows) == ("checkpointed" in name)


def test_models_that_observing_is_timed_on_have_the_published_sizes() -> None:
    with torch.device("meta"):
        sizes = [sum(each.numel() for each in make().parameters()) for make in libraries.MODELS.values()]
    assert sizes == [124_439_808, 11_689_512]
