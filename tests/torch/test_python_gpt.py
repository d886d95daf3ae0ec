"""GPT-2's architecture of the example: shapes, causality, initial values."""

import math

import torch

from golden.torch.examples.python_gpt import PythonGpt, Sizes

SIZES = Sizes(layers=2, width=32, heads=4, context=6)


def test_model_gives_logits_of_letters_that_depend_on_no_later_one():
    torch.manual_seed(3)
    model = PythonGpt(SIZES, letters=50)
    codes = torch.randint(50, (2, 6))
    logits = model(codes)
    assert logits.shape == (2, 6, 50)
    changed = codes.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 50
    assert (model(changed)[:, :4] == logits[:, :4]).all()
    assert (model(changed)[:, 4:] != logits[:, 4:]).any()


def test_initial_weights_have_the_deviations_of_gpt_2():
    torch.manual_seed(3)
    named = dict(PythonGpt(SIZES).named_parameters())
    for name, each in named.items():
        if "norm" in name or "before" in name:
            assert (each == (0 if name.endswith("bias") else 1)).all(), name
        elif name.endswith("bias"):
            assert (each == 0).all(), name
        else:
            share = 1 / math.sqrt(4) if "out." in name or "narrow." in name else 1  # of two sums in each of two layers
            assert abs(each.std().item() / (0.02 * share) - 1) < 0.15, name
    assert {name.rpartition(".")[0].rpartition(".")[2] for name in named} >= {"wide", "narrow", "out", "qkv"}
    assert named["blocks.0.wide.weight"].shape == (128, 32)
