"""Exact products on tensors: functions with gradients, the operators beneath them, graphics cards."""
