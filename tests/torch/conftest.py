"""Every test starts from the process's defaults (float16, level 1, no mixed precision) and from one seed."""

import pytest
import torch

from golden.torch import half, levels, notices
from golden.torch.backend import current


@pytest.fixture(autouse=True)
def defaults_of_the_process(monkeypatch):
    monkeypatch.setattr(half._Process, "half", half.half_named("float16"))
    monkeypatch.setattr(half._Process, "mixed_precision", False)
    monkeypatch.setattr(half._Process, "initialized", None)
    monkeypatch.setattr(current._Process, "backend", None)
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr(levels._Process, "level", 1)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)
