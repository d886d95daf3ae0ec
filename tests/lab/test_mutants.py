"""The table of pinned faults, and its judge, which tells a bug that is caught from an edit that does nothing."""

import contextlib
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hdl.catalogue import UNITS
from lab.mutants import judge, table
from lab.mutants.judge import MUTANTS, Trial, judge_mutant, main, verilog_of
from lab.mutants.table import Edit, Fault, pinned, rtl_faults, seen_by
from lab.proofs.catalogue import proofs
from sim.run.compiled import Engine
from sim.run.outcome import Outcome
from sim.run.simulate import Job
from tools.paths import ROOT

PROOFS = {proof.id for proof in proofs()}


def test_mutant_is_caught_by_wrong_results(tmp_path: Path) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "nan_has_sign")
    job = Job(mutant.unit, 1, tmp_path / "mutant", scenarios="sampled_codes", effort=0.02, engines=(Engine.SIMULATOR,))
    verdict = judge_mutant(mutant, job, verilog_of(mutant.unit))
    assert (verdict.result, verdict.is_good) == ("caught", True), verdict.remark


@pytest.mark.parametrize("fault", pinned(), ids=lambda fault: fault.name)
def test_pinned_fault_edits_one_place_of_the_source_and_has_somebody_to_catch_it(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.applied(text) != text
    assert (fault.unit in UNITS) != (ROOT / fault.test).is_file()
    assert [(other.test, other.name) for other in pinned()].count((fault.test, fault.name)) == 1


@pytest.mark.parametrize("fault", rtl_faults(), ids=lambda fault: fault.name)
def test_pinned_fault_of_the_rtl_declares_proofs_that_exist(fault: Fault) -> None:
    assert fault.proofs
    assert set(fault.proofs) <= PROOFS


@pytest.mark.parametrize("test", sorted({fault.test for fault in pinned() if fault.test}))
def test_test_that_must_catch_pinned_faults_reads_them_from_the_table(test: str) -> None:
    assert "seen_by(__file__" in (ROOT / test).read_text(encoding="utf-8")


def test_pinned_faults_of_a_test_that_has_none_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"^test: got tests/lab/test_mutants.py, must be one that lab/mutants/pinned "):
        seen_by(__file__)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            '[a.wrong]\nfind = "x"\nreplace = "y"\nscenario = "steps"',
            "wrong: got scenario, must be of file, find, ",
        ),
        (
            '[a]\nscenario = "steps"',
            r"scenario: got 'steps', must be a fault, \[find, replace\] or a table, ",
        ),
        ('[a]\nwrong = ["x"]', r"wrong: got \['x'\], must be a fault, "),
    ],
    ids=["of_a_fault", "of_a_section", "no_replacement"],
)
def test_pinned_fault_with_an_unknown_key_is_an_error(tmp_path: Path, rows: str, said: str) -> None:
    file = tmp_path / "one.toml"
    file.write_text(f'file = "a.py"\n{rows}\n')
    with pytest.raises(ValueError, match=f"^one.toml: {said}"):
        list(table._faults_in(file))


def test_keys_of_a_fault_come_before_those_of_its_section_and_those_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(
        'unit = "mac"\neffort = 0.5\nproofs = ["product"]\n[a]\nfile = "a.py"\neffort = 1.0\n'
        'first = ["x", "y"]\n[a.second]\nfind = "x"\nreplace = "z"\neffort = 0.1\nproofs = ["one"]\n'
    )
    first, second = table._faults_in(file)
    assert (first.name, first.unit, first.effort) == ("first", "mac", 1.0)
    assert [proof.partition("/cb")[0] for proof in first.proofs] == ["step/first_half", "step/second_half"]
    assert (second.effort, second.proofs) == (0.1, ("one",))


@pytest.mark.parametrize(
    ("find", "applied"), [("bc", "adab"), ("«b»c", "adcab"), ("c«a»", "abcdb"), ("bc«»a", "abcdab"), ("«bca»b", "adb")]
)
def test_edit_replaces_what_stands_between_its_marks(find: str, applied: str) -> None:
    assert Edit("file", find, "d").applied("abcab") == applied


