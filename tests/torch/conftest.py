"""What the process-wide settings were before a test, they are after it."""

import pytest
import torch

from golden.torch import half


@pytest.fixture(autouse=True)
def _process_settings_restored():
    settings = half._Process.half, half._Process.mixed_precision
    yield
    half._Process.half, half._Process.mixed_precision = settings


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)
