"""The oracle here: the contract on codes, by `golden.matmul` and by the exact integers of `golden.reference`.

Both leave PyTorch, its autograd and the layer under test out; tests/golden judges them in turn.
"""

import numpy as np
import torch

import golden
from golden import FP32, Reduction, reference

from ..golden.judges import assert_same_bits

NAMES = ["float16", "bfloat16", "cbfloat16"]


def array(tensor):
    if tensor.dtype == torch.bfloat16:  # by its bits: the cast of PyTorch may change a NaN
        return golden.decode(tensor.detach().contiguous().view(torch.int16).numpy().view(np.uint16), "bfloat16")
    return tensor.detach().to(torch.float32).numpy()


def codes(tensor, half):
    return golden.encode(array(tensor), half)


def normal(*shape, seed=0, scale=1.0, grad=False, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * scale).to(dtype).requires_grad_(grad)


def product(a, b, half, level, chunk=32, initial=None):
    """Codes in the half format of ``(..., M, K) @ (..., K, N)`` of tensors, by golden.matmul."""
    outer = Reduction.for_level(level, golden.format_named(half)).outer
    start = None if initial is None else golden.encode(golden.quantize(array(initial), half), outer)
    return golden.matmul(
        codes(a, half), codes(b, half), operand=half, level=level, chunk=chunk, initial=start, out=half
    )


def reference_product(a, b, half, level, chunk=32, bias=None):
    """Codes in the half format of two matrices, element by element on exact integers."""
    fmt = golden.format_named(half)
    outer = Reduction.for_level(level, fmt).outer
    starts = [0] * b.shape[1] if bias is None else golden.convert(codes(bias, half), fmt, outer).tolist()
    rows, columns = codes(a, half).tolist(), codes(b, half).T.tolist()
    return np.array(
        [
            [
                reference.dot(row, column, operand=fmt, level=level, chunk=chunk, initial=start, out=fmt)[0]
                for column, start in zip(columns, starts, strict=True)
            ]
            for row in rows
        ]
    )


def assert_codes(tensor, wanted, half):
    """Fail unless the tensor's values equal the codes', bit for bit as fp32, signs of zeros included."""
    assert_same_bits(array(tensor).view(np.uint32), golden.decode(wanted.astype(np.uint16), half).view(np.uint32))


def assert_same_tensors(got, wanted):
    assert got.dtype == wanted.dtype
    assert_same_bits(array(got).view(np.uint32), array(wanted).view(np.uint32))


def sum_of_codes(given, half):
    """Codes of the sum over axis 0: fp32 from +0, in order, rounded once to the half format."""
    total = np.zeros(given.shape[1:], np.uint32)
    one = golden.format_named(half).one
    for term in given:
        total = golden.multiply_accumulate(term, one, total, operand=half, accumulator=FP32)
    return golden.convert(total, FP32, half)


__all__ = [
    "FP32",
    "NAMES",
    "array",
    "assert_codes",
    "assert_same_tensors",
    "codes",
    "normal",
    "product",
    "reference_product",
    "sum_of_codes",
]
