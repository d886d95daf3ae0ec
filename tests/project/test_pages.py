"""Pages show what really happens: their Python runs as doctests, their commands run and print the shown output."""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from golden import FloatFormat
from golden.formats import FORMATS, WIDE_FORMATS
from tests.hdl.test_fusesoc import fusesoc, write_cores

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name != "CHANGELOG.md"
}
#: Pages of whole programs, whose Python shows no output: their examples are in tests/torch and tests/hdl.
PROGRAMS = ("docs/cerebras.md", "docs/extending-lanes.md", "docs/report.md", "docs/runs.md", "docs/training.md")
DOCTEST_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: str, language: str) -> list[str]:
    """Return the contents of a page's fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


def shown_commands(page: str) -> list[tuple[str, str]]:
    """Return the commands of the console blocks, each with the output shown below it, if any."""
    shown = []
    for block in blocks(page, "console"):
        assert block.startswith("$ "), page
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            shown.append((command.split("  #")[0].strip(), output))
    return shown


# A command that several pages show runs once for each output that they show.
COMMANDS = sorted({shown for page in PAGES if page not in PROGRAMS for shown in shown_commands(page)})
WITH_PYTHON = [page for page in PAGES if blocks(page, "python") and page not in PROGRAMS]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make outside of the make that may have started the tests."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


def extras() -> set[str]:
    """Return the names in brackets that a user may install."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(settings["project"]["optional-dependencies"])


def test_pages_with_examples_are_those_that_are_expected() -> None:
    # A page that the patterns above do not find would pass unseen.
    assert {"README.md", "docs/surprises.md"} <= set(WITH_PYTHON)
    assert {f"docs/getting-started-{user}.md" for user in ("fpga", "verification", "training")} <= set(WITH_PYTHON)
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_blocks_run_as_shown(page: str) -> None:
    # The blocks of a page are one session: a later one uses the imports of an earlier one.
    session: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=DOCTEST_OPTIONS)
    for at, block in enumerate(blocks(page, "python"), 1):
        example = doctest.DocTestParser().get_doctest(block, session, f"{page}, Python block {at}", page, 0)
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
    if words[:2] == ["pip", "install"]:  # it would change the environment of the tests
        assert re.fullmatch(r"\.|\.\[\w+\]", words[2])
        assert set(re.findall(r"\w+", words[2])) <= extras()
        assert words[3:] in ([], ["-c", "constraints.txt"])
        return
    if words[0] == "fusesoc":
        write_cores(tmp_path / "build" / "verilog")
        # Compiling a model takes long; the tests of the core files do it once.
        done = fusesoc(tmp_path, *(word for word in words[1:] if word != "--build"))
        assert done.returncode == 0, done.stderr
        return
    assert words[0] == "python", "a command whose output nobody checks"
    if words[1] == "-m" and re.match(r"sim|lab|golden\.torch\.examples", words[2]):  # too long to run here
        words, output = [*words[:3], "--help"], ""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if output:
        # A console shows no <BLANKLINE>; blank lines are left out on both sides.
        expected, got = ("\n".join(filter(str.strip, text.splitlines())) + "\n" for text in (output, done.stdout))
        assert doctest.OutputChecker().check_output(expected, got, DOCTEST_OPTIONS), done.stdout


@pytest.mark.parametrize(("page", "formats"), [("README.md", WIDE_FORMATS), ("docs/numerics.md", FORMATS)])
def test_format_table_is_that_of_the_code(page: str, formats: tuple[FloatFormat, ...]) -> None:
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in PAGES[page].splitlines() if " / " in line]
    table = {row[0].split("`")[0]: row[1:] for row in rows if len(row) == 8}
    assert list(table) == [fmt.name for fmt in formats]
    for fmt in formats:
        widths, bias, _, normal, subnormal, infinity, nan = table[fmt.name]
        assert widths == f"1 / {fmt.exponent_bits} / {fmt.fraction_bits}"
        assert int(bias) == fmt.bias
        last_place = f"2^{fmt.emin - fmt.fraction_bits}"
        assert normal == f"2^{fmt.emin}" + f" + {last_place}" * fmt.normal_zero_field
        assert subnormal == (last_place if fmt.subnormals else "none")
        assert infinity == "none" if not fmt.has_inf else int(infinity, 16) == fmt.inf
        assert nan == "none" if not fmt.has_nan else int(nan, 16) == fmt.nan


def test_bare_make_lists_every_target() -> None:
    listed = make()
    assert listed.returncode == 0
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"sim", "test", "verilog", "sim-mutants", "lint", "clean", "distclean"} <= set(targets)
    for target in targets:
        assert re.search(rf"^  {target} ", listed.stdout, re.MULTILINE)


def test_front_page_fits_a_few_screens() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 200


def test_front_page_links_the_contract_first() -> None:
    assert re.findall(r"\]\(([^)]+\.md[^)]*)\)", PAGES["README.md"])[0] == "docs/numerics.md"
