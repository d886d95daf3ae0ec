"""Run the tests of `tests.cuda.device` on the card in memory: python -m tests.cuda.memory_card LIBRARY FOLDER."""

import sys
from pathlib import Path

from tests.cuda import memory_card

if __name__ == "__main__":
    memory_card.insert(Path(sys.argv[1]))
    import pytest

    from golden.torch.products.gpu import devices
    from tests.cuda.host import HostDevice

    devices.cards[0] = HostDevice(Path(sys.argv[2]))
    folder = Path(__file__).parents[1] / "device"
    sys.exit(pytest.main([str(folder), "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[3:]]))
