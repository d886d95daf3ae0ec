"""The judge of Python faults: code put into imported functions, the tests that are asked, and its rulings."""

from __future__ import annotations

import gc
import importlib.util
import sys
from pathlib import Path

import pytest

from .fault import CAUGHT, NOT_REACHED, SURVIVED, Fault, fault_at
from .patching import AtImportError, pairs, patched
from .python_judge import _Faulty, _Judge, _within, lines_of, public_names, speaks_of
from .reach import Reach, Reached
from .suite import Said, in_child

SOURCE = '''\
"""A module with functions of every kind."""

from functools import cache

LIMIT = 3


def doubled(x, times=2):
    return x * times


@cache
def kept(x):
    return x + 1


def outer(x):
    def inner(y):
        return y - x

    return inner(10)


class Counter:
    START = 5

    @property
    def value(self):
        return self.START + 1


def maker():
    def made(x):
        return x & 6

    return made


made_early = maker()
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "of_every_kind.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("of_every_kind", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def changed(module, old: str, new: str):
    assert SOURCE.count(old) == 1
    path = module.__file__
    return pairs(*(compile(text, path, "exec") for text in (SOURCE, SOURCE.replace(old, new))))


@pytest.mark.parametrize(
    ("old", "new", "ask", "wanted"),
    [
        ("x * times", "x + times", lambda module: module.doubled(5), 7),
        ("x + 1", "x - 1", lambda module: module.kept(5), 4),
        ("y - x", "y + x", lambda module: module.outer(1), 11),
        ("self.START + 1", "self.START - 1", lambda module: module.Counter().value, 4),
        ("x & 6", "x | 6", lambda module: module.made_early(1), 7),
    ],
)
def test_patched_function_computes_as_the_faulty_source(module, old, new, ask, wanted):
    before = ask(module)
    if hasattr(module.kept, "cache_clear"):
        module.kept.cache_clear()
    assert patched(changed(module, old, new)) >= 1
    assert ask(module) == wanted != before


def test_patched_function_that_the_garbage_collector_leaves_out_computes_as_the_faulty_source(module):
    gc.freeze()  # as a test run does with its collected tests
    assert patched(changed(module, "x * times", "x + times")) == 1
    assert module.doubled(5) == 7


@pytest.mark.parametrize(
    ("old", "new"), [("LIMIT = 3", "LIMIT = 4"), ("times=2", "times=3"), ("START = 5", "START = 6")]
)
def test_fault_that_acts_at_import_is_not_patched(module, old, new):
    with pytest.raises(AtImportError):
        changed(module, old, new)


def test_fault_that_changes_no_code_gives_no_functions(module):
    assert changed(module, "x * times", "(x * times)") == []


@pytest.mark.parametrize(
    ("old", "lines"), [("x * times", range(9, 10)), ("START = 5", range(25, 26)), ("times=2", range(8, 9))]
)
def test_lines_of_a_fault_are_those_of_its_statement(old, lines):
    at = SOURCE.index(old)
    assert lines_of(fault_at("some.py", SOURCE, at, at + len(old), "constant", "0"), SOURCE) == lines


def test_faulty_package_still_has_its_modules():
    place = Path(__file__).with_name("__init__.py")
    text = place.read_text(encoding="utf-8")
    fault = fault_at("tests/faults/__init__.py", text, 0, 0, "statement", "made_up = 3\n")
    spec = _Faulty(fault).find_spec("tests.faults", None)
    assert spec.submodule_search_locations == [str(place.parent)]
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    assert package.made_up == 3
    assert _Faulty(fault).find_spec("tests.golden", None) is None


def test_reach_orders_tests_of_a_line_by_time_and_by_what_they_are_about():
    tests = [
        Reached("t.py::slow", 2.0, {"a.py": [1, 2]}),
        Reached("t.py::quick_but_about_all", 1.0, {"a.py": [2], "b.py": list(range(99))}),
        Reached("t.py::quick", 1.0, {"a.py": [2]}),
        Reached("t.py::elsewhere", 0.1, {"b.py": [2]}),
        Reached("t.py::failing", 0.1, {"a.py": [2]}, "it fails"),
    ]
    names = [test.name for test in Reach(tests, {}).judges_of("a.py", [2])]
    assert names == ["t.py::quick", "t.py::slow", "t.py::quick_but_about_all"]


def test_tests_that_are_too_long_for_the_rest_of_the_time_are_passed_over():
    tests = [Reached(name, seconds) for name, seconds in (("a", 3.0), ("b", 9.0), ("c", 4.0), ("d", 9.0), ("e", 3.0))]
    assert [test.name for test in _within(tests, 10.0)] == ["a", "c", "e"]
    assert [test.name for test in _within(tests, 1.0)] == ["a"]


def test_data_of_a_module_is_judged_by_tests_that_speak_of_its_public_names():
    names = public_names('__all__ = ["presets", "made"]\npresets = {}\n')
    assert names == ["presets", "made"]
    assert speaks_of(names, "from golden import presets")
    assert not speaks_of(names, "from golden import presets_of, unmade")
    assert public_names("presets = {}") == []


FAULT = Fault("a.py", 0, 1, "constant", "2", 1, "1")
TESTS = [Reached(f"t.py::{name}", 0.1, {"a.py": [1]}) for name in ("first", "second", "third")]


def ruled(fails, alone, tests=TESTS):
    """Rule on a fault that fails tests run together, and tests run alone."""
    asked = []

    def ask(chosen):
        names = [test.name.removeprefix("t.py::") for test in chosen]
        asked.append(names)
        failing = [name for name in names if name in (alone if len(names) == 1 else fails)]
        return Said(f"t.py::{failing[0]}[case]" if failing else "", 1.0)

    return _Judge(Path("."), Reach([], {}), 20.0)._ruled(FAULT, tests, ask), asked


def test_fault_that_fails_a_test_among_others_and_alone_is_caught():
    ruling, asked = ruled({"second"}, {"second"})
    assert (ruling.result, ruling.by, ruling.seconds) == (CAUGHT, "t.py::second[case]", 2.0)
    assert asked == [["first", "second", "third"], ["second"]]


def test_test_that_fails_only_behind_others_catches_nothing():
    ruling, asked = ruled({"second"}, set())
    assert ruling.result == SURVIVED
    assert asked == [["first", "second", "third"], ["second"], ["third"]]


def test_fault_that_no_test_reaches_is_told_apart():
    assert ruled(set(), set(), [])[0].result == NOT_REACHED


def test_judge_that_fails_itself_is_an_error():
    with pytest.raises(RuntimeError, match=r"a.py:1: the judge fails: it raises KeyError"):
        _Judge(Path("."), Reach([], {}), 20.0)._ruled(FAULT, TESTS, lambda chosen: Said("it raises KeyError", 1.0))


def loop():
    while True:
        pass


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: "a failure", "a failure"),
        (lambda: "", ""),
        (lambda: {}["missing"], "it raises KeyError"),
        (lambda: sys.exit(3), "it raises SystemExit"),
        (lambda: __import__("os")._exit(3), "it crashes, 3"),
        (lambda: __import__("os").abort(), "it crashes, SIGABRT"),
        (loop, "it hangs"),
    ],
)
def test_child_says_how_it_ended(work, said):
    assert in_child(work, 0.0 if work is loop else 10.0, 10.0).text == said
