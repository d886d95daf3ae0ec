"""The dtype of arrays of codes, which the array functions and the compiled kernels share."""

from __future__ import annotations

import numpy as np

from golden.formats import FloatFormat

__all__ = ["code_dtype"]


def code_dtype(fmt: FloatFormat) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """Return the dtype of code arrays: uint8 up to 8 bits, uint16 up to 16, uint32 above."""
    if fmt.width <= 8:
        return np.uint8
    return np.uint16 if fmt.width <= 16 else np.uint32
