"""Operands from riscv-isac's models: points of our own in their form, and a generator in place of theirs."""

import sys
from types import ModuleType

import pytest

from lab.suites import isac
from lab.suites.__main__ import main as run_suites
from lab.suites.functions import FUNCTIONS

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
