"""The loggers that record the figures of a run."""

from golden.torch.training.loggers import CsvLogger, Logger, ProgressLogger, TensorBoardLogger

__all__ = ["CsvLogger", "Logger", "ProgressLogger", "TensorBoardLogger"]
