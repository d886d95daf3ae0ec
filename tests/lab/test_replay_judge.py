"""The judge of the replay, without a netlist: every output of every block is compared, bit by bit, and reported."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import CBFLOAT16, LEVELS
from golden.formats import HALF_FORMATS
from lab.replay import __main__ as command
from lab.replay import judge as judging
from lab.replay.judge import Replayed, judge
from lab.replay.recording import Product
from sim.counts import COUNTERS, as_numbers

ROWS, LENGTH, COLUMNS = 7, 40, 3


def product(seed=0):
    a, b = (
        np.random.default_rng(seed).integers(0, 0x7000, shape, np.uint16)
        for shape in ((ROWS, LENGTH), (LENGTH, COLUMNS))
    )
    return Product("layer", "forward", a, b, CBFLOAT16)


class Right:
    """Golden in the place of a netlist; `codes` and `flags` change its outputs, `counts` its counters."""

    def __init__(self, codes=(), flags=(), counts=()):
        self.codes, self.flags, self.counts = codes, flags, counts

    def matmul(self, a, b, **where):
        codes, flags = golden.dot(a[:, None, :], b.T[None], return_flags=True, **where)
        codes, flags = codes.astype(np.uint32), flags.astype(np.uint8)
        for changed, changes in ((codes, self.codes), (flags, self.flags)):
            for place, bit in changes:
                changed[place] ^= changed.dtype.type(1 << bit)
        return codes, flags, 1

    def counted_matmul(self, a, b, **where):
        *_, counted = golden.dot(a[:, None, :], b.T[None], counts="sum", **where)
        counts = as_numbers(counted)
        for place in self.counts:
            counts[place] += 1
        return *self.matmul(a, b, **where), counts


@pytest.fixture(params=[1, 3, 100], ids=lambda rows: f"{rows}_rows_at_a_time")
def blocks(request, monkeypatch):
    monkeypatch.setattr(judging, "_BLOCK", request.param * LENGTH * COLUMNS)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("level", LEVELS)
def test_replay_of_right_outputs_differs_nowhere(level):
    verdict = judge(product(), level, Right(), counters=True)
    assert (verdict.differ, verdict.first, verdict.miscounted) == (0, "", "")


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("row", range(ROWS))
def test_replay_tells_a_wrong_output_in_any_row(row):
    verdict = judge(product(), 1, Right(codes=[((row, 1), 0)]))
    assert verdict.differ == 1
    assert f"row {row}, column 1: " in verdict.first


@pytest.mark.parametrize("level", LEVELS)
def test_replay_tells_every_bit_of_codes_and_flags_by_itself(level):
    for bit in range(32):
        assert judge(product(), level, Right(codes=[((2, 0), bit)])).differ == 1
    for bit in range(5):
        assert judge(product(), level, Right(flags=[((2, 0), bit)])).differ == 1


@pytest.mark.usefixtures("blocks")
def test_replay_counts_what_differs_in_all_blocks_and_names_the_first():
    verdict = judge(product(), 2, Right(codes=[((1, 0), 3), ((6, 2), 3)], flags=[((4, 1), 0)]))
    assert verdict.differ == 3
    assert "row 1, column 0: " in verdict.first


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("at", range(len(COUNTERS)))
def test_replay_names_any_counter_that_miscounts(at):
    said = judge(product(), 1, Right(counts=[at]), counters=True).miscounted
    assert said.startswith(f"layer forward, cbfloat16 level 1: {COUNTERS[at]} counts ")


def run(monkeypatch, tmp_path, *arguments, differ=(), miscounted=(), counters=False):
    """Run the command on a product of each format; return its status, its judgements and its notes."""
    judged, noted = [], []

    def judges(its, level, netlist, *, counters):
        at = len(judged)
        judged.append((its.operand, level, counters))
        return Replayed(
            its, level, int(at in differ), "here" * (at in differ), 0, 0, 0, 1, "wrong" * (at in miscounted)
        )

    monkeypatch.setattr(command, "Netlist", lambda unit: unit)
    monkeypatch.setattr(command, "enough_products", lambda operand, least: [replace(product(), operand=operand)])
    monkeypatch.setattr(command, "judge", judges)
    monkeypatch.setattr(command, "note", lambda tool, records, *_, **__: noted.extend(records))
    monkeypatch.setattr(command, "draw", lambda *given: None)
    status = command.main(["--jobs", "1", "-o", str(tmp_path), *arguments, *["--counters"] * counters])
    return status, judged, noted


def test_replay_command_judges_every_format_at_every_level_and_notes_how_many(monkeypatch, tmp_path):
    status, judged, (record,) = run(monkeypatch, tmp_path)
    assert (status, judged) == (0, [(fmt, level, False) for fmt in HALF_FORMATS for level in LEVELS])
    assert (record.count, record.wrong) == (9 * ROWS * LENGTH * COLUMNS, 0)
    assert run(monkeypatch, tmp_path, "--products", "5")[2] == []


@pytest.mark.parametrize("at", [0, 4, 8])
def test_replay_command_fails_if_any_output_differs_or_any_counter_does(monkeypatch, tmp_path, at):
    status, _, (record,) = run(monkeypatch, tmp_path, differ=[at])
    assert (status, record.wrong) == (1, 1)
    assert run(monkeypatch, tmp_path, miscounted=[at], counters=True)[0] == 1


def test_replay_takes_as_many_rows_of_each_product_as_reach_the_total(monkeypatch):
    monkeypatch.setattr(command, "EXAMPLES", ("one", "two"))
    monkeypatch.setattr(command, "recorded_products", lambda example, operand: [product()])
    row = 2 * LENGTH * COLUMNS
    for least, rows in ((1, 1), (row, 1), (row + 1, 2), (3 * row, 4), (7 * row, 7)):
        found = command.enough_products(CBFLOAT16, least)
        assert [each.a.shape for each in found] == [(rows, LENGTH)] * 2
    with pytest.raises(ValueError, match=f"--products: got {7 * row + 1}, must be at most {7 * row}"):
        command.enough_products(CBFLOAT16, 7 * row + 1)
