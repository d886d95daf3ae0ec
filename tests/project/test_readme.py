"""What the README shows is what happens: its Python runs as doctests, its commands run and print what it says."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from golden import FORMATS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCTEST_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(language: str) -> list[str]:
    """Return the contents of the fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def shown_commands() -> list[tuple[str, str]]:
    """Return the commands of the console blocks, each with the output shown below it, if any."""
    shown = []
    for block in blocks("console"):
        assert block.startswith("$ ")
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            shown.append((command.split("  #")[0].strip(), output))
    return shown


COMMANDS = shown_commands()


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make outside of the make that may have started the tests."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_block_runs_as_shown(number: int) -> None:
    # The blocks are one session: a later one uses what an earlier one imported.
    session: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=DOCTEST_OPTIONS)
    for at, block in enumerate(blocks("python")[: number + 1]):
        example = doctest.DocTestParser().get_doctest(
            block, session, f"README.md, Python block {at + 1}", "README.md", 0
        )
        assert example.examples, "a Python block must be a doctest"
        runner.run(example, clear_globs=False)
        session.update(example.globs)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize(("command", "output"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_command_does_what_is_shown(command: str, output: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    if words[0] == "make":  # too long to run here, and `make test` would start itself
        assert make("-n", *words[1:]).returncode == 0
        return
    assert words[0] == "python", "a command whose output nobody checks"
    if words[1:3] == ["-m", "sim"]:
        words = [*words[:3], "--help"]
        output = ""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if output:
        # A console shows no <BLANKLINE>; blank lines are left out on both sides.
        expected, got = ("\n".join(filter(str.strip, text.splitlines())) + "\n" for text in (output, done.stdout))
        assert doctest.OutputChecker().check_output(expected, got, DOCTEST_OPTIONS), done.stdout


def test_format_table_is_that_of_the_code() -> None:
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in README.splitlines() if " / " in line]
    table = {row[0].split("`")[0]: row[1:] for row in rows if len(row) == 8}
    assert list(table) == [fmt.name for fmt in FORMATS]
    for fmt in FORMATS:
        widths, bias, _, normal, subnormal, infinity, nan = table[fmt.name]
        assert widths == f"1 / {fmt.exponent_bits} / {fmt.fraction_bits}"
        assert int(bias) == fmt.bias
        assert normal == f"2^{fmt.emin}"
        assert subnormal == f"2^{fmt.emin - fmt.fraction_bits}"
        assert (int(infinity, 16), int(nan, 16)) == (fmt.inf, fmt.nan)


def test_bare_make_lists_every_target() -> None:
    listed = make()
    assert listed.returncode == 0
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"sim", "test", "verilog", "sim-mutants", "lint", "clean", "distclean"} <= set(targets)
    for target in targets:
        assert re.search(rf"^  {target} ", listed.stdout, re.MULTILINE)


def test_table_of_the_regression_has_its_place() -> None:
    begin, end = README.index("<!-- sim-table:begin -->"), README.index("<!-- sim-table:end -->")
    assert begin < end
