"""Vectors in TestFloat's format: lines of our own, right and wrong."""

import io
import sys

import numpy as np
import pytest

from golden import FP16
from lab.suites import testfloat
from lab.suites.__main__ import main
from lab.suites.functions import FUNCTIONS, VectorError, Vectors
from lab.suites.judge import Tally, judge
from tools import evidence

ALL = ["--design", "golden", "--design", "reference", "--design", "netlist"]
LINES = {
    "f32_to_f16": [
        "3F800000 3C00 00",
        "3F801000 3C00 01",  # 1 + 2^-11, a tie to even below
        "3F803000 3C02 01",  # 1 + 3 * 2^-11, a tie to even above
        "477FEFFF 7BFF 01",
        "477FF000 7C00 05",  # 65520, a tie to infinity
        "B3000000 8000 03",  # -2^-25, a tie to zero
        "387FE000 0400 03",  # 2^-14 - 2^-25: 11 bits of an unbounded exponent hold it, so it is tiny
        "387FF000 0400 01",  # 2^-14 - 2^-26: they do not, and round up to 2^-14
        "7F800001 7E00 10",
        "FFFFFFFF 7E00 00",
    ],
    "f16_to_f32": ["0001 33800000 00", "8000 80000000 00", "FC01 7FC00000 10"],
    "f32_to_bf16": ["3F808000 3F80 01", "3F818000 3F82 01", "7F7FFFFF 7F80 05"],
    "bf16_to_f32": ["0001 00010000 00", "FF81 7FC00000 10"],
    "f16_mulAdd": [
        "3C00 3C00 3C00 4000 00",
        "3EB1 26F3 3FBC 3FEB 01",  # rounded twice, through float32, it would be 3FEA
        "7C00 0000 7E00 7E00 10",  # infinity times zero beside a quiet NaN
        "8000 3C00 8000 8000 00",
        "7BFF 7BFF 0000 7C00 05",
    ],
    "f16_add": [
        "3C00 3C00 4000 00",
        "8000 8000 8000 00",
        "8000 0000 0000 00",
        "7BFF 4B80 7BFF 01",
        "7C00 FC00 7E00 10",
    ],
    "f16_sub": [
        "3C00 3C00 0000 00",
        "8000 0000 8000 00",
        "0000 0000 0000 00",
        "7C00 7C00 7E00 10",
        "7E00 7D00 7E00 10",
    ],
    "f16_mul": [
        "C000 4200 C600 00",
        "8000 3C00 8000 00",
        "8001 0001 8000 03",
        "8000 8000 0000 00",
        "7C00 8000 7E00 10",
    ],
    "f32_mulAdd": ["3F800000 40000000 3F800000 40400000 00", "7F7FFFFF 7F7FFFFF 00000000 7F800000 05"],
}


SHARED = ["f16_mulAdd", "f16_add", "f16_sub", "f16_mul"]


def write(folder, name, lines):
    path = folder / f"{name}.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.turns
@pytest.mark.parametrize("function", LINES)
def test_testfloat_file_of_right_vectors_passes_on_every_design(tmp_path, capsys, function):
    assert main([write(tmp_path, function, LINES[function]), *ALL]) == 0
    count = len(LINES[function])
    assert f"{count} vectors read, {count} run, 0 left out" in capsys.readouterr().out


def test_testfloat_files_of_steps_pass_on_the_step_whose_format_is_chosen_at_run_time(tmp_path, capsys):
    paths = [write(tmp_path, function, LINES[function]) for function in SHARED]
    assert main([*paths, "--design", "shared-netlist"]) == 0
    assert "20 vectors read, 20 run, 0 left out, 20 comparisons" in capsys.readouterr().out


def test_testfloat_vectors_that_none_of_the_designs_computes_fail(tmp_path, capsys):
    # There is no netlist of a step with float32 operands; no 16-bit format has the value 0x3F800001.
    path = write(tmp_path, "f32_mulAdd", ["3F800001 3F800001 00000000 3F800002 01"])
    assert main([path, "--design", "golden"]) == 0
    assert main([path, "--design", "netlist"]) == 1
    out = capsys.readouterr().out
    assert "computed by none of the designs" in out
    assert "1 vectors read, 0 run, 1 left out" in out


@pytest.mark.parametrize(
    ("right", "wrong", "got"),
    [("3C00 4000 00", "3C00 4001 00", "got 0x4000 flags 0x00, must be 0x4001 flags 0x00"),
     ("26F3 3FBC 3FEB 01", "26F3 3FBC 3FEB 00", "got 0x3feb flags 0x01, must be 0x3feb flags 0x00"),
     ("7E00 7E00 10", "7E00 FE00 10", "got 0x7e00 flags 0x10, must be 0xfe00 flags 0x10")],
    ids=["result", "flag", "sign_of_nan"],
)  # fmt: skip
@pytest.mark.parametrize("design", ["golden", "reference", "netlist"])
def test_testfloat_file_with_a_wrong_vector_fails_and_shows_its_line(tmp_path, capsys, right, wrong, got, design):
    lines = [line.replace(right, wrong) for line in LINES["f16_mulAdd"]]
    at = next(at for at, line in enumerate(lines, 1) if wrong in line)
    path = write(tmp_path, "f16_mulAdd", lines)
    assert main([path, "--design", design]) == 1
    out = capsys.readouterr().out
    assert f"{path}:{at}: f16_mulAdd, float16 step into float16, {design}: " in out
    assert got in out
    assert "5 vectors read, 5 run, 0 left out, 5 comparisons, 1 mismatches" in out


