"""``cbfloat.golden`` and ``cbfloat.hdl`` are `golden` and `hdl`, and another package of such a name is refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.test_layout import ROOT

NAMESPACE = ROOT / "tools" / "namespace"


def run(*arguments: str | Path, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages on its path, behind a folder that comes first."""
    path = os.pathsep.join(str(each) for each in (first, ROOT, NAMESPACE) if each)
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=first or NAMESPACE,
        capture_output=True,
        text=True,
        check=False,
    )


def said(code: str, first: Path | None = None) -> str:
    """Return the output of a program, or the last line of its error."""
    result = run("-c", code, first=first)
    return result.stdout.strip() if result.returncode == 0 else result.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "code",
    [
        "import cbfloat.golden, golden; print(cbfloat.golden is golden)",
        "import golden.arrays.products as one, cbfloat.golden.arrays.products as other; print(one is other)",
        "from cbfloat.golden.formats import FP16; from golden import FloatFormat; print(isinstance(FP16, FloatFormat))",
        "from cbfloat import golden as other; import golden; print(other is golden)",
        "import cbfloat.hdl.mac.lane, hdl.mac.lane; print(cbfloat.hdl.mac.lane is hdl.mac.lane)",
        "from cbfloat.hdl import Error; import hdl; print(Error is hdl.Error)",
        "import cbfloat.golden.torch.amp as one; from golden.torch import amp; print(one is amp)",
        # The module keeps its name: pickles and tracebacks are as ever.
        "import cbfloat.golden.formats as f; print((f.__name__, f.__spec__.name) == ('golden.formats',) * 2)",
        "import cbfloat.golden, sys; print(not {'torch', 'amaranth', 'hdl'} & set(sys.modules))",
        "import cbfloat, sys; print(not {'numpy', 'golden'} & set(sys.modules))",
    ],
)
def test_cbfloat_gives_the_very_module(code):
    assert said(code) == "True"


def test_cbfloat_without_such_a_module_says_so():
    assert said("import cbfloat.golden.nothing") == "ModuleNotFoundError: No module named 'cbfloat.golden.nothing'"
    assert said("import cbfloat.nothing") == "ModuleNotFoundError: No module named 'cbfloat.nothing'"


@pytest.mark.parametrize("package", ["golden", "hdl"])
def test_cbfloat_runs_the_command_of_a_package(package):
    found, wanted = (run("-m", name, "--help") for name in (f"cbfloat.{package}", package))
    assert found.returncode == 0, found.stderr
    assert found.stdout == wanted.stdout


@pytest.mark.parametrize("place", ["golden.py", "golden/__init__.py", "golden/nothing.txt"])
@pytest.mark.parametrize("code", ["import cbfloat.golden", "from cbfloat.golden.formats import FP16", "import hdl"])
def test_golden_of_another_distribution_is_refused_before_it_runs(tmp_path, place, code):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("raise SystemExit('another golden runs')\n")
    if place.endswith(".txt"):  # a folder is no package while there is a real one behind it
        assert said(f"{code}\nprint('ours')", tmp_path) == "ours"
        return
    message = said(code, tmp_path)
    assert message.startswith(
        f"ImportError: golden: found {tmp_path / place}, must be the package golden of the distribution cbfloat"
    )
    assert "pip install --force-reinstall --no-deps" in message


def test_hdl_of_another_distribution_is_refused_before_it_runs(tmp_path):
    (tmp_path / "hdl.py").write_text("raise SystemExit('another hdl runs')\n")
    assert said("import cbfloat.hdl", tmp_path).startswith(
        f"ImportError: hdl: found {tmp_path / 'hdl.py'}, must be the"
    )
    assert said("import cbfloat.golden; print('ours')", tmp_path) == "ours"


def test_golden_that_is_imported_already_is_looked_at_too(tmp_path):
    (tmp_path / "golden.py").write_text("")
    assert said("import golden, cbfloat.golden", tmp_path).startswith("ImportError: golden: found ")


@pytest.mark.parametrize("code", ["import hdl", "import cbfloat.golden"])
def test_golden_below_the_import_hook_of_pytest_is_found(code):
    # cocotb installs it for all files, unless COCOTB_REWRITE_ASSERTION_FILES is empty.
    hook = (
        "from _pytest.assertion import install_importhook; from _pytest.config import Config; "
        "install_importhook(Config.fromdictargs({}, ['-o', 'python_files=*.py', '-p', 'no:cacheprovider'])); "
    )
    loader = said(f"{hook}{code}; import golden; print(type(golden.__loader__).__name__)", ROOT)
    assert loader == "AssertionRewritingHook"


def test_every_documented_module_has_types_under_both_names():
    pages = (ROOT / "docs" / "api").glob("*.md")
    documented = {name for page in pages for name in re.findall(r"surface:: (\S+)", page.read_text(encoding="utf-8"))}
    typed = {}
    for path in (NAMESPACE / "cbfloat").rglob("*.pyi"):
        parts = path.relative_to(NAMESPACE / "cbfloat").with_suffix("").parts
        typed[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    assert documented - set(typed) == set(), "each needs a file of one line in tools/namespace/cbfloat"
    assert {name: text for name, text in typed.items() if text != f"from {name} import *\n"} == {}
