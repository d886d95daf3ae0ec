"""The judge of the mutants: it distinguishes a bug that is caught from an edit that does nothing."""

import contextlib
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.mutants import judge
from lab.mutants.faults import MUTANTS
from lab.mutants.judge import Trial, judge_mutant, main, verilog_of
from lab.mutants.mutant import Mutant
from lab.proofs.catalogue import proofs
from lab.proofs.trial_faults import TRIAL_FAULTS
from sim.run.compiled import Engine
from sim.run.outcome import Outcome
from sim.run.simulate import Job
from sim.units import UNITS
from tools.paths import ROOT

ALL = (*MUTANTS, *TRIAL_FAULTS)
PROOFS = proofs()


def test_mutant_is_caught_by_wrong_results(tmp_path: Path) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "nan_has_sign")
    job = Job(mutant.unit, 1, tmp_path / "mutant", scenarios="sampled_codes", effort=0.02, engines=(Engine.SIMULATOR,))
    verdict = judge_mutant(mutant, job, verilog_of(mutant.unit))
    assert (verdict.result, verdict.is_good) == ("caught", True), verdict.remark


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_mutant_edits_one_place_of_the_source(mutant: Mutant) -> None:
    assert (ROOT / "hdl" / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.unit in UNITS
    assert [other.name for other in ALL].count(mutant.name) == 1


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_mutant_declares_proofs_that_exist(mutant: Mutant) -> None:
    assert mutant.proofs
    assert set(mutant.proofs) <= {proof.id for proof in PROOFS}


def test_mutant_with_a_typo_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mutants", "nan_has_sing"]) == 2
    assert capsys.readouterr().err.endswith("; did you mean nan_has_sign?\n")


def test_mutant_whose_edit_does_not_match_is_broken(tmp_path: Path) -> None:
    mutant = dataclasses.replace(MUTANTS[0], old="no such text")
    verdict = judge_mutant(mutant, Job(mutant.unit, 1, tmp_path / "mutant"), verilog_of(mutant.unit))
    assert verdict.result == "broken"
    assert "got 0 matches" in verdict.remark


def test_mutant_without_effect_is_broken(tmp_path: Path) -> None:
    mutant = dataclasses.replace(MUTANTS[0], new=MUTANTS[0].old)
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
            one for one in whole if (one.unit, one.effort, one.engine) == (mutant.unit, mutant.effort, mutant.engine)
        ]
        assert len(alike) == 1
        wanted, met = (set(filter(None, one.scenarios.split(","))) for one in (mutant, alike[0]))
        assert not met or (wanted and wanted <= met), mutant.name
