"""The exhaustive checks: their independent rounding, their pieces, and that a difference or a gap fails a check."""

import os

import numpy as np
import pytest
from rich.console import Console

from golden import BF16, CBFLOAT16, FLOAT8_E4M3FN, FP16, convert, decode, kernels, reference
from golden.formats import FP32, NARROW_FORMATS, SIXTEEN_BIT_FORMATS
from lab.exhaustive import __main__ as command
from lab.exhaustive import quantisers
from lab.exhaustive.check import SHOWN, Check, Checked, Comparison, compare_bits, run
from lab.exhaustive.kept import Finding
from lab.exhaustive.quantisers import quantiser_checks
from lab.exhaustive.rounding import codes_from_float32, values_of_codes

FORMATS = pytest.mark.parametrize("fmt", [*SIXTEEN_BIT_FORMATS, *NARROW_FORMATS], ids=str)
PIECE = 1 << 12


@FORMATS
def test_integer_rounding_is_the_references_at_every_exponent(fmt):
    rng = np.random.default_rng(0)
    for top in range(512):
        fractions = np.unique([0, 1, 2**22, 2**23 - 1, *(1 << rng.integers(0, 23, 3)), *rng.integers(0, 2**23, 4)])
        inputs = ((top << 23) + fractions).astype(np.uint32)
        got = np.broadcast_to(codes_from_float32(inputs, fmt), inputs.shape)
        for code, result in zip(inputs.tolist(), got.tolist(), strict=True):
            assert result == reference.convert(code, FP32, fmt)[0], hex(code)


@FORMATS
def test_values_of_codes_are_decodes(fmt):
    codes = np.arange(2**fmt.width, dtype=np.uint16)
    np.testing.assert_array_equal(values_of_codes(fmt), decode(codes, fmt).view(np.uint32))
    np.testing.assert_array_equal(values_of_codes(fmt), convert(codes, fmt, FP32))


def test_integer_rounding_of_several_exponents_raises():
    with pytest.raises(ValueError, match="inputs: got 0x7fffff to 0x800000, must lie in one exponent field"):
        codes_from_float32(np.array([0x7FFFFF, 0x800000], np.uint32), CBFLOAT16)


@pytest.mark.parametrize("check", quantiser_checks(), ids=lambda check: check.name)
def test_quantisers_agree_at_the_start_of_every_exponent_and_sign(check):
    assert check.total == 2**32
    for top in range(512):
        found = check.compare(top << 23, (top << 23) + PIECE)
        assert (found.count, found.examples) == (PIECE, [])


@pytest.mark.parametrize("fmt", [CBFLOAT16, FLOAT8_E4M3FN], ids=str)
@pytest.mark.parametrize("judge", ["codes_from_float32", "encode", "quantize"])
def test_a_fault_on_either_side_is_seen_and_shown(monkeypatch, judge, fmt):
    right = getattr(quantisers, judge)

    def wrong(given, fmt):
        result = np.array(right(given, fmt))
        flat = result.view(f"u{result.itemsize}")
        flat[7] ^= 1
        return result

    monkeypatch.setattr(quantisers, judge, wrong)
    (check,) = quantiser_checks([fmt])
    found = check.compare(0x3F800000, 0x3F800000 + PIECE)
    assert found.count == PIECE
    assert found.wrong >= 1
    assert "0x3f800007 gives" in found.examples[0]


@pytest.mark.parametrize("start", [0, 0x3F810000, 0x7FFFF000, 0x80000000, 0xBF810000, 0xFFFFF000], ids=hex)
@pytest.mark.parametrize("judged", ["encode", "quantize"])
def test_quantisers_are_given_the_very_inputs_of_a_piece(monkeypatch, judged, start):
    # As many inputs may be compared as there are, and half of them never: the other half twice.
    given, right = [], getattr(quantisers, judged)
    monkeypatch.setattr(
        quantisers, judged, lambda values, fmt: given.append(values.view(np.uint32)) or right(values, fmt)
    )
    (check,) = quantiser_checks([CBFLOAT16])
    assert check.compare(start, start + PIECE).wrong == 0
    (inputs,) = given
    assert inputs.tolist() == list(range(start, start + PIECE))


@pytest.mark.parametrize(
    ("fmt", "judged", "others"),
    [
        (FP16, (0x38800000, 0x477FF000, 0xB8800000, 0xC77FF000), (0, 0x387FF000, 0x47800000, 0x80000000, 0x7F800000)),
        (BF16, (0, 0x3F800000, 0x7F800000, 0x80000000, 0xFFFFF000), ()),
        (FLOAT8_E4M3FN, (0x3A000000, 0x3F800000, 0x44FFF000, 0xBF800000), (0, 0x39FFF000, 0x45000000, 0xFFFFF000)),
        (CBFLOAT16, (), (0, 0x3F800000, 0xBF800000)),
    ],
    ids=str,
)
def test_quantisers_are_compared_with_another_library_wherever_they_say_so(monkeypatch, fmt, judged, others):
    told, right = [], quantisers.compare_bits
    monkeypatch.setattr(quantisers, "compare_bits", lambda label, *given: told.append(label) or right(label, *given))
    (check,) = quantiser_checks([fmt])
    for starts, count in ((judged, 3), (others, 2)):
        for start in starts:
            told.clear()
            assert check.compare(start, start + PIECE).wrong == 0
            assert len(told) == count, hex(start)
            assert count == 2 or told[2] in check.against


