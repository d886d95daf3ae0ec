"""Vectors in FPgen's format and operands of riscv-isac's models: right lines, wrong ones, and functions we lack."""

import sys
from types import ModuleType

import pytest

from lab.suites import isac
from lab.suites.__main__ import main
from lab.suites.__main__ import main as run_suites
from lab.suites.functions import FUNCTIONS

DESIGNS = ["--design", "golden", "--design", "reference", "--design", "netlist"]
HEADING = ["Floating point tests: ours", "b32 is no vector here", ""]
RIGHT = [
    "b32*+ =0 +1.000000P0 +1.000000P1 +1.000000P0 -> +1.400000P1 ",
    "b32*+ =0 x +1.400000P0 -1.400000P0 +1.000000P1 -> -1.000000P-2",
    "b32+ =0 xo +1.000000P0 -Inf -> -Inf ",
    "b32- =0 i +1.000000P0 +1.000000P0 -> +Zero ",
    "b32* =0  +1.7FFFFFP127 +1.000000P1 -> +Inf xo",
    "b32* =0 -Zero +1.000000P0 -> -Zero",
    "b32* =0 +1.000000P-126 +1.7FFFFEP-1 -> +0.7FFFFFP-126 ",
    "b32*+ =0 Q +Inf +Zero -> Q ",
    "b32*+ =0 +Inf -Zero Q -> Q i",
    "b32+ =0 S +Zero -> Q i",
    "b32b16cff =0 +1.002000P0 -> +1.001P0",
    # An inexact result delivers the same number when it is trapped.
    "b32+ =0 x +1.000000P0 +1.000000P-30 -> +1.000000P0 x",
]
# The smallest normal number: tiny before rounding in all, after it where 24 bits of an unbounded exponent end below it.
TINY = [
    "b32*+ =0 +1.000000P-100 -1.000000P-100 +1.000000P-126 -> +1.000000P-126 xu",
    "b32*+ =0 -1.000000P-76 +1.000000P-75 +1.000000P-126 -> +1.000000P-126 xu",  # a tie, to the even
]
TINY_AFTER = [
    "b32*+ =0 -1.000001P-76 +1.000000P-75 +1.000000P-126 -> +1.000000P-126 xu",
    "b32*+ =0 -1.000000P-126 +1.7FFFFFP-1 -Zero -> -1.000000P-126 xu",
]
LEFT_OUT = [
    ("d64+ =0 +1e0 +1e0 -> +2e0", "decimal"),
    ("b64+ =0 +1.0000000000000P0 +Zero -> +1.0000000000000P0", "binary64"),
    ("b32/ =0 +1.000000P0 +Zero -> +Inf z", "operation /"),
    ("b32b64cff =0 +Zero -> +Zero", "conversion from binary32 to binary64"),
    ("b32+ > +1.000000P0 +Zero -> +1.000000P0", "rounding mode >"),
    ("b32+ =^ +1.000000P0 +Zero -> +1.000000P0", "rounding mode =^"),
    ("b32* =0 xo +1.7FFFFFP127 +1.000000P1 -> +1.7FFFFFP-64 o", "trapped overflow"),
    ("b32* =0 u +1.000000P-126 +1.000000P-1 -> +1.000000P65 u", "trapped underflow"),
    ("b32+ =0 i S +Zero -> # i", "trapped invalid operation"),
    ("b32+ =0 i Q +Zero -> # ", "no result given"),
    ("b32+ =0 Q S -> Q ", "signalling NaN that raises nothing"),
]


def write(folder, lines):
    path = folder / "ours.fptest"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.long
def test_fpgen_file_of_right_vectors_passes_on_every_design(tmp_path, capsys):
    lines = [*HEADING, *RIGHT, "", *TINY, *TINY_AFTER]
    assert main([write(tmp_path, lines), *DESIGNS]) == 0
    out = capsys.readouterr().out
    assert "f32_mulAdd: 2 results tiny before rounding only" in out
    assert "16 vectors read, 16 run, 0 left out" in out
    # The factors of all steps but the two with 24 bits are bfloat16's too.
    row = next(
        line for line in out.splitlines() if "f32_mulAdd" in line and "bfloat16 step" in line and "netlist" in line
    )
    assert row.split("│")[4:6] == ["       6 ", "          0 "]


@pytest.mark.parametrize(
    ("line", "got"),
    [("b32*+ =0 +1.000000P0 +1.000000P1 +1.000000P0 -> +1.400001P1", "got 0x40400000 flags 0x00, must be 0x40400001"),
     ("b32* =0 +1.7FFFFFP127 +1.000000P1 -> +Inf o", "got 0x7f800000 flags 0x05, must be 0x7f800000 flags 0x04"),
     ("b32+ =0 S +Zero -> +Zero i", "got 0x7fc00000 flags 0x10, must be 0x00000000 flags 0x10"),
     (TINY_AFTER[0].removesuffix("u"), "got 0x00800000 flags 0x03, must be 0x00800000 flags 0x01"),
     ("b32*+ =0 +1.000000P-76 +1.000000P-75 +1.000000P-126 -> +1.000000P-126 xu",
      "got 0x00800000 flags 0x01, must be 0x00800000 flags 0x03")],
    ids=["result", "flag", "nan", "tiny_after_rounding", "not_tiny_at_all"],
)  # fmt: skip
def test_fpgen_file_with_a_wrong_vector_fails_and_shows_its_line(tmp_path, capsys, line, got):
    path = write(tmp_path, [*HEADING, RIGHT[0], line, RIGHT[1]])
    assert main([path, "--design", "golden"]) == 1
    out = capsys.readouterr().out
    assert f"{path}:5: f32_" in out
    assert got in out


