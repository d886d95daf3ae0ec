"""The registers of the matrix engine in C and on its page agree with the table."""

import shutil
import subprocess

import pytest

from hdl.cli import main
from hdl.matrix_engine.documents import MARKERS, filled, to_header, to_markdown
from hdl.matrix_engine.registers import FORMAT_CODES, REGISTERS, EngineError
from tests.project.test_layout import ROOT

PAGE = ROOT / "docs" / "engine.md"


def test_header_compiles_and_has_the_values_of_the_table(tmp_path):
    wanted = {}
    for register in REGISTERS:
        wanted[register.name] = register.address
        for field in register.fields:
            if field.width < 32:
                wanted[f"{register.name}_{field.name.upper()}_SHIFT"] = field.low
                wanted[f"{register.name}_{field.name.upper()}_MASK"] = field.mask
    wanted |= {f"ERROR_{each.name}": each.value for each in EngineError}
    wanted |= {f"FORMAT_{name.upper()}": code for name, code in FORMAT_CODES.items()}
    assert len(wanted) > 100
    assert main(["header", "-o", str(tmp_path / "matrix_engine.h")]) == 0
    lines = [f'  printf("{name} %lu\\n", (unsigned long)MATRIX_ENGINE_{name});' for name in wanted]
    source = "\n".join(["#include <stdio.h>", '#include "matrix_engine.h"', "int main(void) {", *lines, "}"])
    (tmp_path / "main.c").write_text(source)
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert dict(line.split() for line in said.splitlines()) == {name: str(value) for name, value in wanted.items()}


def test_header_defines_each_name_once():
    names = [line.split()[1] for line in to_header().splitlines() if line.startswith("#define")]
    assert len(names) == len(set(names))


def test_page_has_the_table_of_today():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "python -m hdl registers --page docs/engine.md writes it anew"


def test_table_on_a_page_is_renewed_and_the_rest_stays(tmp_path, capsys):
    begin, end = MARKERS
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    assert main(["registers", "--page", str(page)]) == 0
    assert page.read_text() == f"before\n{begin}\n{to_markdown()}{end}\nafter\n"
    page.write_text("nothing")
    assert main(["registers", "--page", str(page)]) == 2
    assert "page: got one without" in capsys.readouterr().err
    assert page.read_text() == "nothing"
    assert main(["registers"]) == 0
    assert "| 0x98 | `SUBMIT` |" in capsys.readouterr().out