@pytest.mark.parametrize("fmt", [FP16, BF16, FLOAT8_E4M3FN], ids=str)
def test_difference_from_another_library_alone_is_one(monkeypatch, fmt):
    right = quantisers._Cast.judge
    monkeypatch.setattr(
        quantisers._Cast, "judge", lambda self, inputs, fmt, wanted: right(self, inputs, fmt, wanted ^ 1)
    )
    (check,) = quantiser_checks([fmt])
    found = check.compare(0x3F800000, 0x3F800000 + PIECE)
    assert (found.count, found.wrong) == (PIECE, PIECE)


def test_pieces_cover_all_inputs_once_and_lie_in_one_exponent():
    for check in quantiser_checks():
        assert 2**23 % check.piece == 0
    check = Check("some", 1000, "nobody", lambda start, stop: Comparison(stop - start), piece=64)
    ranges = list(check.ranges())
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == 1000
    told = []
    outcome = run(check, 3, told.append)
    assert (outcome.count, sum(told), outcome.passed) == (1000, 1000, True)


@pytest.mark.parametrize("by_processes", [False, True])
def test_differences_of_all_pieces_are_counted_and_the_first_shown_in_order(by_processes):
    prepared = []

    def compare(start, stop):
        assert prepared == ["here"]
        return Comparison(stop - start, 1, [f"{start} by {os.getpid()}"])

    check = Check("some", 1000, "nobody", compare, 64, lambda: prepared.append("here"), by_processes)
    outcome = run(check, 2)
    assert (outcome.count, outcome.wrong, outcome.complete, outcome.passed) == (1000, 16, True, False)
    shown, processes = zip(*(each.split(" by ") for each in outcome.examples), strict=True)
    assert shown == ("0", "64", "128", "192", "256")
    assert (str(os.getpid()) in processes) != by_processes


@pytest.mark.parametrize("by_processes", [False, True])
def test_a_check_that_compares_too_little_or_too_much_has_not_passed(by_processes):
    for extra in (-1, 1):

        def compare(start, stop, extra=extra):
            return Comparison(stop - start + extra)

        outcome = run(Check("some", 100, "nobody", compare, piece=50, by_processes=by_processes), 1)
        assert (outcome.wrong, outcome.complete, outcome.passed) == (0, False, False)


def test_compare_bits_counts_all_and_shows_the_first():
    inputs = np.arange(100, 110)
    found = compare_bits("left", inputs, np.zeros(10, int), np.ones(10, int))
    assert (found.count, found.wrong, len(found.examples)) == (10, 10, SHOWN)
    assert found.examples[0] == "left: 0x64 gives 0x0, must be 0x1"
    with pytest.raises(ValueError, match=r"got: got shape \(9,\), must be that of inputs, \(10,\)"):
        compare_bits("left", inputs, np.zeros(9, int), np.ones(10, int))


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.exhaustive.kept.FOLDER", tmp_path / "exhaustive")


def run_command(monkeypatch, compare, *arguments):
    small = [Check("float32_to_some", 1000, "nobody", compare, piece=64)]
    monkeypatch.setattr(command, "_groups", lambda: {name: [] for name in command._DEFAULT} | {"quantisers": small})
    return command.main(["--anew", *arguments])


def test_command_reports_and_returns_0_only_if_all_is_right(monkeypatch, capsys):
    assert run_command(monkeypatch, lambda start, stop: Comparison(stop - start), "--jobs", "2") == 0
    assert "pass" in capsys.readouterr().out
    wrong = Comparison(64, 1, ["encode: 0x1 gives 0x2, must be 0x3"])
    assert run_command(monkeypatch, lambda start, stop: wrong) == 1
    said = capsys.readouterr().out
    assert "FAIL" in said
    assert "float32_to_some: encode: 0x1 gives 0x2, must be 0x3" in said
    assert run_command(monkeypatch, lambda start, stop: Comparison(0)) == 1
    assert "float32_to_some: compared 0 of 1000 inputs" in capsys.readouterr().out


def test_report_shows_counts_of_ten_digits_whole(capsys):
    check = Check("netlist_float32_to_cbfloat16", 2**32, "golden.multiply_accumulate, and somebody else", None)
    for width in (80, 130):
        command._report([Finding(Checked(check, 2**32), 1000.0, "2026-01-02", "unknown", True)], Console(width=width))
        assert "4294967296" in capsys.readouterr().out


def test_groups_and_checks_are_chosen_by_name_each_once(monkeypatch, capsys):
    ran = []

    def check(name):
        return Check(name, 64, "nobody", lambda start, stop: ran.append(name) or Comparison(stop - start))

    groups = {"quantisers": [check("q")], "netlists": [check("n"), check("m")], "steps": [check("s")]}
    groups = {name: [] for name in command._DEFAULT} | groups
    monkeypatch.setattr(command, "_groups", lambda: groups)
    for given, wanted in (([], ["q", "n", "m"]), (["steps"], ["s"]), (["m", "netlists", "m"], ["m", "n"])):
        ran.clear()
        assert command.main(["--anew", *given]) == 0
        assert ran == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["float8"], "CHECK: got float8, must be of float32_to_cbfloat16, float32_to_float16"),
        (["netlist_float8", "steps"], "CHECK: got netlist_float8, must be of float32_to_cbfloat16"),
        (["--jobs", "0"], "argument --jobs: got '0', must be a number of threads from 1 to 1024"),
        (["--path", "sse"], "argument --path: invalid choice: 'sse'"),
    ],
)
def test_command_refuses_what_it_does_not_know(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_command_checks_the_path_that_is_asked_for(monkeypatch, capsys):
    for path in kernels.paths():
        assert run_command(monkeypatch, lambda start, stop: Comparison(stop - start), "--path", path) == 0
        assert f"path {path}" in capsys.readouterr().out
