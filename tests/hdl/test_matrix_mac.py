"""The array of lanes against `golden.matmul`: levels, formats, chunks, modes, and the order of rows."""

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FLOAT8_E4M3FN, FP16, FP32, Rounding
from hdl import Error, MatrixMac

from .matrix_bench import Beat, answers, in_turn, load, refused, run, tile
from .simulators import sometimes, unit_of

FORMATS = (CBFLOAT16, FP16, BF16)


def codes(rng, fmt, *shape):
    """Codes of any kind: mostly near one, some from the whole range, some small enough for subnormal sums."""
    usual = golden.encode(rng.normal(size=shape), fmt)
    kind = rng.random(shape)
    small = golden.encode(rng.normal(size=shape) * 2.0 ** (fmt.emin // 2 - 2), fmt)
    anything = rng.integers(0, 1 << fmt.width, shape)
    return np.where(kind < 0.1, anything, np.where(kind < 0.3, small, usual)).astype(usual.dtype)


def tiny(rng, fmt, *shape):
    """Codes whose products are subnormal, or nearly so."""
    return golden.encode(rng.normal(size=shape) * 2.0 ** (fmt.emin / 2 - rng.integers(0, 5, shape)), fmt)


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


@pytest.mark.turns
@pytest.mark.parametrize("draw", [codes, tiny])
@pytest.mark.parametrize(
    "given",
    [
        {"operands": FORMATS},
        {"operands": (CBFLOAT16,), "levels": (1, 2)},
        {"operands": (FP16, CBFLOAT16), "levels": (1, 2), "rows": 7, "columns": 2},  # two promotion units
        {"operands": (BF16,), "levels": (1,)},
        {"operands": (FP16,), "levels": (0, 1)},
        {"operands": (CBFLOAT16,), "levels": (2,), "flags": False},
        {"operands": (FP16, BF16), "levels": (0,), "flags": False},
        {"operands": FORMATS, "subnormals": "flush"},
        {"operands": (CBFLOAT16,), "levels": (2,), "subnormals": "flush"},
        {"operands": (CBFLOAT16,), "rows": 5, "columns": 6, "registers": 4},
        {"operands": (CBFLOAT16,), "rows": 1, "columns": 1, "registers": 2},
        {"operands": (CBFLOAT16,), "rows": 1, "columns": 5, "registers": 32},
    ],
    ids=str,
)
def test_matrix_mac_on_mixed_tiles_that_continue_is_golden(given, draw):
    unit = unit_of(MatrixMac, **{"rows": 3, "columns": 2, **given})
    rng = np.random.default_rng(32)
    chunk, queues, wanted = 3, [], {register: [] for register in range(unit.registers)}
    for register in range(min(unit.registers, 8)):
        beats = []
        for _ in range(4):
            fmt, level = int(rng.integers(len(unit.operands))), int(rng.choice(unit.levels))
            operand = unit.operands[fmt]
            where = {"register": register, "format": fmt, "level": level}
            initial, raised = None, 0
            for part in range(2):
                length = int(rng.integers(1, 9))
                a, b = draw(rng, operand, unit.rows, length), draw(rng, operand, length, unit.columns)
                beats += tile(a, b, first=part == 0, **where)
                rows = answers(unit, a, b, chunk=chunk, initial=initial, raised=raised, **where)
                wanted[register] += rows
                outer = operand if level == 2 else FP32
                initial = np.array([row.result for row in rows], np.uint16 if outer.width == 16 else np.uint32)
                raised = np.array([row.flags for row in rows], np.uint8)
        queues.append(beats)
    done = run(unit, in_turn(*queues), chunk=chunk, offer=sometimes(0.7, 1), take=sometimes(0.6, 2))
    assert by_tile(done, unit) == wanted


@pytest.mark.parametrize("level", [0, 1, 2])
def test_matrix_mac_back_to_back_on_one_tile_is_golden(level):
    unit = unit_of(MatrixMac, rows=2, columns=2, operands=FORMATS)
    rng = np.random.default_rng(33)
    beats, wanted = [], []
    for length in (1, 1, 2, 5, 1):
        a, b = codes(rng, CBFLOAT16, 2, length), codes(rng, CBFLOAT16, length, 2)
        beats += tile(a, b, register=5, level=level)
        wanted += answers(unit, a, b, register=5, level=level, chunk=2)
    assert run(unit, beats, chunk=2).results == wanted


def test_matrix_mac_of_level_2_promotes_a_subnormal_partial_sum_without_normalising_it():
    # 0x0001 came out as 0x7e02, and zero as 0x7e00: the exponent of such a promotion was taken for a normal number's.
    unit = unit_of(MatrixMac, rows=2, columns=1, operands=(CBFLOAT16,), levels=(2,))
    for a, b in (
        ([[0x3DEF], [0x0000]], [[0x0000]]),
        ([[0x9E0E, 0x2D07], [0x0001, 0xFDFF]], [[0x3E00], [0x2EB7]]),
        ([[0x8200, 0x200C], [0x2000, 0x986C]], [[0x3E00], [0x21E8]]),
    ):
        left, right = np.array(a, np.uint16), np.array(b, np.uint16)
        done = run(unit, tile(left, right, level=2), chunk=0)
        assert done.results == answers(unit, left, right, level=2, chunk=0)


@pytest.mark.parametrize("subnormals", ["keep", "flush"])
def test_matrix_mac_in_every_mode_is_golden(subnormals):
    modes = tuple(mode for mode in Rounding if mode is not Rounding.STOCHASTIC)
    unit = unit_of(MatrixMac, rows=2, columns=2, operands=(CBFLOAT16, FP16), roundings=modes, subnormals=subnormals)
    rng = np.random.default_rng(34)
    queues, wanted = [], {register: [] for register in range(8)}
    for register in range(8):
        beats = []
        for mode in modes:
            fmt, level = int(rng.integers(2)), int(rng.integers(3))
            operand = unit.operands[fmt]
            a, b = codes(rng, operand, 2, 6), codes(rng, operand, 6, 2)
            beats += tile(a, b, register=register, format=fmt, level=level, rounding=mode.value)
            wanted[register] += answers(unit, a, b, register=register, format=fmt, level=level, chunk=4, rounding=mode)
        queues.append(beats)
    assert by_tile(run(unit, in_turn(*queues), chunk=4), unit) == wanted


def test_matrix_mac_with_a_single_other_mode_is_golden():
    unit = unit_of(MatrixMac, rows=1, columns=2, operands=(CBFLOAT16,), roundings=(Rounding.UP,), levels=(1, 2))
    rng = np.random.default_rng(35)
    a, b = codes(rng, CBFLOAT16, 1, 9), codes(rng, CBFLOAT16, 9, 2)
    for level in (1, 2):
        done = run(unit, tile(a, b, level=level), chunk=4)
        assert done.results == answers(unit, a, b, level=level, chunk=4, rounding=Rounding.UP)


def test_matrix_mac_of_narrow_operands_widens_them():
    unit = unit_of(MatrixMac, rows=2, columns=3, operands=(FLOAT8_E4M3FN,))
    rng = np.random.default_rng(36)
    a, b = rng.integers(0, 256, (2, 6)).astype(np.uint8), rng.integers(0, 256, (6, 3)).astype(np.uint8)
    for level in (0, 1, 2):
        assert run(unit, tile(a, b, level=level), chunk=4).results == answers(unit, a, b, level=level, chunk=4)


def any_initial(rng, outer, *shape):
    """Codes of the outer format of every kind: zeros of both signs, subnormals, infinities, NaNs, others."""
    special = [0, outer.sign_mask, 1, outer.sign_mask | 1, outer.min_normal - 1, outer.min_normal, outer.inf]
    special += [outer.sign_mask | outer.inf, outer.nan, outer.inf | 1, outer.max_finite]
    usual = golden.encode(rng.normal(size=shape), outer)
    kind = rng.random(shape)
    anything = rng.integers(0, 1 << outer.width, shape)
    found = np.where(kind < 0.3, rng.choice(special, shape), np.where(kind < 0.5, anything, usual))
    return found.astype(usual.dtype)


@pytest.mark.turns
@pytest.mark.parametrize("chunk", [0, 1, 3])
@pytest.mark.parametrize(
    "given",
    [
        {"operands": FORMATS},
        {"operands": (CBFLOAT16,), "levels": (1, 2), "rows": 5, "columns": 6, "registers": 4},
        {"operands": (FP16, CBFLOAT16), "levels": (1, 2), "rows": 7, "columns": 2},  # two promotion units
        {"operands": (BF16,), "levels": (1,)},
        {"operands": (FP16, BF16), "levels": (0,), "flags": False},
        {"operands": (CBFLOAT16,), "levels": (2,), "flags": False, "rows": 1, "registers": 2},
        {"operands": FORMATS, "subnormals": "flush"},
        {"operands": (CBFLOAT16,), "levels": (2,), "subnormals": "flush"},
        {"operands": (FLOAT8_E4M3FN,)},
        {"operands": (FP16, CBFLOAT16), "roundings": tuple(mode for mode in Rounding if mode.value != 6)},
    ],
    ids=str,
)
def test_matrix_mac_from_initial_values_is_golden(given, chunk):
    unit = unit_of(MatrixMac, **{"rows": 3, "columns": 2, "initial": True, **given})
    rng = np.random.default_rng(38)
    queues, wanted = [], {register: [] for register in range(unit.registers)}
    for register in range(min(unit.registers, 8)):
        beats = []
        for _ in range(4):
            fmt, level = int(rng.integers(len(unit.operands))), int(rng.choice(unit.levels))
            operand, mode = unit.operands[fmt], rng.choice([Rounding(each) for each in unit.roundings])
            outer = FP32 if level != 2 else unit.inner or operand
            length = int(rng.integers(1, 6))
            draw = (
                codes
                if outer.width > 8 and operand.width == 16
                else (lambda rng, fmt, *shape: rng.integers(0, 1 << fmt.width, shape).astype(np.uint8))
            )
            a, b = draw(rng, operand, unit.rows, length), draw(rng, operand, length, unit.columns)
            where = {"register": register, "format": fmt, "level": level}
            how = {"rounding": Rounding(mode)}
            initial, begins = None, rng.random() < 0.7
            if begins:
                initial = any_initial(rng, outer, unit.rows, unit.columns)
                beats += load(initial, b, rounding=how["rounding"].value, **where)
            beats += tile(a, b, first=not begins, rounding=how["rounding"].value, **where)
            wanted[register] += answers(unit, a, b, chunk=chunk, initial=initial, **where, **how)
        queues.append(beats)
    done = run(unit, in_turn(*queues), chunk=chunk, offer=sometimes(0.7, 1), take=sometimes(0.6, 2))
    assert by_tile(done, unit) == wanted


def test_matrix_mac_on_empty_reductions_gives_plus_zero():
    unit = unit_of(MatrixMac, rows=2, columns=3, operands=FORMATS)
    for level in (0, 1, 2):
        neutral = Beat((CBFLOAT16.sign_mask,) * 2, (CBFLOAT16.one,) * 3, level=level, first=True, last=True)
        assert [row.result for row in run(unit, [neutral]).results] == [(0, 0, 0)] * 2


def test_matrix_mac_on_refused_beats_answers_each_with_one_beat_and_changes_nothing():
    unit = unit_of(MatrixMac, rows=2, columns=3, operands=FORMATS)
    rng = np.random.default_rng(32)
    a, b = codes(rng, CBFLOAT16, 2, 4), codes(rng, CBFLOAT16, 4, 3)
    beats = tile(a, b, register=3, level=1)
    bad = [Beat((0, 0), (0, 0, 0), register=3, level=3), Beat((0, 0), (0, 0, 0), register=3, level=2, format=3)]
    done = run(unit, [*beats[:2], *bad, *beats[2:], *bad, *bad], chunk=2)
    row = refused(unit, Error.UNSUPPORTED, 3)
    assert done.results == [row, row, *answers(unit, a, b, register=3, level=1, chunk=2), row, row, row, row]


def test_matrix_mac_sends_the_rows_of_a_tile_one_after_the_other():
    unit = unit_of(MatrixMac, rows=4, columns=2, operands=(CBFLOAT16,))
    rng = np.random.default_rng(37)
    queues = [
        tile(codes(rng, CBFLOAT16, 4, 3), codes(rng, CBFLOAT16, 3, 2), register=register, level=0)
        for register in range(8)
    ]
    done = run(unit, in_turn(*queues), take=sometimes(0.5, 3))
    assert [(row.register, row.row, row.last_row) for row in done.results] == [
        (register, row, int(row == 3)) for register in range(8) for row in range(4)
    ]


@pytest.mark.parametrize("levels", [(0, 1, 2), (1, 2)], ids=str)
def test_matrix_mac_has_the_latency_that_it_states(levels):
    unit = unit_of(MatrixMac, rows=2, columns=3, operands=FORMATS, levels=levels)
    done = run(unit, [Beat((0, 0), (0, 0, 0), level=levels[0], first=True, last=True)])
    assert done.left_at[0] - done.accepted_at[0] == unit.latency


@pytest.mark.parametrize(("level", "chunk", "share"), [(0, 0, 0.99), (2, 0, 0.98), (1, 32, 0.95), (2, 32, 0.95)])
@pytest.mark.parametrize("rows", [4, 8])
def test_matrix_mac_in_rotation_issues_products_in_nearly_all_cycles(rows, level, chunk, share):
    unit = unit_of(MatrixMac, rows=rows, columns=1, operands=(CBFLOAT16,))
    length, rounds = 64, 3
    one = CBFLOAT16.one
    beats = [
        Beat((one,) * rows, (one,), register=register, level=level, first=k == 0, last=k == length - 1)
        for _ in range(rounds) for k in range(length) for register in range(8)
    ]  # fmt: skip
    done = run(unit, beats, chunk=chunk)
    assert len(done.results) == rounds * 8 * rows
    cycles = done.accepted_at[-1] - done.accepted_at[0] + 1
    promotions = rounds * 8 * (0 if level == 0 else -(-length // (chunk or length)))
    assert cycles <= len(beats) + promotions
    assert len(beats) / cycles > share


@pytest.mark.parametrize(("rows", "columns"), [(6, 2), (12, 1)])
def test_matrix_mac_with_shared_promotions_and_chunks_of_12_never_waits(rows, columns):
    unit = unit_of(MatrixMac, rows=rows, columns=columns, operands=(CBFLOAT16,), levels=(1, 2), flags=False)
    length, one = 24, CBFLOAT16.one
    beats = [
        Beat((one,) * rows, (one,) * columns, register=register, level=1, first=k == 0, last=k == length - 1)
        for k in range(length) for register in range(8)
    ]  # fmt: skip
    done = run(unit, beats, chunk=12)
    assert len(done.results) == 8 * rows
    assert done.accepted_at[-1] - done.accepted_at[0] + 1 == len(beats)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rows": 0}, "rows: got 0, must be from 1 to 64"),
        ({"columns": 65}, "columns: got 65, must be from 1 to 64"),
        ({"registers": 3}, "registers: got 3, must be a power of two from 2 to 4096"),
        ({"roundings": ("up", "stochastic")}, "roundings: got stochastic, must be other modes"),
    ],
)
def test_matrix_mac_names_a_wrong_parameter(given, error):
    with pytest.raises(ValueError, match=error):
        MatrixMac(**given)
