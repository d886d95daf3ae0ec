"""Exact products on tensors of a CUDA device: on a card where there is one, else on a card in memory."""
