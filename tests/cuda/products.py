"""Products by the kernels for cards on arrays of this machine, and the expected results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from golden.arrays.operands import carried_values
from golden.cuda.plan import FLOAT32, THREADS, Arrays, Launch, Matrix, ProductPlan, plan_product
from tests.cuda.host import HostDevice

Values = NDArray[np.float32]
_ALIGNMENT = 256


def run(device: HostDevice, launch: Launch) -> None:
    """Run a launch."""
    device.launch(device.kernel(launch.variant, launch.kernel), launch.blocks, THREADS, 0, launch.arguments)


def run_plan(device: HostDevice, plan: ProductPlan) -> None:
    """Run the launches of a product in a workspace that holds NaNs at first."""
    memory = np.full(plan.workspace_bytes + _ALIGNMENT, 0xFF, np.uint8)
    for launch in plan.launches(-(-memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT):
        run(device, launch)


def matrix(array: Values, batch: tuple[int, ...]) -> Matrix:
    """Return where an array that broadcasts to a batch lies."""
    strides = [stride // 4 for stride in np.broadcast_to(array, batch + array.shape[-2:]).strides]
    return Matrix(array.ctypes.data, FLOAT32, strides[-2], strides[-1], tuple(strides[:-2]))


def reduction_of(fmt: golden.FloatFormat, level: int, chunk: int | None) -> golden.Reduction:
    """Return the reduction of a level; in cbfloat16 where the format has no 1.0 to multiply partial sums by."""
    inner = fmt if fmt.has_one else golden.CBFLOAT16
    return golden.Reduction.for_level(level, fmt, inner=inner, chunk=chunk)


def multiply(
    device: HostDevice,
    a: Values,
    b: Values,
    *,
    operand: golden.FloatFormat,
    reduction: golden.Reduction,
    initial: Values | None = None,
    out: golden.FloatFormat | None = None,
    tile: int | None = 32,
    native: tuple[bool, bool] = (True, True),
    **modes: Any,
) -> Values:
    """Multiply as `golden.matmul_values` does, by the kernels."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    whole = golden.reduction.reduction_of(operand=operand, reduction=reduction, out=out, **modes)
    a, b = carried_values(operand, a, b)
    result = np.full((*batch, m, n), -7, np.float32)
    start = None if initial is None else np.broadcast_to(initial, result.shape)
    given = [matrix(each, batch) for each in (a, b, result, start) if each is not None]
    plan = plan_product(whole, Arrays(batch, (m, k, n), *given), tile=tile, native=native)
    run_plan(device, plan)
    return result


def assert_equal_bits(found: Values, expected: Values) -> None:
    """Compare values bit for bit; the error shows the first difference in hex."""
    x, y = found.view(np.uint32), np.asarray(expected, np.float32).view(np.uint32)
    assert x.shape == y.shape
    if different := np.argwhere(x != y).tolist():
        at = tuple(different[0])
        raise AssertionError(f"{len(different)} of {x.size} differ, first at {at}: {x[at]:#010x}, not {y[at]:#010x}")


def check(device: HostDevice, a: Values, b: Values, **options: Any) -> None:
    """Multiply by the kernels and by golden, and compare."""
    found = multiply(device, a, b, **options)
    for own in ("tile", "native"):
        options.pop(own, None)
    assert_equal_bits(found, golden.matmul_values(a, b, **options))


def values(seed: int, *shape: int, spread: int = 12) -> Values:
    """Random values of both signs, of exponents from -spread to spread."""
    random = np.random.default_rng(seed)
    return np.ldexp(random.standard_normal(shape), random.integers(-spread, spread, shape)).astype(np.float32)


def special_values(seed: int, fmt: golden.FloatFormat, *shape: int) -> Values:
    """Values of any code of a format, and among them some between two codes; NaNs are rare, so that sums are not."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << fmt.width, shape).astype(np.uint32)
    given = golden.decode(codes.astype(np.uint16 if fmt.width <= 16 else np.uint32), fmt).astype(np.float32)
    given = np.where(np.isfinite(given) | (random.random(shape) < 0.02), given, np.float32(1))
    between = np.nextafter(given, np.float32(np.inf), dtype=np.float32)
    return np.where(random.random(shape) < 0.2, between, given).astype(np.float32)
