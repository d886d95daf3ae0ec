"""A card proves itself: what its kernels compute first is compared with the CPU, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden import mx
from golden.arrays.randomness import random_words
from golden.cuda.accumulations import AccumulationPlan, plan_accumulation
from golden.cuda.arrays import blocks_launch, rounding_launch, softmax_launch
from golden.cuda.launching import Device
from golden.cuda.plan import FLOAT32, THREADS, Arrays, Launch, ProductPlan, plan_product
from golden.cuda.variants import name_of
from golden.formats import FloatFormat
from golden.reduction import Reduction
from golden.rounding import Randomness, Rounding
from golden.torch.products.gpu.devices import matrix_of, refuse_in_capture

__all__ = [
    "OUTPUTS",
    "check_arrays",
    "check_blocks",
    "check_product",
    "complaint",
    "drawn_operands",
    "in_hex",
    "launch",
    "once",
    "run_product",
]

#: Outputs of a kernel that are compared at its first use.
OUTPUTS = 320 * 320
_ROWS, _LENGTH = 320, 40  # longer than a chunk, and no whole stages
_SPECIAL = 64  # of so many operands one is any code at all
_SEED, _CALL, _STEP = 2**40 + 3, 5, 7  # of random bits

_Floats = NDArray[np.float32]


def once(card: Device, key: Any, check: Callable[[], None]) -> None:
    """Run a check of a card, never in a captured graph, unless it has passed; a device without a list needs none."""
    checked = getattr(card, "checked", None)
    if checked is not None and key not in checked:
        refuse_in_capture("the card would be compared with the CPU")
        checked.add(key)
        try:
            check()
        except BaseException:
            checked.discard(key)
            raise


def launch(card: Device, made: Launch) -> None:
    """Launch a kernel on the card's current stream."""
    card.launch(card.kernel(made.variant, made.kernel), made.blocks, THREADS, 0, made.arguments)


def run_product(card: Device, device: torch.device, reduction: Reduction, arrays: Arrays) -> str:
    """Launch the kernels of a product, by levels or by another machine's accumulator; return what its steps are."""
    if reduction.accumulator is not None:
        plan: ProductPlan | AccumulationPlan = plan_accumulation(reduction, arrays)
        name = reduction.accumulator.provenance.machine
    else:
        plan = plan_product(
            reduction, arrays, initial_format=reduction.result, processors=card.processors, native=card.native
        )
        name = name_of(plan.scales.steps)
    workspace = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=device)  # the stream keeps it
    for each in plan.launches(workspace.data_ptr()):
        launch(card, each)
    return name


def check_product(card: Device, device: torch.device, reduction: Reduction) -> None:
    """Compare a product of some 10^5 outputs with the CPU's; raise `complaint` about the first that differs."""
    generator = np.random.default_rng(1)
    a, b = (drawn_operands(generator, reduction.factors, shape) for shape in ((_ROWS, _LENGTH), (_LENGTH, _ROWS)))
    x, y = (torch.from_numpy(each).to(device) for each in (a, b))
    result = torch.empty((_ROWS, _ROWS), dtype=torch.float32, device=device)
    arrays = Arrays((), (_ROWS, _LENGTH, _ROWS), *map(matrix_of, (x, y, result)))
    what = run_product(card, device, reduction, arrays)
    expected = golden.matmul_values(a, b, reduction=reduction)
    _compare(card, device, what, result, expected, lambda row, at: f"a = {in_hex(a[row])} and b = {in_hex(b[:, at])}")


