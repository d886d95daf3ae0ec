"""Models of torchvision and transformers in their published sizes, with random weights."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["MODELS", "Gpt2", "ResNet18", "torchvision"]

_TOKENS = 32  # in the sequence of GPT-2
_PICTURES, _SIDE = 2, 224


@functools.cache
def torchvision() -> types.ModuleType:
    """Import torchvision, also where its compiled operators do not load (a CUDA build beside a PyTorch for the CPU).

    Its import only requires two of them to exist; no model here calls one.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:  # an operator does not exist
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    module: Any = importlib.import_module("torchvision")
    module.library_of_stubs = library  # the definitions live as long as it does
    return module


class Gpt2(nn.Module):
    """GPT-2 with its loss: 12 blocks of width 768, 50,257 tokens."""

    def __init__(self) -> None:
        super().__init__()
        os.environ["HF_HUB_OFFLINE"] = "1"
        torchvision()  # transformers looks for it, and would fail if its operators did not load
        transformers: Any = importlib.import_module("transformers")
        self.network = transformers.GPT2LMHeadModel(transformers.GPT2Config(loss_type="ForCausalLM"))

    def forward(self) -> Tensor:
        tokens = torch.randint(self.network.config.vocab_size, (1, _TOKENS))
        loss: Tensor = self.network(input_ids=tokens, labels=tokens).loss
        return loss


class ResNet18(nn.Module):
    """ResNet18 with its loss: pictures of 224 × 224, 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.network = torchvision().models.resnet18()

    def forward(self) -> Tensor:
        pictures, labels = torch.randn(_PICTURES, 3, _SIDE, _SIDE), torch.randint(1000, (_PICTURES,))
        return nn.functional.cross_entropy(self.network(pictures), labels)


#: Makers of models that draw inputs and return their loss, by name.
MODELS: dict[str, Callable[[], nn.Module]] = {
    f"GPT-2, {_TOKENS} tokens": Gpt2,
    f"ResNet18, {_PICTURES} pictures of {_SIDE} × {_SIDE}": ResNet18,
}
