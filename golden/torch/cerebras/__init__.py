"""What looks like `cerebras.pytorch`: backends, optimizers, schedules, metrics, data, tensors."""
