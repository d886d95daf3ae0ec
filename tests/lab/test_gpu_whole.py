"""The whole comparison of a card, and its speed, as far as no card is needed: parts, results, goals, other programs."""

import argparse
import itertools
import math
import os
import stat

import pytest
import torch

from golden.cuda.about import Card, Info
from lab.gpu import card, comparison, sanitized, speed, whole
from tools import results

GIVEN = argparse.Namespace(outputs=10, seconds=1.0, patience=5.0, limit=60.0)
WITHOUT = Info(None, None, (), (90,), "nowhere")
WITH = Info("12.9", "12.9", (Card("a card", (9, 0), 90),), (90,), "nowhere")


@pytest.mark.parametrize("run", [whole.main, speed.main])
@pytest.mark.parametrize(
    ("found", "told"),
    [
        (WITHOUT, r"lacks NVRTC (pip install 'cbfloat[cuda]') and a CUDA device with its driver"),
        (WITH, "lacks a PyTorch for CUDA (this is"),
    ],
)
def test_machine_without_a_card_is_told_in_one_line_what_it_lacks(run, found, told, monkeypatch, capsys):
    monkeypatch.setattr("golden.cuda.info", lambda: found)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run([]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert told in line


def test_every_part_runs_every_test_of_the_card_once():
    folder = whole._TESTS
    named = {f"{folder}/{file}" for file in whole._APART.values()}
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "pytest", lambda *given, limit: asked.append(given))
        for name in ("tests", "layers", "models"):
            whole.PARTS[name](GIVEN)
    assert asked == [(folder, *(f"--ignore={each}" for each in sorted(named))), *((each,) for each in sorted(named))]
    assert all(os.path.isfile(each) for each in named)


