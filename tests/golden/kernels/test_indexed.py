"""Products of operands by tables on every compiled path equal NumPy's of the gathered matrices."""

from dataclasses import replace

import numpy as np
import pytest

from golden import Reduction, decode, kernels, matmul, matmul_values
from golden.arrays.value_products import indexed_values
from golden.kernels.products import Indexed, call_of, matmul_indexed

from ..judges import assert_same_bits, code_dtype
from .operands import COMPILED, KINDS, SIXTEEN_BIT_FORMATS, codes

SHAPES = [(1, 1, 9, 150), (3, 5, 300, 7), (2, 40, 11, 33), (4, 1, 70, 9)]


def tables(rng, size, batches, rows, columns):
    """Tables into a vector of `size`: lanes that are neighbours, some that are runs of neighbours, others scattered."""
    runs = np.arange(rows) + 2 * (np.arange(rows) // 7)
    scattered = rng.integers(0, size // 4, rows)
    chosen = (np.arange(rows), runs, scattered)[rng.integers(3)]
    return (
        rng.integers(0, size // 4, batches),
        chosen.astype(np.int64),
        rng.integers(0, size // 4, columns),
    )


@COMPILED
@pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_indexed_product_is_that_of_the_gathered_matrices(path, fmt, level):
    rng = np.random.default_rng(90 + level)
    for number, (batches, rows, length, columns) in enumerate(SHAPES):
        kind = KINDS[(number + level) % len(KINDS)]
        a, b = (codes(kind, fmt, (4000,), rng) for _ in range(2))
        left = Indexed(a, *tables(rng, 4000, batches, rows, length))
        right = Indexed(b, *tables(rng, 4000, batches, columns, length))
        right = Indexed(right.data, right.batches, right.columns, right.rows)  # the lanes go along the columns
        outer = Reduction.for_level(level, fmt).outer
        initial = codes(kind, outer, (batches, rows, 1), rng)
        for chunk in (None, 3, 32):
            plan = Reduction.for_level(level, fmt, chunk=chunk)
            with kernels.use("numpy"):
                wanted = matmul(
                    left.matrices(), right.matrices(), operand=fmt, reduction=plan, initial=initial, out=fmt
                )
            for threads in (1, 3):
                with kernels.use(path, threads=threads):
                    got = np.empty(wanted.shape, code_dtype(fmt))
                    assert matmul_indexed(left, right, initial, got, call_of(replace(plan, operand=fmt, out=fmt)))
                    assert_same_bits(got, wanted)
                    values = indexed_values(
                        left._replace(data=decode(a, fmt)),
                        right._replace(data=decode(b, fmt)),
                        operand=fmt,
                        level=level,
                        chunk=chunk,
                        initial=decode(initial, outer),
                    )
                assert_same_bits(values.view(np.uint32), decode(wanted, fmt).view(np.uint32))


def test_indexed_values_without_a_library_or_products_are_those_of_numpy():
    rng = np.random.default_rng(95)
    data = rng.standard_normal(400).astype(np.float32)
    left, right = Indexed(data, *tables(rng, 400, 2, 3, 5)), Indexed(data, *tables(rng, 400, 2, 5, 4))
    initial = np.float32([[[0.1]] * 3] * 2)
    options = {"operand": SIXTEEN_BIT_FORMATS[2], "level": 1, "chunk": 4}
    wanted = matmul_values(left.matrices(), right.matrices(), initial=initial, out=SIXTEEN_BIT_FORMATS[2], **options)
    with kernels.use("numpy"):
        assert_same_bits(
            indexed_values(left, right, initial=initial, **options).view(np.uint32), wanted.view(np.uint32)
        )
    none = np.zeros(0, np.int64)
    empty = indexed_values(left._replace(columns=none), right._replace(rows=none), initial=initial, **options)
    assert_same_bits(empty, np.full((2, 3, 4), 0.099975586, np.float32))  # 0.1 rounded
    assert indexed_values(left._replace(rows=none), right, **options).shape == (2, 0, 4)
