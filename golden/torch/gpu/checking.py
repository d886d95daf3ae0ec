"""A card proves itself: what its kernels compute first is compared with the CPU, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden.cuda.arrays import rounding_launch, softmax_launch
from golden.cuda.launching import Device
from golden.cuda.plan import FLOAT32, THREADS, Launch, plan_product
from golden.cuda.variants import name_of
from golden.formats import FloatFormat
from golden.kernels.products import Formats
from golden.reduction import Reduction
from golden.torch.gpu.memory import matrix_of

__all__ = ["OUTPUTS", "check_arrays", "check_product", "launch", "once"]

#: Outputs of a kernel that are compared at its first use.
OUTPUTS = 320 * 320
_ROWS, _LENGTH = 320, 40  # longer than a chunk, and no whole stages
_SPECIAL = 64  # of so many operands one is any code at all

_Floats = NDArray[np.float32]


def once(card: Device, key: Any, check: Callable[[], None]) -> None:
    """Run a check of a card unless it has passed; a device that keeps no list of checks needs none."""
    checked = getattr(card, "checked", None)
    if checked is not None and key not in checked:
        checked.add(key)
        try:
            check()
        except BaseException:
            checked.discard(key)
            raise


def launch(card: Device, made: Launch) -> None:
    """Launch a kernel on the card's current stream."""
    card.launch(card.kernel(made.variant, made.kernel), made.blocks, THREADS, 0, made.arguments)


def check_product(card: Device, device: torch.device, formats: Formats) -> None:
    """Compare a product of some 10^5 outputs with that of the CPU.

    Raises
    ------
    RuntimeError
        If an output differs; it says which operands give what.
    """
    generator = np.random.default_rng(1)
    a, b = (_operands(generator, formats.operand, shape) for shape in ((_ROWS, _LENGTH), (_LENGTH, _ROWS)))
    x, y = (torch.from_numpy(each).to(device) for each in (a, b))
    result = torch.empty((_ROWS, _ROWS), device=device)
    sizes = _ROWS, _LENGTH, _ROWS
    plan = plan_product(
        formats, (), sizes, *map(matrix_of, (x, y, result)), processors=card.processors, native=card.native
    )
    workspace = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=device)
    for each in plan.launches(workspace.data_ptr()):
        launch(card, each)
    expected = golden.matmul_values(
        a, b, operand=formats.operand, reduction=Reduction(formats.inner, formats.chunk, formats.outer),
        out=formats.destination, **vars(formats.rounding),
    )  # fmt: skip
    wrong = _first_difference(result, expected)
    if wrong is not None:
        row, column = divmod(wrong[0], _ROWS)
        operands = f"a = {_hex(a[row])} and b = {_hex(b[:, column])}"
        raise RuntimeError(_complaint(card, device, name_of(plan.scales.steps), wrong, operands))


def check_arrays(card: Device, device: torch.device, fmt: FloatFormat, *, softmax: _Floats | None = None) -> None:
    """Compare roundings to a format, or softmax with this table of exponentials, with those of the CPU.

    Raises
    ------
    RuntimeError
        If an output differs; it says which operands give what.
    """
    generator = np.random.default_rng(2)
    if softmax is None:
        values = generator.integers(0, 2**32, (_ROWS, _ROWS), np.uint32).view(np.float32)
        expected = golden.quantize(values, fmt)
    else:
        values = _operands(generator, fmt, (_ROWS, _ROWS))
        expected = golden.decode(golden.softmax(golden.encode(values, fmt), fmt), fmt)
    x, result = torch.from_numpy(values).to(device), torch.empty(values.shape, device=device)
    places = x.data_ptr(), result.data_ptr()
    if softmax is None:
        launch(card, rounding_launch(*places, values.size, FLOAT32, FLOAT32, fmt))
    else:
        table = torch.from_numpy(np.array(softmax)).to(device)
        rows, length = values.shape
        launch(card, softmax_launch(*places, table.data_ptr(), rows, length, FLOAT32, FLOAT32, fmt))
    wrong = _first_difference(result, expected)
    if wrong is not None:
        row, column = divmod(wrong[0], _ROWS)
        operands = _hex(values[row, column : column + 1] if softmax is None else values[row])
        raise RuntimeError(
            _complaint(card, device, f"{'softmax' if softmax is not None else 'rounding'} in {fmt}", wrong, operands)
        )


def _operands(generator: np.random.Generator, fmt: FloatFormat, shape: tuple[int, int]) -> _Floats:
    """Return values of a format: most are near 1, some are any float at all."""
    near = generator.standard_normal(shape, np.float32) * np.exp2(generator.integers(-4, 5, shape)).astype(np.float32)
    anything = generator.integers(0, 2**32, shape, np.uint32).view(np.float32)
    drawn = np.where(generator.integers(0, _SPECIAL, shape) == 0, anything, near)
    return np.asarray(golden.quantize(drawn, fmt))


def _first_difference(result: torch.Tensor, expected: _Floats) -> tuple[int, int, int] | None:
    got, wanted = result.cpu().numpy().view(np.uint32).ravel(), np.asarray(expected).view(np.uint32).ravel()
    places = np.flatnonzero(got != wanted)
    return (int(places[0]), int(got[places[0]]), int(wanted[places[0]])) if len(places) else None


def _complaint(card: Device, device: torch.device, what: str, wrong: tuple[int, int, int], operands: str) -> str:
    _, got, wanted = wrong
    return (
        f"device: {device}, {getattr(card, 'name', 'a host')}, computes other bits than the CPU: {what} gives "
        f"{got:#010x} and must give {wanted:#010x} for {operands}. Please report it; .to('cpu') computes without it"
    )


def _hex(values: _Floats) -> str:
    return " ".join(f"{each:08x}" for each in np.asarray(values).view(np.uint32).ravel())
