"""The judge of the mutants: it distinguishes a bug that is caught from an edit that does nothing."""

import dataclasses
from pathlib import Path

import pytest

from lab.mutants.faults import MUTANTS
from lab.mutants.judge import judge_mutant, main, verilog_of
from lab.mutants.mutant import Mutant
from lab.proofs.catalogue import proofs
from lab.proofs.trial_faults import TRIAL_FAULTS
from sim.run.compiled import Engine
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
