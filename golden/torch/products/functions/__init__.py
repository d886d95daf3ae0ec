"""Exact functions on tensors and their gradients: products, convolutions, attention, recurrent layers."""
