"""Exact products, rounding and softmax on graphics cards: the same bits as on the CPU (NUMERICS)."""