def check_arrays(
    card: Device,
    device: torch.device,
    fmt: FloatFormat,
    *,
    mode: Rounding = Rounding.NEAREST_EVEN,
    softmax: _Floats | None = None,
) -> None:
    """Compare roundings to a format in a mode, or softmax with this table of exponentials, likewise."""
    generator, bits = np.random.default_rng(2), Randomness(seed=_SEED, call=_CALL)
    if softmax is None:
        values = generator.integers(0, 2**32, (_ROWS, _ROWS), np.uint32).view(np.float32)
        random = random_words(values.shape, bits)(_STEP) if mode is Rounding.STOCHASTIC else None
        expected = golden.quantize(values, fmt, rounding=mode, random=random)
    else:
        values = drawn_operands(generator, fmt, (_ROWS, _ROWS))
        expected = golden.decode(golden.softmax(golden.encode(values, fmt), fmt), fmt)
    x = torch.from_numpy(values).to(device)
    result = torch.empty_like(x)
    places = x.data_ptr(), result.data_ptr()
    if softmax is None:
        conversion = Reduction(out=fmt, out_rounding=mode, random=bits)
        launch(card, rounding_launch(*places, values.size, (FLOAT32, FLOAT32), conversion, step=_STEP))
    else:
        table = torch.from_numpy(np.array(softmax)).to(device)
        rows, length = values.shape
        launch(card, softmax_launch(*places, table.data_ptr(), rows, length, (FLOAT32, FLOAT32), fmt))

    def operands(row: int, column: int) -> str:
        return in_hex(values[row, column : column + 1] if softmax is None else values[row])

    what = f"rounding {mode}" if softmax is None else "softmax"
    _compare(card, device, f"{what} in {fmt}", result, expected, operands)


def check_blocks(card: Device, device: torch.device, element: FloatFormat, block: int) -> None:
    """Compare values rounded to blocks of elements likewise."""
    generator = np.random.default_rng(3)
    # Rows of other exponents, the least and the largest among them, and a few values that are no numbers.
    exponents = generator.integers(0, 255, (_ROWS, 1)) - generator.integers(0, 12, (_ROWS, _ROWS))
    bits = generator.integers(0, 2**32, (_ROWS, _ROWS), np.uint32)
    bits = bits & 0x807FFFFF | np.maximum(exponents, 0).astype(np.uint32) << 23
    special = generator.integers(0, _ROWS, bits.shape) == 0
    values = np.where(special, bits | 0x7F800000, bits).astype(np.uint32).view(np.float32)
    x = torch.from_numpy(values).to(device)
    result = torch.empty_like(x)
    launch(card, blocks_launch(x.data_ptr(), result.data_ptr(), _ROWS, _ROWS, block, FLOAT32, element))
    whole = min(block, _ROWS)
    filled = np.pad(values, ((0, 0), (0, -_ROWS % whole)))
    expected = mx.dequantize(*mx.quantize(filled, element, block=whole), element)[:, :_ROWS]

    def operands(row: int, column: int) -> str:
        first = column // whole * whole
        return in_hex(values[row, first : first + whole])

    what = f"rounding to blocks of {block} {element}"
    _compare(card, device, what, result, np.ascontiguousarray(expected), operands)


def drawn_operands(generator: np.random.Generator, fmt: FloatFormat, shape: tuple[int, int]) -> _Floats:
    """Return values of a format: most are near 1, some are any float at all."""
    near = generator.standard_normal(shape, np.float32) * np.exp2(generator.integers(-4, 5, shape)).astype(np.float32)
    anything = generator.integers(0, 2**32, shape, np.uint32).view(np.float32)
    drawn = np.where(generator.integers(0, _SPECIAL, shape) == 0, anything, near)
    return np.asarray(golden.quantize(drawn, fmt))


def _compare(
    card: Device,
    device: torch.device,
    what: str,
    result: torch.Tensor,
    expected: _Floats,
    operands: Callable[[int, int], str],
) -> None:
    """Raise an error about the first result that differs, with its operands, which its row and its column give."""
    got, wanted = result.cpu().numpy().view(np.uint32).ravel(), np.asarray(expected).view(np.uint32).ravel()
    for place in np.flatnonzero(got != wanted).tolist():
        wrong = place, int(got[place]), int(wanted[place])
        raise RuntimeError(complaint(card, device, what, wrong, operands(*divmod(place, _ROWS))))


def complaint(card: Device, device: torch.device, what: str, wrong: tuple[int, int, int], operands: str) -> str:
    """Return the error message for a wrong output: where it is, the bits found and the bits expected."""
    _, got, wanted = wrong
    return (
        f"device: {device}, {getattr(card, 'name', 'a host')}, computes other bits than the CPU: {what} gives "
        f"{got:#010x} and must give {wanted:#010x} for {operands}. Please report it; .to('cpu') computes without it"
    )


def in_hex(values: _Floats) -> str:
    """Return the bits of values."""
    return " ".join(f"{each:08x}" for each in np.asarray(values).view(np.uint32).ravel())
