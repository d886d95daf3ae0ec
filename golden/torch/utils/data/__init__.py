"""Data of a run: the loader, the executor that drives its steps, and when to save."""

from golden.torch.utils.data.executor import DataExecutor
from golden.torch.utils.data.loader import DataLoader, RestartableDataLoader
from golden.torch.utils.data.schedule import Schedule, compute_num_steps
from golden.torch.utils.data.synthetic import SyntheticDataset

__all__ = [
    "DataExecutor",
    "DataLoader",
    "RestartableDataLoader",
    "Schedule",
    "SyntheticDataset",
    "compute_num_steps",
]
