"""Where the figures of a run go."""

from golden.torch.training.loggers import CsvLogger, Logger, ProgressLogger, TensorBoardLogger

__all__ = ["CsvLogger", "Logger", "ProgressLogger", "TensorBoardLogger"]