@pytest.mark.parametrize(("find", "count"), [("ab", 2), ("a«b»", 2), ("ac", 0)])
def test_edit_of_a_text_that_does_not_occur_once_is_an_error(find: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"^file: got {count} matches of 'a[bc]', must be exactly 1$"):
        Edit("file", find, "d").applied("abcab")


def test_mutant_with_a_typo_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mutants", "nan_has_sing"]) == 2
    assert capsys.readouterr().err.endswith("; did you mean nan_has_sign?\n")


def test_mutant_whose_edit_does_not_match_is_broken(tmp_path: Path) -> None:
    mutant = dataclasses.replace(MUTANTS[0], find="no such text")
    verdict = judge_mutant(mutant, Job(mutant.unit, 1, tmp_path / "mutant"), verilog_of(mutant.unit))
    assert verdict.result == "broken"
    assert "got 0 matches" in verdict.remark


def test_mutant_without_effect_is_broken(tmp_path: Path) -> None:
    mutant = dataclasses.replace(MUTANTS[0], replace=MUTANTS[0].find)
    verdict = judge_mutant(mutant, Job(mutant.unit, 1, tmp_path / "mutant"), verilog_of(mutant.unit))
    assert verdict.result == "broken"
    assert "does not change the Verilog" in verdict.remark


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (Outcome("mac", failures=["1 of 2 answers: mismatches"]), "caught"),
        (Outcome("mac"), "survived"),
        (Outcome("mac", failures=["no simulator"], is_broken=True), "broken"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_mutant_is_caught_by_nothing_but_a_failed_comparison(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Outcome, result: str
) -> None:
    monkeypatch.setattr(judge, "mutate", lambda mutant, folder, original: tmp_path / "wrong.v")
    monkeypatch.setattr(judge, "run_unit", lambda job: outcome)
    verdict = judge_mutant(MUTANTS[0], Job(MUTANTS[0].unit, 1, tmp_path), "")
    assert (verdict.result, verdict.is_good) == (result, result == "caught")


@pytest.mark.parametrize("at", [0, len(MUTANTS) // 2, len(MUTANTS) - 1])
def test_mutant_that_survives_is_wrong_in_the_evidence_whichever_it_is(at: int) -> None:
    trials = [
        Trial(mutant.name, mutant.unit, "survived" if place == at else "caught", 0.0, "")
        for place, mutant in enumerate(MUTANTS)
    ]
    records = judge._evidence(trials)
    assert sum(record.count for record in records) == len(MUTANTS)
    assert [record.unit for record in records if record.wrong] == [MUTANTS[at].part]
    assert sum(record.wrong for record in records) == 1


@pytest.mark.parametrize(
    ("of_the_unit", "of_the_mutant", "status"),
    [("passed", "caught", 0), ("passed", "survived", 1), ("passed", "broken", 1), ("broken", "caught", 1)],
)
def test_command_fails_if_a_mutant_survives_or_the_unit_itself_fails(
    monkeypatch: pytest.MonkeyPatch, of_the_unit: str, of_the_mutant: str, status: int
) -> None:
    def processes(*_: object) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(judge, "ProcessPoolExecutor", processes)
    monkeypatch.setattr(judge, "fresh_processes", lambda *modules: None)
    monkeypatch.setattr(judge, "ended_by_interrupts", lambda pool: contextlib.nullcontext())
    monkeypatch.setattr(judge, "verilog_of", lambda unit: "")
    monkeypatch.setattr(judge, "_judge_unmutated", lambda job: Trial("unit", job.unit, of_the_unit, 0.0, ""))
    monkeypatch.setattr(
        judge, "judge_mutant", lambda mutant, job, original: Trial(mutant.name, job.unit, of_the_mutant, 0.0, "")
    )
    assert main(["--mutants", MUTANTS[0].name, "--jobs", "1"]) == status


def test_unit_as_it_is_meets_every_scenario_in_which_a_fault_is_judged() -> None:
    # A scenario that the right unit fails would catch any fault.
    whole = judge._every_stimulus(MUTANTS)
    for mutant in MUTANTS:
        alike = [
            one
            for one in whole
            if (one.unit, one.effort, one.simulator) == (mutant.unit, mutant.effort, mutant.simulator)
        ]
        assert len(alike) == 1
        wanted, met = (set(filter(None, one.scenarios.split(","))) for one in (mutant, alike[0]))
        assert not met or (wanted and wanted <= met), mutant.name
