"""The array of lanes against `golden.matmul`: every level, format, chunk and mode, from its ports alone."""

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, FLOAT8_E4M3FN
from hdl import Error, MatrixMac

from .matrix_bench import Beat, answers, in_turn, refused, run, tile
from .simulators import sometimes, unit_of

FORMATS = (CBFLOAT16, FP16, BF16)


def codes(rng, fmt, *shape):
    """Codes of any kind: mostly near one, some from the whole range."""
    usual = golden.encode(rng.normal(size=shape), fmt)
    return np.where(rng.random(shape) < 0.2, rng.integers(0, 1 << fmt.width, shape), usual).astype(usual.dtype)


def by_tile(done, unit):
    return {register: done.of(register) for register in range(unit.registers)}


@pytest.mark.parametrize("chunk", [0, 1, 3])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_matrix_mac_on_tiles_in_rotation_is_golden(level, chunk):
    unit = unit_of(MatrixMac, rows=2, columns=3, operands=FORMATS)
    rng = np.random.default_rng(31)
    queues, wanted = [], {register: [] for register in range(8)}
    for register in range(8):
        fmt = register % 3
        a, b = codes(rng, FORMATS[fmt], 2, 7), codes(rng, FORMATS[fmt], 7, 3)
        queues.append(tile(a, b, register=register, level=level, format=fmt))
        wanted[register] = answers(unit, a, b, format=fmt, register=register, level=level, chunk=chunk)
    done = run(unit, in_turn(*queues), chunk=chunk)
    assert by_tile(done, unit) == wanted


def test_matrix_mac_on_a_refused_beat_answers_with_one_beat_and_changes_nothing():
    unit = unit_of(MatrixMac, rows=2, columns=3, operands=FORMATS)
    rng = np.random.default_rng(32)
    a, b = codes(rng, CBFLOAT16, 2, 4), codes(rng, CBFLOAT16, 4, 3)
    beats = tile(a, b, register=3, level=1)
    bad = [Beat((0, 0), (0, 0, 0), register=3, level=3), Beat((0, 0), (0, 0, 0), register=3, level=2, format=3)]
    done = run(unit, [*beats[:2], *bad, *beats[2:]], chunk=2)
    assert done.results == [
        *[refused(unit, Error.UNSUPPORTED, 3)] * 2, *answers(unit, a, b, register=3, level=1, chunk=2)
    ]  # fmt: skip
