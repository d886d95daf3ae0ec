"""Without a card, `tests/cuda/test_memory_card.py` runs these tests on a card in memory, in another process."""

import pytest
import torch

from tests.cuda.device.card import IN_MEMORY
from tests.shared import forget_backward_passes

collect_ignore_glob = [] if torch.cuda.is_available() else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Show the warnings of PyTorch about a real card, and do not fail for them: nobody knows them all."""
    if not IN_MEMORY:
        for item in items:
            if "tests/cuda/device/" in item.path.as_posix():
                item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(autouse=True)
def _no_earlier_backward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_backward_passes(monkeypatch)
