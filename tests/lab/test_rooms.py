"""``python -m lab`` lists every room."""

import re
import subprocess
import sys
import tomllib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import lab
from lab.__main__ import main, rooms
from tools import extras
from tools.paths import ROOT

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{module}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def test_list_has_every_room_and_each_entry_runs(capsys):
    folders = {path.parent.name for path in Path(lab.__file__).parent.glob("*/__init__.py")} - {"netlists"}
    listed = rooms()
    assert {name.partition(".")[0] for name in listed} == folders
    assert all(listed.values())
    for name in listed:
        assert find_spec(f"lab.{name}" if "." in name else f"lab.{name}.__main__") is not None
    assert main() == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in listed)


def test_room_without_a_command_of_its_own_is_listed_by_its_modules():
    assert {"gpu.kernels", "gpu.speed", "gpu.whole"} <= set(rooms())
    assert "gpu" not in rooms()


@pytest.mark.parametrize(
    ("program", "module", "extra"),
    [
        ("lab.faults", "pysat", "faults"),
        ("lab.exhaustive", "softfloatpy", "exhaustive"),
        ("lab.speed", "apytypes", "bench"),
        ("lab.gpu.kernels", "rich", "test"),
        ("sim", "junitparser", "sim"),
    ],
)
def test_program_without_its_extra_says_in_a_line_which_one(tmp_path, program, module, extra):
    (tmp_path / "sitecustomize.py").write_text(BLOCKED.format(module=module))
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    command = [sys.executable, "-m", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    install = f"pip install -e '.[{extra}]' -c constraints.txt"
    assert done.stderr == f"{program}: needs {module}, which the extra {extra} brings: {install}\n"
    assert done.returncode == 1


def test_extras_of_programs_are_those_that_the_makefile_installs():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*extras._EXTRAS.values(), "test"} <= set(known)
    text = (ROOT / "Makefile").read_text()
    recipes = re.findall(r"^[a-z-]+:.*?\.installed-(\w+).*\n(?:\t.*\n)*?\t.*python -m (lab\.\w+)", text, re.MULTILINE)
    assert len(recipes) > 8
    assert all(extras._EXTRAS.get(program, "test") == extra for extra, program in recipes)


def test_error_that_is_no_missing_package_is_shown_as_ever(monkeypatch, capsys):
    main_module = ModuleType("__main__")
    main_module.__spec__ = ModuleSpec("lab.faults.__main__", None)
    monkeypatch.setitem(sys.modules, "__main__", main_module)
    for error in (ValueError("wrong"), ModuleNotFoundError("no lab.x", name="lab.x")):
        extras._show(type(error), error, None)
        assert capsys.readouterr().err == f"{type(error).__name__}: {error}\n"
