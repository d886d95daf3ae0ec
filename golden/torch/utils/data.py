"""Data of a run: the loader, the executor that drives its steps, and when to save."""

from golden.torch.cerebras.data_executor import DataExecutor
from golden.torch.cerebras.data_loader import DataLoader, RestartableDataLoader, SyntheticDataset
from golden.torch.cerebras.steps import Schedule, compute_num_steps

__all__ = ["DataExecutor", "DataLoader", "RestartableDataLoader", "Schedule", "SyntheticDataset", "compute_num_steps"]
