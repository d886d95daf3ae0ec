"""What the make targets of the tests run, as make itself says it."""

import subprocess

import pytest

from tests.project.test_layout import ROOT


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


def test_continuous_integration_runs_every_test():
    stages = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "stage test-all" in stages
    assert "stage test" not in stages
