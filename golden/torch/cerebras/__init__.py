"""The look-alike of `cerebras.pytorch`: backends, optimizers, schedules, metrics, data, tensors."""
