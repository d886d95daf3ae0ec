"""The advisor on models of real libraries: its predictions equal the measurements of a step with its map."""

from __future__ import annotations

import pytest
import torch

import golden.torch as cstorch
from tests.zoo.catalogue import MODELS

pytestmark = [pytest.mark.zoo, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("name", "layers", "budget"), [("gpt2", None, 0.005), ("resnet18", ["network.layer4.0", "network.fc"], 0.02)]
)
def test_advise_on_a_model_of_a_library_stays_within_its_budget(
    name: str, layers: list[str] | None, budget: float
) -> None:
    torch.manual_seed(0)
    model = MODELS[name]()
    inputs = model.inputs()
    advice = cstorch.advise(model, [inputs], precision="bfloat16", budget=budget, layers=layers, show=False)
    assert advice.speed > 1
    assert advice.steps <= 2 * advice.candidates + 2
    gradients = []
    for levels in (None, advice.levels):
        model.zero_grad()
        with cstorch.precision("bfloat16", 0, levels=levels):
            model(*inputs).backward()
        gradients.append(torch.cat([each.grad.flatten().double() for each in model.parameters()]))
    change = ((gradients[1] - gradients[0]).norm() / gradients[0].norm()).item()
    assert change == pytest.approx(advice.gradient_change, rel=1e-5)
    assert change <= budget
