"""The parts of a training run: its loop, callbacks, loggers, checkpoints, and what ends it."""
