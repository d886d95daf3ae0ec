"""Exact products, rounding and softmax on graphics cards: the same bits as on the CPU (NUMERICS).

Neither PyTorch nor CUDA is needed to import it.
"""

from golden.cuda.about import available, info

__all__ = ["available", "info"]
