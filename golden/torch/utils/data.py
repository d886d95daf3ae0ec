"""Data of a run: the loader, the executor that drives its steps, and when to save."""

from golden.torch.cerebras.data_executor import DataExecutor
from golden.torch.cerebras.data_loader import DataLoader, RestartableDataLoader
from golden.torch.cerebras.steps import Schedule, compute_num_steps
from golden.torch.cerebras.synthetic import SyntheticDataset

__all__ = [
    "DataExecutor",
    "DataLoader",
    "RestartableDataLoader",
    "Schedule",
    "SyntheticDataset",
    "compute_num_steps",
]
