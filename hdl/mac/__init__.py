"""The multiply-accumulate unit: issue, register file, pipeline."""
