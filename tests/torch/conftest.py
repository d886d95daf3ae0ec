"""Every test starts from the process's defaults, with no backward pass before it, and from one seed.

The defaults are float16, level 1 and no mixed precision.
"""

import pytest
import torch

from golden.torch.cerebras import backends
from golden.torch.common import terminal
from golden.torch.settings import half, levels
from tests.shared import forget_backward_passes


@pytest.fixture(autouse=True)
def defaults_of_the_process(monkeypatch):
    monkeypatch.setattr(half._Process, "half", half.half_named("float16"))
    monkeypatch.setattr(half._Process, "half_is_set", False)
    monkeypatch.setattr(half._Process, "mixed_precision", False)
    monkeypatch.setattr(half._Process, "initialized", None)
    monkeypatch.setattr(backends._Process, "backend", None)
    monkeypatch.setattr(terminal, "_said", set())
    monkeypatch.setattr(levels._Process, "level", 1)
    forget_backward_passes(monkeypatch)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


@pytest.fixture
def threads_as_before():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "given.yaml"
        path.write_text(text)
        return str(path)

    return write
