"""Where there is no card, `tests/cuda/test_memory_card.py` runs these tests on one in memory, in another process."""

import torch

collect_ignore_glob = [] if torch.cuda.is_available() else ["test_*.py"]
