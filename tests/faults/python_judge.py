"""Judges of Python faults: the tests that reach the fault's line, asked one after another until one fails.

Each fault gets a process, forked from one that has imported everything. Most faults are in a function, whose
code is replaced there (`Patching`). The others act while `golden` is imported: their process imports it again
(`Fresh`).
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from .fault import CAUGHT, NOT_REACHED, ROOT, SAME_CODE, SURVIVED, Fault, Ruling
from .patching import AtImportError, pairs, patched
from .reach import Reach, Reached
from .suite import OPTIONS, RAISES, Cases, FirstFailure, Said, forget_imports, in_child, run_cases

#: The ruling on a fault that a judge leaves to the other one.
ELSEWHERE = "acts at import"


class _Faulty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed source, all others as ever."""

    def __init__(self, fault: Fault) -> None:
        self.name = module_of(fault)
        self.path = ROOT / fault.file
        self.source = fault.applied(self.path.read_text(encoding="utf-8"))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        inside = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=inside
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, str(self.path), "exec"), vars(module))


def module_of(fault: Fault) -> str:
    """Return the name of the module that a fault is in."""
    return fault.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def lines_of(fault: Fault, text: str) -> range:
    """Return the lines of the statement that a fault is in: of a compound statement, the lines before its body."""
    found = range(fault.line, fault.line + fault.old.count("\n") + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= fault.line <= (node.end_lineno or 0):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            first = body[0] if body else None
            start = first.lineno if isinstance(first, ast.stmt) else first.pattern.lineno if first else 0
            last = max(node.lineno, start - 1) if first else node.end_lineno or node.lineno
            if fault.line <= last:
                found = range(node.lineno, last + 1)
    return found


def public_names(text: str) -> list[str]:
    """Return the names that a module's ``__all__`` holds."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def speaks_of(names: Sequence[str], text: str) -> bool:
    """Return whether a test's file uses one of some names."""
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def _within(tests: Sequence[Reached], seconds: float) -> list[Reached]:
    """Return tests that take so long together, at least the first; one that is too long for the rest is passed over."""
    chosen, spent = list(tests[:1]), sum(test.seconds for test in tests[:1])
    for test in tests[1:]:
        if spent + test.seconds <= seconds:
            chosen.append(test)
            spent += test.seconds
    return chosen


class _Judge:
    """The common part of both judges.

    Parameters
    ----------
    folder : Path
    reach : Reach
    seconds : float
        Processor time of the tests that a fault is shown to.
    """

    def __init__(self, folder: Path, reach: Reach, seconds: float) -> None:
        self.folder, self.reach, self.seconds = folder, reach, seconds

    def _ruled(self, fault: Fault, tests: Sequence[Reached], ask: Callable[[Sequence[Reached]], Said]) -> Ruling:
        """Ask the tests; one that fails among others must fail alone, as it passes alone without a fault."""
        if not tests:
            return Ruling(fault, NOT_REACHED, "", 0.0)
        chosen, seconds = _within(tests, self.seconds), 0.0
        asked = f"{len(chosen)} of {len(tests)} tests that reach it"
        while chosen:
            said = ask(chosen)
            seconds += said.seconds
            if not said.text or said.text == ELSEWHERE:
                return Ruling(fault, said.text or SURVIVED, asked, seconds)
            if said.text.startswith(RAISES) and not said.text.endswith("KeyboardInterrupt"):
                raise RuntimeError(f"{fault.file}:{fault.line}: the judge fails: {said.text}")
            names = [test.name for test in chosen]
            failed = said.text.partition("[")[0]
            if failed not in names:
                break
            if len(chosen) > 1:
                alone = ask([chosen[names.index(failed)]])
                seconds += alone.seconds
                if not alone.text:
                    chosen = chosen[names.index(failed) + 1 :]
                    continue
            break
        else:
            return Ruling(fault, SURVIVED, asked, seconds)
        return Ruling(fault, CAUGHT, said.text.removeprefix("tests/"), seconds)


class Patching(_Judge):
    """Judges in a process that has collected the tests.

    Parameters
    ----------
    folder, reach, seconds
        As for every judge.
    cases : dict of str to list of Item
        By test function.
    """

    def __init__(self, folder: Path, reach: Reach, seconds: float, cases: Cases) -> None:
        super().__init__(folder, reach, seconds)
        self.cases = cases

    def judge(self, fault: Fault) -> Ruling:
        """Return the ruling on a fault; its result is `ELSEWHERE` if the fault acts at import."""
        path = ROOT / fault.file
        text = path.read_text(encoding="utf-8")
        lines = lines_of(fault, text)
        imported = self.reach.imported.get(fault.file, set())
        old, new = (compile(source, str(path), "exec") for source in (text, fault.applied(text)))
        try:
            found = pairs(old, new)
        except AtImportError:
            return Ruling(fault, ELSEWHERE, "", 0.0)
        if not found:
            return Ruling(fault, SAME_CODE, "the compiler", 0.0)
        if module_of(fault) in sys.modules and not imported.isdisjoint(lines):
            return Ruling(fault, ELSEWHERE, "", 0.0)

        def ask(tests: Sequence[Reached]) -> Said:
            def work() -> str:
                if module_of(fault) in sys.modules:
                    try:
                        count = patched(found)
                    except AtImportError:
                        return ELSEWHERE
                    if not count:  # a function that is no more, having done its work at import
                        return ELSEWHERE
                else:
                    sys.meta_path.insert(0, _Faulty(fault))
                cases = [case for test in tests for case in self.cases[test.name]]
                return run_cases(cases, self.folder / f"{fault.name}-{os.getpid()}")

            return in_child(work, 10 + 3 * sum(test.seconds for test in tests))

        return self._ruled(fault, self.reach.judges_of(fault.file, lines), ask)


class Fresh(_Judge):
    """Judges in a process that has imported the packages without faults: NumPy, PyTorch, pytest."""

    def __init__(self, folder: Path, reach: Reach, seconds: float) -> None:
        super().__init__(folder, reach, seconds)
        import torch  # noqa: F401

    def judge(self, fault: Fault) -> Ruling:
        """Return the ruling on a fault."""

        def ask(tests: Sequence[Reached]) -> Said:
            return in_child(lambda: self._run(fault, tests), 30 + 3 * sum(test.seconds for test in tests))

        return self._ruled(fault, self._tests(fault), ask)

    def _tests(self, fault: Fault) -> list[Reached]:
        """Return the tests whose file names the module, then tests that reach the line, then tests that reach the file.

        If there are none, the module may consist only of data. Then its judges are the tests that reach its users, or
        else the tests that use its public names.
        """
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        found = [] if fault.file.endswith("__init__.py") else self._speaking_of([module_of(fault)])
        found += self.reach.judges_of(fault.file, lines_of(fault, text))
        found += self.reach.judges_of_module(fault.file)
        if not found:
            name = module_of(fault).rpartition(".")[2]
            users = [file for file in self.reach.imported if f"{name} import" in (ROOT / file).read_text("utf-8")]
            found = [test for file in users for test in self.reach.judges_of_module(file)]
            found = sorted(found or self._speaking_of(public_names(text)), key=lambda test: test.seconds)
        return list({test.name: test for test in found}.values())

    def _speaking_of(self, names: Sequence[str]) -> list[Reached]:
        """Return the tests whose file uses one of some names, the quickest first."""
        texts = {file: (ROOT / file).read_text("utf-8") for file in {test.file for test in self.reach.tests}}
        found = [test for test in self.reach.tests if speaks_of(names, texts[test.file])]
        return sorted(found, key=lambda test: test.seconds)

    def _run(self, fault: Fault, tests: Sequence[Reached]) -> str:
        """Run tests up to the first failure; return its name, or nothing."""
        forget_imports()
        sys.meta_path.insert(0, _Faulty(fault))
        os.chdir(ROOT)
        folder = self.folder / f"{fault.name}-{os.getpid()}"
        folder.mkdir(parents=True)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        failure = FirstFailure()
        status = pytest.main([*OPTIONS, "-x", *(test.name for test in tests)], [failure])
        return failure.said or ("" if status == pytest.ExitCode.OK else "its import")


def without(fault: Fault) -> Fault:
    """Return the same with nothing changed."""
    return replace(fault, new=fault.old)
