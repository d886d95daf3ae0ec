"""Helpers of scripts, under the names of ``cerebras.pytorch.utils``."""

from golden.torch.cerebras.cluster import CSConfig
from golden.torch.cerebras.compilation import make_constant
from golden.torch.utils import data
from golden.torch.utils.data import DataExecutor, DataLoader, RestartableDataLoader, SyntheticDataset

CsConfig = CSConfig

__all__ = [
    "CSConfig",
    "CsConfig",
    "DataExecutor",
    "DataLoader",
    "RestartableDataLoader",
    "SyntheticDataset",
    "data",
    "make_constant",
]
