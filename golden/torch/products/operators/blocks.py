"""Values to blocks of narrow numbers and back, by `golden.mx`, along any axis of an array of any length.

Defined here, for training: a block with a NaN or an infinity is NaN in every recipe, so that a loss scale that is too
large is noticed (NUMERICS section 13).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import mx
from golden.arrays.randomness import random_words
from golden.philox import FINAL_CONVERSION
from golden.torch.settings.blocks import Blocks

__all__ = ["rounded"]


def rounded(values: NDArray[np.float32], blocks: Blocks, axis: int) -> NDArray[np.float32]:
    """Return the values of blocks along an axis, which is the last one of the result; there is at least one value.

    Zeros fill up the last block. A value takes the random bits of its number in the array, in row-major order.
    """
    length = values.shape[axis]
    # Zeros behind a shorter block change nothing; NVFP4 has none.
    block = blocks.block if isinstance(blocks.element, mx.BlockFormat) else min(blocks.block, length)
    whole = -(-length // block) * block

    def filled(given: NDArray[Any]) -> NDArray[Any]:
        result = np.zeros((*np.delete(given.shape, axis), whole), given.dtype)
        result[..., :length] = np.moveaxis(given, axis, -1)
        return result

    options: dict[str, Any] = {"scale": blocks.scale, "rounding": blocks.rounding}
    if blocks.random is not None:
        words = random_words(values.shape, blocks.random)(FINAL_CONVERSION)
        options |= {"random": filled(words), "random_bits": blocks.random.random_bits}
    given = filled(values)
    scales, codes, *of_tensor = mx.quantize(given, blocks.element, block=block, **options)
    if of_tensor and np.isnan(of_tensor[0]):
        return np.full_like(given, np.nan)[..., :length]
    result = mx.dequantize(scales, codes, blocks.element, tensor_scale=of_tensor[0] if of_tensor else None)
    finite = np.isfinite(given).reshape(*scales.shape, block).all(axis=-1)
    if not finite.all():
        result = np.where(np.repeat(finite, block, axis=-1), result, np.float32(np.nan))
    return np.ascontiguousarray(result[..., :length])