def test_comparison_meets_every_half_type_level_and_mode_in_small_before_it_takes_larger_products():
    small = [case for case, _ in zip(comparison.cases(), range(600), strict=False) if case.shape == (1, 1, 1)]
    met = {(case.half, case.level, case.mode, case.native) for case in small}
    every = {(case.half, case.level, case.mode, case.native) for case in itertools.takewhile(
        lambda case: case.seed == 0, comparison.cases())}  # fmt: skip
    assert met == every
    sizes = [math.prod(case.shape) for case in itertools.takewhile(lambda case: case.seed == 0, comparison.cases())]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("test", "passed"),
    [("def test_a(): pass", True), ("def test_a(): assert False", False), ("", False),
     ("import pytest\ndef test_a(): pytest.skip('x')", False)],
)  # fmt: skip
def test_part_of_tests_passes_if_some_ran_and_none_failed(test, passed, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(test + "\n")
    assert whole.pytest(str(file), "-p", "no:cacheprovider", "-c", os.devnull)["passed"] is passed


def test_part_of_tests_that_does_not_end_is_kept_as_failed(tmp_path, monkeypatch):
    """Earlier failures are reported: an interrupted pytest writes its report."""
    file = tmp_path / "test_some.py"
    file.write_text("import time\ndef test_a(): pass\ndef test_b(): assert 0\ndef test_c(): time.sleep(60)\n")
    monkeypatch.setattr(card, "skipped", lambda _: False)
    monkeypatch.setitem(
        whole.PARTS, "tests", lambda given: whole.pytest(str(file), "-c", os.devnull, limit=given.limit)
    )
    assert whole.main(["--parts", "tests", "--limit", "4", "--into", str(tmp_path)]) == 1
    found = card.earlier("gpu-card", tmp_path)["parts"]["tests"]
    assert (found["passed"], found["error"]) == (False, "not done after 4 s")
    assert (found["failures"], found["wrong"]) == (1, ["test_some::test_b"])
    assert found["tests"] in (2, 3)  # with or without the one that was interrupted


def test_part_of_tests_that_ignores_an_interrupt_is_ended(tmp_path, monkeypatch):
    file = tmp_path / "test_some.py"
    deaf = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    file.write_text(f"{deaf}def test_a(): time.sleep(60)\n")
    monkeypatch.setattr(whole, "_GRACE", 0.5)
    found = whole.pytest(str(file), "-c", os.devnull, limit=3.0)
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    assert found == {"passed": False, **counts, "wrong": [], "error": "not done after 3 s"}


def test_part_of_tests_names_those_that_fail(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text("def test_a(): assert 0\ndef test_b(broken): pass\ndef test_c(): pass\n")
    found = whole.pytest(str(file), "-p", "no:cacheprovider", "-c", os.devnull)
    assert (found["failures"], found["errors"], found["tests"]) == (1, 1, 3)
    assert found["wrong"] == ["test_some::test_a", "test_some::test_b"]


SANITIZER = """#!/bin/sh
echo "$PYTORCH_NO_CUDA_MEMORY_CACHING $@" >> {log}
case "$*" in *racecheck*) {then};; esac
"""


@pytest.mark.parametrize(
    ("then", "racecheck", "patience"),
    [("exit 0", "no error", 5.0), ("exit 3", "exit status 3", 5.0), ("exec sleep 20", "not done after 0.5 s", 0.5)],
)
def test_sanitizer_runs_both_tools_without_pytorchs_own_memory(then, racecheck, patience, tmp_path, monkeypatch):
    tool, log = tmp_path / "compute-sanitizer", tmp_path / "log"
    tool.write_text(SANITIZER.format(log=log, then=then))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = whole.sanitizer(argparse.Namespace(patience=patience))
    assert found == {"passed": racecheck == "no error", "memcheck": "no error", "racecheck": racecheck}
    lines = log.read_text().splitlines()
    assert [line.startswith("1 --tool") and line.endswith("-m lab.gpu.sanitized") for line in lines] == [True] * 2


def test_part_that_raises_is_kept_as_failed_and_the_next_one_runs(monkeypatch, tmp_path, capsys):
    def broken(given):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(card, "skipped", lambda _: False)
    monkeypatch.setitem(whole.PARTS, "tests", broken)
    monkeypatch.setitem(whole.PARTS, "layers", lambda _: {"passed": True, "tests": 3})
    assert whole.main(["--parts", "tests", "layers", "--into", str(tmp_path)]) == 1
    kept = results.read("gpu-card", tmp_path)  # as every page reads it
    assert {name: part["passed"] for name, part in kept.data["parts"].items()} == {"tests": False, "layers": True}
    assert list(kept.sources) == ["golden.torch.*"]
    assert "| tests | **no** | RuntimeError: no such thing |" in kept.markdown()
    assert "3 tests" in capsys.readouterr().out


def test_products_that_were_compared_are_the_conclusion(monkeypatch, tmp_path):
    monkeypatch.setattr(card, "skipped", lambda _: False)
    wrong = {"passed": False, "outputs": 12345, "products": 6, "wrong": ["Case(...)"]}
    monkeypatch.setitem(whole.PARTS, "products", lambda _: wrong)
    assert whole.main(["--parts", "products", "--into", str(tmp_path)]) == 1
    kept = results.read("gpu-card", tmp_path)
    assert list(kept.sources) == ["lab.gpu.whole"]
    assert (kept.subject, kept.conclusion) == (
        "graphics card", "12,345 outputs of 6 products on no card: 1 differ from the CPU's"
    )  # fmt: skip


def test_earlier_result_of_another_source_is_forgotten(tmp_path, monkeypatch):
    card.keep("gpu-card", "lab.gpu.whole", {"parts": {"tests": {}}}, [], tmp_path)
    assert card.earlier("gpu-card", tmp_path) == {"parts": {"tests": {}}}
    monkeypatch.setattr("tools.results.hash_of", lambda area: "0" * 16)
    assert card.earlier("gpu-card", tmp_path) == {}


def test_goal_is_met_by_speed_relative_to_the_first():
    first, fast, slow = (speed.Entry(name, [time] * 3, goal) for name, time, goal in
                         (("first", 1.0, None), ("fast", 0.5, 1.3), ("slow", 2.0, 0.85)))  # fmt: skip
    failed = speed.Entry("failed", [], 2.0, "OutOfMemoryError: none is left")
    rows = speed.rows_of([first, fast, slow, failed])
    assert [(row["speed"], row["met"]) for row in rows] == [(1.0, None), (2.0, True), (0.5, False), (None, None)]
    lines = speed.table("products", rows).markdown().splitlines()
    assert lines[4:] == [
        "| first | 1000.000 | 1.000 |  |  |",
        "| fast | 500.000 | 2.000 | 1.3 | yes |",
        "| slow | 2000.000 | 0.500 | 0.85 | **no** |",
        "| failed | OutOfMemoryError: none is left |  | 2 |  |",
    ]


def test_contestant_that_fails_is_out_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)

    def broken():
        raise torch.OutOfMemoryError("none is left\nand more")

    entries = speed.raced({"a": lambda: None, "b": broken}, 4)
    assert [(entry.name, len(entry.seconds), entry.error) for entry in entries] == [
        ("a", 4, ""), ("b", 0, "OutOfMemoryError: none is left"),
    ]  # fmt: skip


def test_sanitizer_sees_every_format_level_mode_and_tile():
    cases = list(sanitized.selection())
    assert {case.shape for case in cases} == set(sanitized.SHAPES)
    assert {case.mode for case in cases} == set(sanitized.MODES)
    assert {(case.half, case.level) for case in cases} == {
        (half, level) for half in sanitized.HALVES for level in range(3)
    }


def test_kernels_are_compiled_for_the_architecture_of_the_card(monkeypatch):
    monkeypatch.setattr("golden.cuda.info", lambda: WITH)
    asked = []
    monkeypatch.setattr(
        whole.kernels, "compile_all", lambda wanted, processes: asked.extend(wanted) or [{}] * len(wanted)
    )
    found = whole.compiling(GIVEN)
    assert found == {"passed": True, "cubins": len(asked), "spills": []}
    assert {number for _, number in asked} == {90}


@pytest.mark.parametrize("served", [("avx512fp16", "numpy"), ("avx2", "numpy")])
def test_float16_of_the_processor_is_tested_where_it_has_any(served, monkeypatch):
    monkeypatch.setattr(whole, "paths", lambda: served)
    monkeypatch.setattr(
        whole, "pytest", lambda *files, limit: {"passed": all(map(os.path.isfile, files)), "tests": len(files)}
    )
    found = whole.halves(GIVEN)
    assert found["passed"]
    assert ("tests" in found) is ("avx512fp16" in served)


def test_machine_without_compiled_kernels_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(card, "skipped", lambda _: False)
    monkeypatch.setattr(whole, "paths", lambda: ("numpy",))
    with pytest.raises(SystemExit):
        whole.main([])
    assert "NumPy would take days" in capsys.readouterr().err