def test_fpgen_vectors_that_are_none_of_ours_are_counted_by_reason(tmp_path, capsys):
    lines = [line for line, _ in LEFT_OUT]
    assert main([write(tmp_path, [RIGHT[0], *lines]), "--design", "golden"]) == 0
    out = capsys.readouterr().out
    for _, reason in LEFT_OUT:
        assert f"│ {reason} " in out
    assert f"{len(lines) + 1} vectors read, 1 run, {len(lines)} left out" in out


def test_fpgen_file_without_a_vector_of_ours_fails(tmp_path, capsys):
    assert main([write(tmp_path, [line for line, _ in LEFT_OUT]), "--design", "golden"]) == 1
    assert "FAILED: no vector" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "why"),
    [("b32+ =0 +Zero +Zero +Zero", "'->'"), ("b32+ = +Zero +Zero -> +Zero", "rounding mode"),
     ("b32+ =0 +Zero -> +Zero", "1 operands, f32_add has 2"), ("b32+ =0 +Zero +Zero -> ", "result"),
     ("b32+ =0 +1.FFFFFFP0 +Zero -> +Zero", "'+1.FFFFFFP0' is no number of float32"),
     ("b32+ =0 +1.00000P0 +Zero -> +Zero", "'+1.00000P0' is no number"),
     ("b32+ =0 +1.000000P128 +Zero -> +Zero", "'+1.000000P128' is no number"),
     ("b32+ =0 +0.000001P-125 +Zero -> +Zero", "'+0.000001P-125' is no number"),
     ("b32+ =0 +Zero +Zero -> Zero", "'Zero' is no number"), ("b32+ =0 +Zero +Zero -> +Zero z", "flag 'z'"),
     ("b32+ =0 +Zero +Zero -> +Zero x x", "flags"), ("Floating point tests: a second heading", "operation")],
)  # fmt: skip
def test_fpgen_line_that_is_none_is_named_with_its_number(tmp_path, capsys, line, why):
    path = write(tmp_path, [*HEADING, RIGHT[0], line])
    assert main([path, "--design", "golden"]) == 2
    error = capsys.readouterr().err
    assert f"{path}:5: got {line.strip()!r}, must be operation, rounding mode" in error
    assert why in error


POINT = "fs1 == 0 and fe1 == 0x0f and fm1 == 0x001 and fs2 == 1 and fe2 == 0x1f and fm2 == 0x200 and  fcsr == 0x0"


def test_isac_point_gives_the_codes_of_its_fields():
    assert list(isac.operands_of_points([POINT], FUNCTIONS["f16_mul"])) == [(0x3C01, 0xFE00)]
    assert list(isac.operands_of_points(["fs1 == 1 and fe1 == 0xFE and fm1 == 0x7FFFFF"], FUNCTIONS["f32_to_f16"])) == [
        (0xFF7FFFFF,)
    ]


@pytest.mark.parametrize("point", ["rs1_val == 0 and fcsr == 0x0", POINT[:40], f"{POINT} and fs3 == 0", ""])
def test_isac_point_of_other_operands_gives_none(point):
    assert list(isac.operands_of_points([point], FUNCTIONS["f16_mul"])) == []


@pytest.fixture
def generator(monkeypatch):
    """Stand for the generator: B1 gives points, B2 raises, B3 exits, B26 has another signature, the rest none."""

    def gives_points(flen, iflen, opcode, ops):
        print("noise")
        assert (flen, iflen, opcode, ops) == (16, 16, "fmul.h", 2)
        return [(POINT, "a comment"), (POINT.replace("0x001", "0x3ff"), ""), (POINT, "")]

    def fails(*arguments):
        raise UnboundLocalError("rs2")

    module = ModuleType("riscv_isac.fp_dataset")
    for number in isac.MODELS:
        setattr(module, f"ibm_b{number}", lambda *arguments: [])
    module.ibm_b1, module.ibm_b2, module.ibm_b3 = gives_points, fails, lambda *arguments: sys.exit(1)
    module.ibm_b26 = lambda xlen, opcode, ops: [("rs1_val == 0", "")]
    monkeypatch.setitem(sys.modules, "riscv_isac", ModuleType("riscv_isac"))
    monkeypatch.setitem(sys.modules, "riscv_isac.fp_dataset", module)
    return module


def test_isac_models_become_lines_that_the_suites_read(generator, tmp_path, capsys):
    assert isac.main(["f16_mul"]) == 0
    said = capsys.readouterr()
    assert said.out == "3C01 FE00 7E00 00\n3FFF FE00 7E00 00\n"
    for line in (
        "B1: 3 points, 2 operands",
        "B2: not for this instruction (UnboundLocalError)",
        "B3: not for this instruction (SystemExit)",
        "B26: 1 points, 0 operands",
        "f16_mul: 2 distinct",
    ):
        assert line in said.err
    path = tmp_path / "f16_mul.txt"
    path.write_text(said.out)
    assert run_suites([str(path), "--design", "golden", "--design", "netlist"]) == 0


def test_isac_models_without_a_point_fail(generator, capsys):
    generator.ibm_b1 = lambda *arguments: []
    assert isac.main(["f16_mul"]) == 1
    assert capsys.readouterr().out == ""


def test_isac_that_is_not_installed_is_an_error(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "riscv_isac", None)
    assert isac.main(["f16_mul"]) == 2
    assert "install riscv-isac" in capsys.readouterr().err
