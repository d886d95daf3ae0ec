"""Matrix products on a CUDA device."""

from __future__ import annotations

from math import prod

import torch

from golden.cuda import accumulations
from golden.cuda.plan import Arrays
from golden.formats import FloatFormat
from golden.kernels.products import carrier, most_results
from golden.philox import MOST_STEPS
from golden.reduction import Reduction
from golden.rounding import Randomness
from golden.torch.products.gpu.checking import check_product, once, run_product
from golden.torch.products.gpu.devices import check_device, device_of, matrix_of, readable
from golden.torch.products.gpu.elementwise import rounded
from golden.torch.products.windows import formats_of

__all__ = ["check_length", "is_served", "key_of", "matrix_product", "multiply", "operand_values"]


def is_served(reduction: Reduction, results: int) -> bool:
    """Return whether the kernels compute products: accumulators of very many stages have none."""
    if reduction.accumulator is not None:
        return accumulations.are_served(reduction, results)
    return results <= most_results(reduction)


def check_length(length: int, reduction: Reduction) -> None:
    """Refuse more products than random bits have places for."""
    if length > MOST_STEPS and reduction.random is not None:
        raise ValueError(f"a, b: got {length} products a result, must be at most {MOST_STEPS} to round stochastically")


def operand_values(tensor: torch.Tensor, operand: FloatFormat) -> torch.Tensor:
    """Return an operand as `multiply` takes it: rounded already, if its format is narrow or has no infinities."""
    return readable(tensor) if carrier(operand) is operand else rounded(tensor, Reduction(out=operand), torch.float32)


def matrix_product(
    a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, reduction: Reduction, dtype: torch.dtype
) -> torch.Tensor | None:
    """Multiply (..., M, K) by (..., K, N), from initial values that broadcast to the result; None if it is not served.

    Raises
    ------
    ValueError
        If the tensors are not on one device, or there are more products than random bits have places for.
    """
    check_device(a=a, b=b, initial=initial)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, length, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    shape = (*batch, rows, columns)
    if not is_served(reduction, prod(shape)):
        return None
    operand, _ = formats_of(reduction)
    x = operand_values(a, operand).expand(*batch, rows, length)
    y = operand_values(b, operand).expand(*batch, length, columns)
    result = torch.empty(shape, dtype=dtype, device=a.device)
    given = [x, y, result] if initial is None else [x, y, result, readable(initial).expand(shape)]
    sizes = rows, length, columns
    try:
        multiply(a.device, reduction, Arrays(batch, sizes, *map(matrix_of, given)))
    except ValueError:  # of more axes than the kernels know: copies have one
        if len(batch) < 2:
            raise
        given = [each.reshape(-1, *each.shape[-2:]) for each in given]
        multiply(a.device, reduction, Arrays((prod(batch),), sizes, *map(matrix_of, given)))
    return result


def multiply(device: torch.device, reduction: Reduction, arrays: Arrays) -> None:
    """Launch the kernels of a product that `is_served`, of operands that `operand_values` made.

    Initial values are rounded to the format of the results.
    """
    check_length(arrays.shape[1], reduction)
    card = device_of(device)
    once(card, key_of(reduction), lambda: check_product(card, device, reduction))
    run_product(card, device, reduction, arrays)


def key_of(reduction: Reduction) -> Reduction:
    """Return the reduction with one seed for all: products that differ in theirs run in the same code."""
    if reduction.random is None:
        return reduction
    return reduction.with_random(Randomness(reduction.random.random_bits))
