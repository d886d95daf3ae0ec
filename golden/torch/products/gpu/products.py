"""Matrix products on a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import torch

from golden.accumulator import Accumulator
from golden.arrays.operands import carrier
from golden.arrays.plans import allowed, check_length
from golden.cuda import accumulations
from golden.cuda.plan import Matrix, plan_product
from golden.formats import FloatFormat
from golden.kernels.products import Formats
from golden.rounding import ReductionRounding
from golden.torch.products.gpu.checking import Planned, check_accumulation, check_product, launch, once
from golden.torch.products.gpu.devices import device_of
from golden.torch.products.gpu.elementwise import rounded
from golden.torch.products.gpu.memory import check_device, matrix_of, readable
from golden.torch.products.windows import Summing

__all__ = ["is_served", "matrix_product", "mode_of", "multiply", "operand_values"]


def is_served(summing: Summing, results: int) -> bool:
    """Tell whether the kernels compute products: accumulators of very many stages have none."""
    half, operand, plan, rounding = summing
    if isinstance(plan, Accumulator):
        return accumulations.are_served(plan, accumulations.formats_of(operand, half, rounding), results)
    return Formats.of(operand, plan, half, rounding=rounding).are_served(results)


def operand_values(tensor: torch.Tensor, operand: FloatFormat) -> torch.Tensor:
    """Return an operand as `multiply` takes it: rounded already, if its format is narrow or has no infinities."""
    return readable(tensor) if carrier(operand) is operand else rounded(tensor, operand, torch.float32)


def matrix_product(
    a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None, summing: Summing, dtype: torch.dtype
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
    if not is_served(summing, prod(shape)):
        return None
    x = operand_values(a, summing.operand).expand(*batch, rows, length)
    y = operand_values(b, summing.operand).expand(*batch, length, columns)
    result = torch.empty(shape, dtype=dtype, device=a.device)
    given = [x, y, result] if initial is None else [x, y, result, readable(initial).expand(shape)]
    sizes = rows, length, columns
    try:
        multiply(a.device, summing, batch, sizes, *map(matrix_of, given))
    except ValueError:  # of more axes than the kernels know: copies have one
        if len(batch) < 2:
            raise
        given = [each.reshape(-1, *each.shape[-2:]) for each in given]
        multiply(a.device, summing, (prod(batch),), sizes, *map(matrix_of, given))
    return result


def multiply(
    device: torch.device,
    summing: Summing,
    batch: tuple[int, ...],
    shape: tuple[int, int, int],
    a: Matrix,
    b: Matrix,
    result: Matrix,
    initial: Matrix | None = None,
) -> None:
    """Launch the kernels of a product that `is_served`, of operands that `operand_values` made.

    Parameters
    ----------
    device : torch.device
    summing : Summing
    batch, shape, a, b, result, initial
        Of `golden.cuda.plan.plan_product`. Initial values are rounded to the format of the results.
    """
    half, operand, plan, rounding = summing
    check_length(shape[1], rounding)
    card = device_of(device)
    given = batch, shape, a, b, result, initial
    if isinstance(plan, Accumulator):
        formats = accumulations.formats_of(carrier(operand), half, rounding)
        rule, key = allowed(plan, rounding), (plan, operand, formats._replace(rounding=mode_of(rounding)))
        once(card, key, lambda: check_accumulation(card, device, rule, operand, formats))
        planned: Planned = accumulations.plan_accumulation(formats, *given, rule=rule, operand=operand)
    else:
        formats = Formats.of(carrier(operand), plan, half, as_values=True, rounding=rounding)
        once(card, formats._replace(rounding=mode_of(rounding)), lambda: check_product(card, device, formats))
        planned = plan_product(formats, *given, initial_format=half, processors=card.processors, native=card.native)
    workspace = torch.empty(planned.workspace_bytes, dtype=torch.uint8, device=device)  # the stream keeps it
    for each in planned.launches(workspace.data_ptr()):
        launch(card, each)


def mode_of(rounding: ReductionRounding) -> ReductionRounding:
    """Return the modes with one seed for all: products that differ in theirs run in the same code."""
    return replace(rounding, seed=0, call=0) if rounding.is_random else rounding