def test_testfloat_mismatches_beyond_those_shown_are_counted(tmp_path, capsys):
    path = write(tmp_path, "f16_to_f32", ["3C00 3F800001 00"] * 5)
    assert main([path, "--design", "golden", "--show", "2"]) == 1
    out = capsys.readouterr().out
    assert out.count("got 0x3f800000") == 2
    assert "... and 3 more" in out
    assert "5 mismatches" in out


@pytest.mark.parametrize(
    "line",
    ["3C00 3C00 3C00 4000", "3C00 3C00 3C00 4000 0", "3C00 3C00 3C00 4000 00 ", "3C00 3C00 3C00 40000 00",
     "3C00 3C0G 3C00 4000 00", "3C00,3C00 3C00 4000 00", "3C00 3C00 3C00 4000 00\r", "", "3C00 3C00 +C00 4000 00"],
)  # fmt: skip
def test_testfloat_line_that_is_none_is_named_with_its_number(tmp_path, capsys, line):
    path = write(tmp_path, "f16_mulAdd", [*LINES["f16_mulAdd"], line, "3C00 3C00 3C00 4000 00"])
    assert main([path, "--design", "golden"]) == 2
    error = capsys.readouterr().err
    assert f"{path}:6: got {line!r}, must be operands, result and flags of f16_mulAdd" in error


def test_testfloat_file_is_read_block_by_block_with_its_line_numbers(monkeypatch):
    monkeypatch.setattr(testfloat, "BLOCK", 2)
    text = "".join(f"{code:04X} 00000000 00\n" for code in range(5)).removesuffix("\n").encode()
    blocks = list(testfloat.read_testfloat(io.BytesIO(text), "-", FUNCTIONS["f16_to_f32"]))
    assert [block.lines.tolist() for block in blocks] == [[1, 2], [3, 4], [5]]
    assert np.concatenate([block.given[0] for block in blocks]).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(VectorError, match=r"^-:4: got 'x'"):
        list(testfloat.read_testfloat(io.BytesIO(text[:51] + b"x\n"), "-", FUNCTIONS["f16_to_f32"]))


def test_testfloat_vectors_come_from_standard_input_too(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"3c00 3f800000 00\n")))
    assert main(["-", "--operation", "f16_to_f32", "--design", "golden"]) == 0
    assert "1 vectors read, 1 run" in capsys.readouterr().out


def test_testfloat_file_of_no_vectors_fails(tmp_path, capsys):
    assert main([write(tmp_path, "f16_add", []), "--design", "golden"]) == 1
    assert "FAILED: no vector" in capsys.readouterr().out


def test_testfloat_file_of_no_vectors_beside_a_full_one_fails(tmp_path, capsys):
    # A generator that stops at once leaves an empty file; the others hold nothing about its function.
    paths = [write(tmp_path, "f16_add", []), write(tmp_path, "f16_mul", LINES["f16_mul"])]
    assert main([*paths, "--design", "golden"]) == 1
    out = capsys.readouterr().out
    assert "5 vectors read, 5 run, 0 left out" in out
    assert f"FAILED: {paths[0]}: no vector in it" in out.replace("\n", " ")


def tally_of(*changes, design="golden"):
    """The judge's answers to 1 + 1 in float16, one for each change of its result and its flags."""
    tally, ones = Tally(), [np.array([FP16.one], np.uint16)] * 2
    for result, flags in changes:
        wanted = np.array([0x4000 ^ result], np.uint16), np.array([flags], np.uint8)
        judge(Vectors(FUNCTIONS["f16_add"], ones, *wanted, np.arange(1)), [design], "-", tally, shown=0)
    return tally


@pytest.mark.parametrize("design", ["golden", "reference", "netlist", "shared-netlist"])
def test_judge_tells_every_bit_of_result_and_flags_by_itself(design):
    bits = [(1 << bit, 0) for bit in range(16)] + [(0, 1 << bit) for bit in range(5)]
    for change in bits:
        assert tally_of(change, design=design).wrong.total() == 1, change


def test_judge_adds_up_what_is_wrong_in_all_parts_of_a_file():
    # A right block behind a wrong one must not hide it.
    tally = tally_of((0, 0), (1, 0), (0, 16), (0, 0))
    assert (tally.applied, tally.judged.total(), tally.wrong.total()) == (4, 4, 2)


