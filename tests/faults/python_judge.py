"""Judges of Python faults: the module's tests, run in a process of its own that imports the faulty source."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from .cpp_judge import in_child
from .fault import CAUGHT, ROOT, SURVIVED, Fault, Ruling
from .python_tests import tests_of


class _Faulty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed source, all others as ever."""

    def __init__(self, fault: Fault) -> None:
        self.name = fault.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.path = ROOT / fault.file
        self.source = fault.applied(self.path.read_text(encoding="utf-8"))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, str(self.path), "exec"), vars(module))


class _FirstFailure:
    said = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.said:
            self.said = report.nodeid.removeprefix("tests/")


class PythonJudge:
    """Imports once what no fault touches: NumPy, PyTorch, pytest. (Hypothesis would then not be rewritten.)"""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.passing: list[list[str]] = []  # tests that pass without a fault
        import torch  # noqa: F401

        os.environ["CBFLOAT_EXAMPLES"] = "20"

    def judge(self, fault: Fault) -> Ruling:
        started = time.perf_counter()
        tests = tests_of(fault.file)
        if tests not in self.passing:
            said = in_child(lambda: self._run(Fault(fault.file, 0, 0, "none", "", 1, ""), tests), 600)
            assert said == "", f"the tests of {fault.file} fail without a fault: {said}"
            self.passing.append(tests)
        said = in_child(lambda: self._run(fault, tests), 300)
        return Ruling(fault, CAUGHT if said else SURVIVED, said, time.perf_counter() - started)

    def _run(self, fault: Fault, tests: list[str]) -> str:
        """Run the tests of the module up to the first failure; return its name, or nothing."""
        for name in [name for name in sys.modules if name.split(".")[0] in ("golden", "tests")]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Faulty(fault))
        os.chdir(ROOT)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self.folder / "hypothesis")
        os.dup2(2, 1)  # to nowhere, as in_child has it
        failure = _FirstFailure()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
        status = pytest.main([*options, f"--basetemp={self.folder / fault.name}", *tests], [failure])
        return failure.said or ("" if status == pytest.ExitCode.OK else "its import")
