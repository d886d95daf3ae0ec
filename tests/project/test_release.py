"""Packages, citation and make targets of a release: they hold everything that they need, and nothing else."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

from lab.release.check_installed import SAMPLED, wrong_outputs
from lab.release.contents import copy_sources, names, problems_of_sources, problems_of_wheel
from tests.project.test_layout import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The tree, its archive, and the files of setuptools' wheel without the kernels, which take a minute."""
    tree = tmp_path_factory.mktemp("release") / "tree"
    copy_sources(tree)
    command = "from setuptools import setup; setup()"
    subprocess.run(
        [sys.executable, "-c", command, "-q", "sdist", "-d", "made", "build_py", "--build-lib", "installed"],
        cwd=tree,
        check=True,
        capture_output=True,
    )
    (archive,) = (tree / "made").iterdir()
    installed = {path.relative_to(tree / "installed").as_posix() for path in (tree / "installed").rglob("*.*")}
    return tree, names(archive), {name for name in installed if (tree / "installed" / name).is_file()}


def test_archive_of_the_sources_has_all_of_them(made):
    tree, archive, _ = made
    assert problems_of_sources(archive, tree) == []
    assert {"LICENSE", "README.md", "golden/kernels/source/kernels.h"} <= archive


def test_wheel_has_the_three_packages_and_nothing_else(made):
    tree, _, installed = made
    assert problems_of_wheel(installed, tree, compiled=False) == []
    assert {name.partition("/")[0] for name in installed} == {"golden", "hdl", "cbfloat"}


@pytest.mark.parametrize("lost", ["LICENSE", "golden/kernels/source/lanes256.h", "golden/kernels/source/avx2.cpp"])
def test_archive_that_lacks_a_file_is_told(made, lost):
    assert problems_of_sources(made[1] - {lost}, made[0]) == [f"lacks {lost}"]


@pytest.mark.parametrize(
    "lost",
    [
        "cbfloat/py.typed", "hdl/mac/lane.py", "golden/torch/examples/digits_mlp.yaml",
        "golden/torch/instruments/report/template/style.css", "golden/cuda/source/kernels.cu",
    ],
)  # fmt: skip
def test_wheel_that_lacks_a_file_is_told(made, lost):
    assert problems_of_wheel(made[2] - {lost}, made[0], compiled=False) == [f"lacks {lost}"]


def test_file_that_does_not_belong_is_told(made):
    tree, archive, installed = made
    assert problems_of_sources({*archive, "tests/conftest.py"}, tree) == ["has tests/conftest.py"]
    assert problems_of_wheel({*installed, "sim/board.py"}, tree) == ["has sim/board.py", "lacks the compiled kernels"]


def test_check_of_an_installed_wheel_finds_wrong_bits(monkeypatch):
    assert wrong_outputs() == 0
    from golden import convert

    def wrong(codes, source, destination):
        found = convert(codes, source, destination)
        return found ^ ((codes == 3 * SAMPLED) & (source == "cb16"))

    monkeypatch.setattr("golden.convert", wrong)
    assert wrong_outputs() == 1


def test_wheels_are_made_for_every_python_that_is_allowed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = int(settings["project"]["requires-python"].removeprefix(">=3."))
    made_for = [int(re.fullmatch(r"cp3(\d+)-\*", each)[1]) for each in settings["tool"]["cibuildwheel"]["build"]]
    assert made_for == list(range(oldest, oldest + len(made_for)))
    command = settings["tool"]["cibuildwheel"]["test-command"]
    assert (ROOT / command.removeprefix("python {project}/")).is_file()


def test_actions_of_the_release_are_pinned_by_their_hash_and_no_secret_is_used():
    text = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}$", each)] == []
    assert "secrets." not in text
    assert "id-token: write" in text


def test_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["title"].startswith(project["name"])
    assert {"cff-version", "message", "authors"} <= set(citation)


def recipe(target):
    """Return the command of a target that starts pytest."""
    said = subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (command,) = [line for line in said.splitlines() if "-m pytest" in line]
    return command


@pytest.mark.parametrize(("target", "leaves_out"), [("test", ["not long"]), ("test-all", [])])
def test_make_leaves_out_the_long_tests_by_one_target_and_none_by_the_other(target, leaves_out):
    options = recipe(target).split("-m pytest")[1]
    assert options.count("-m ") == len(leaves_out)
    assert all(f"-m '{marks}'" in options for marks in leaves_out)


STAGES = ["lint", "docs"]


@pytest.fixture
def stages(tmp_path):
    """Run a copy of .ci/run in which `make` only records its arguments; return the arguments of every call."""
    script = tmp_path / ".ci/run"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci/run", script)
    noted, make = tmp_path / "noted", tmp_path / "bin/make"
    make.parent.mkdir()
    make.write_text(f'#!/bin/sh\necho "$*" >> {noted}\ncase "$*" in $FAILING) exit 3 ;; esac\n', encoding="utf-8")
    make.chmod(0o755)

    def run(*arguments, failing=""):
        noted.write_text("", encoding="utf-8")
        path = f"{make.parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "FAILING": failing}
        done = subprocess.run([script, *arguments], capture_output=True, text=True, env=environment)
        return done.returncode, noted.read_text(encoding="utf-8").splitlines()

    return run


def test_continuous_integration_leaves_the_long_checks_to_the_night(stages):
    status, made = stages()
    assert status == 0
    assert set(made[1:]) == {
        *STAGES,
        "test ARGS=--share 2/8",
        "sim ARGS=--share 2/8",
        "sim-mutants SEED=1 ARGS=--share 2/8",
        "formal ARGS=--tier=fast --share 2/8",
    }


def test_continuous_integration_runs_every_test_and_fault_at_night(stages):
    status, made = stages("nightly")
    assert status == 0
    assert set(made[1:]) == {
        *STAGES,
        "test-all ARGS=",
        "sim ARGS=",
        "sim-mutants SEED=1 ARGS=",
        "formal ARGS=--tier=fast ",
    }
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "schedule:" in workflow
    assert "github.event_name == 'schedule' && 'nightly'" in workflow


@pytest.mark.parametrize("failing", [*STAGES, "test *", "sim *", "sim-mutants*", "formal*"])
def test_continuous_integration_fails_with_each_of_its_stages(stages, failing):
    assert stages(failing=failing)[0] == 3


def test_continuous_integration_with_a_wrong_word_runs_nothing(stages):
    assert stages("nightlyy") == (2, [])