def test_suites_evidence_counts_converters_and_step_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(evidence, "BUILD", tmp_path / "evidence")
    right, wrong = LINES["f16_add"], "3C00 3C00 4001 00"
    paths = [write(tmp_path, "f16_add", [*right, wrong]), write(tmp_path, "f16_to_f32", LINES["f16_to_f32"])]
    assert main([*paths, "--design", "golden", "--evidence"]) == 1
    kept = evidence.kept(evidence.BUILD)["suites"]
    assert kept.command == "python -m lab.suites --design golden --evidence FILE..."
    assert evidence.records_of(kept) == [
        evidence.Record(evidence.Part.STEP, evidence.Means.SUITES, 6, "comparisons", 1),
        evidence.Record(evidence.Part.CONVERTERS, evidence.Means.SUITES, 3, "comparisons", 0),
    ]


def test_suites_evidence_of_a_run_with_an_empty_file_is_not_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(evidence, "BUILD", tmp_path / "evidence")
    paths = [write(tmp_path, "f16_add", []), write(tmp_path, "f16_mul", LINES["f16_mul"])]
    assert main([*paths, "--design", "golden", "--evidence"]) == 1
    assert not evidence.BUILD.exists()


def test_judge_float32_step_of_16_bit_operands_runs_on_the_step_of_each_format():
    # 1 * 2 + 1 = 3; 0x3F801000 is a value of float16 and of no format of fewer fraction bits.
    codes = [np.array(column, np.uint32) for column in ([0x3F800000, 0x3F801000], [0x40000000] * 2, [0x3F800000] * 2)]
    results, flags = np.array([0x40400000, 0x40401000], np.uint32), np.zeros(2, np.uint8)
    tally = Tally()
    judge(Vectors(FUNCTIONS["f32_mulAdd"], codes, results, flags, np.arange(2)), ["golden"], "-", tally, shown=9)
    assert tally.wrong.total() == 0
    assert {unit: count for (_, unit, _), count in tally.judged.items()} == {
        "float32 step into float32": 2, "float16 step into float32": 1, "bfloat16 step into float32": 1,
        "cbfloat16 step into float32": 1, "cb16 step into float32": 1,
    }  # fmt: skip


def test_testfloat_file_of_an_unknown_function_is_refused(tmp_path, capsys):
    path = write(tmp_path, "f64_add", ["0"])
    with pytest.raises(SystemExit, match="2"):
        main([path])
    assert f"--operation: got none for {path}, must be one of f16_to_bf16, " in capsys.readouterr().err


def test_testfloat_file_that_is_missing_is_an_error(tmp_path, capsys):
    assert main([str(tmp_path / "f16_add.txt")]) == 2
    assert "No such file" in capsys.readouterr().err


# 1 + 2^-11 is half way between two values of float16; a sum of these is between 1 and its neighbour above.
IN_MODES = {
    "near_even": ["3F801000 3C00 01", "BF801000 BC00 01", "477FF000 7C00 05"],
    "minMag": ["3F801000 3C00 01", "BF801000 BC00 01", "477FF000 7BFF 01"],
    "min": ["3F801000 3C00 01", "BF801000 BC01 01", "477FF000 7BFF 01"],
    "max": ["3F801000 3C01 01", "BF801000 BC00 01", "477FF000 7C00 05"],
    "near_maxMag": ["3F801000 3C01 01", "BF801000 BC01 01", "477FF000 7C00 05"],
    "odd": ["3F801000 3C01 01", "BF801000 BC01 01", "477FF000 7BFF 01"],
}
STEPS_IN_MODES = {
    "near_even": ["3C00 3C00 8C00 3C00 01", "3C00 3C00 BC00 0000 00"],
    "minMag": ["3C00 3C00 8C00 3BFF 01", "3C00 3C00 BC00 0000 00"],
    "min": ["3C00 3C00 8C00 3BFF 01", "3C00 3C00 BC00 8000 00"],
    "max": ["3C00 3C00 8C00 3C00 01", "3C00 3C00 BC00 0000 00"],
    "near_maxMag": ["3C00 3C00 8C00 3C00 01", "3C00 3C00 BC00 0000 00"],
    "odd": ["3C00 3C00 8C00 3BFF 01", "3C00 3C00 BC00 0000 00"],
}


@pytest.mark.long
@pytest.mark.parametrize("mode", IN_MODES)
def test_testfloat_files_in_a_mode_pass_in_it_and_fail_in_another(tmp_path, capsys, mode):
    paths = [write(tmp_path, "f32_to_f16", IN_MODES[mode]), write(tmp_path, "f16_mulAdd", STEPS_IN_MODES[mode])]
    assert main([*paths, *ALL, "--rounding", mode]) == 0
    assert "5 vectors read, 5 run, 0 left out, 15 comparisons" in capsys.readouterr().out
    other = "max" if mode != "max" else "min"
    assert main([*paths, *ALL, "--rounding", other]) == 1


def test_testfloat_step_in_a_mode_runs_on_the_step_whose_format_is_chosen_at_run_time(tmp_path):
    path = write(tmp_path, "f16_mulAdd", STEPS_IN_MODES["min"])
    assert main([path, "--design", "shared-netlist", "--rounding", "min"]) == 0
    assert main([path, "--design", "shared-netlist"]) == 1


def test_mode_of_an_fpgen_file_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "a.fptest"), "--rounding", "min"])
    assert "--rounding: got min for a .fptest file, must be near_even there" in capsys.readouterr().err
