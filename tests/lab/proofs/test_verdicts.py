"""Verdicts from the answers of the engines: only proven, caught and equivalent count as good."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.mutants.table import rtl_faults
from lab.netlists.errors import cadical, version_of
from lab.proofs import __main__ as command
from lab.proofs import faults, mutants, proof, report
from lab.proofs.catalogue import catalogue
from lab.proofs.faults import PinnedFault
from lab.proofs.mutants import CORES, CoreMutant
from lab.proofs.proof import BITWUZLA, CVC5, Z3_CADICAL, Answer, Proof, Verdict, engine_version, prove
from tools.evidence import Means

PROVEN, CAUGHT, EQUIVALENT, SURVIVED, REFUTED, UNKNOWN, TOOL_ERROR = Verdict
GOOD = (PROVEN, CAUGHT, EQUIVALENT)


def answer(verdict: Verdict, unit: str = "step", claim: str = "step/one") -> Answer:
    return Answer(claim, unit, "mode", "none", BITWUZLA, verdict, 1.0, "said", ports={"a": 1})


def script(monkeypatch, module, verdicts):
    """Let the proofs of a module get these verdicts, one after the other; return those that are left."""
    left = list(verdicts)
    monkeypatch.setattr(module, "prove", lambda given, folder: answer(left.pop(0)))
    return left


@pytest.mark.parametrize("verdict", Verdict)
def test_verdict_is_good_only_if_proven_caught_or_equivalent(verdict):
    assert verdict.is_good == (verdict in GOOD)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({"answer": "unsat", "model": {}, "seconds": 1.0}, PROVEN),
        ({"answer": "sat", "model": {"top.x": "0x3"}, "seconds": 1.0}, REFUTED),
        ({"answer": "unknown", "model": {}, "seconds": 1.0}, UNKNOWN),
        ({"answer": "", "model": {}, "seconds": 1.0}, UNKNOWN),
        ({"error": "out of memory"}, TOOL_ERROR),
    ],
)
def test_proof_is_proven_only_by_an_engine_that_says_so(monkeypatch, tmp_path, said, verdict):
    monkeypatch.setattr(proof, "_ask", lambda *given: said)
    one = Proof("claim", "unit", "mode", "none", BITWUZLA, lambda folder: "(assert false)\n")
    assert prove(one, tmp_path).verdict is verdict
    is_kept = bool(list(tmp_path.glob("cache/*.json")))
    assert is_kept == (verdict in (PROVEN, REFUTED))


@pytest.mark.parametrize("status", ["exit 1", "kill -SEGV $$", "kill -KILL $$"])
def test_engine_that_ends_badly_behind_its_answer_proves_nothing(monkeypatch, tmp_path, status):
    # Its answer counted, however the engine ended.
    engine = tmp_path / "engine"
    engine.write_text(f"""#!/bin/sh\necho '{{"answer": "unsat", "model": {{}}, "seconds": 1.0}}'\n{status}\n""")
    engine.chmod(0o755)
    monkeypatch.setattr(proof.sys, "executable", str(engine))
    one = Proof("claim", "unit", "mode", "none", BITWUZLA, lambda folder: "(assert false)\n")
    told = prove(one, tmp_path)
    assert told.verdict is TOOL_ERROR
    assert told.remark.startswith("bitwuzla: no message (status ")
    assert not list(tmp_path.glob("cache/*"))


@pytest.mark.parametrize(
    ("is_none", "answers", "verdict"),
    [
        (False, (REFUTED,), CAUGHT),
        (False, (PROVEN, REFUTED), CAUGHT),
        (False, (PROVEN, PROVEN), SURVIVED),
        (False, (PROVEN, UNKNOWN), UNKNOWN),
        (False, (UNKNOWN,), UNKNOWN),
        (False, (TOOL_ERROR,), TOOL_ERROR),
        (True, (PROVEN, PROVEN), EQUIVALENT),
        (True, (PROVEN, REFUTED), REFUTED),
        (True, (REFUTED,), REFUTED),
        (True, (PROVEN, UNKNOWN), UNKNOWN),
    ],
)
def test_fault_verdict_follows_from_those_of_its_proofs(monkeypatch, tmp_path, is_none, answers, verdict):
    left = script(monkeypatch, faults, answers)
    fault = replace(rtl_faults()[0], proofs=("first", "second"), is_none=is_none)
    told = PinnedFault(fault).run(tmp_path)
    assert (told.id, told.verdict, left) == (f"fault/{fault.name}", verdict, [])


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ((PROVEN,), EQUIVALENT),
        ((UNKNOWN,), UNKNOWN),
        ((TOOL_ERROR,), TOOL_ERROR),
        ((REFUTED, REFUTED), CAUGHT),
        ((REFUTED, PROVEN), SURVIVED),
        ((REFUTED, UNKNOWN), UNKNOWN),
        ((REFUTED, TOOL_ERROR), TOOL_ERROR),
    ],
)
def test_change_of_a_netlist_verdict_follows_from_those_of_its_proofs(monkeypatch, tmp_path, answers, verdict):
    netlist = SimpleNamespace(inputs={})
    monkeypatch.setattr(mutants, "changed", lambda core, number, folder: ("a change", netlist))
    monkeypatch.setattr(mutants, "netlist_of", lambda *given: netlist)
    left = script(monkeypatch, mutants, answers)
    told = CoreMutant(CORES[0], 0).run(tmp_path)
    assert (told.id, told.verdict, left) == (f"mutant/{CORES[0].name}/0", verdict, [])


class Entry:
    """A proof whose verdict is known."""

    def __init__(self, verdict: Verdict, number: int) -> None:
        self.id, self.title, self.timeout, self.verdict = f"step/{number}", f"proof {number}", number, verdict

    def run(self, folder) -> Answer:
        return answer(self.verdict, claim=self.id)


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ((PROVEN, CAUGHT, EQUIVALENT), 0),
        ((PROVEN, REFUTED), 1),
        ((UNKNOWN, PROVEN), 1),
        ((PROVEN, SURVIVED, PROVEN), 1),
        ((PROVEN, TOOL_ERROR), 2),
        ((TOOL_ERROR, UNKNOWN), 1),
    ],
)
def test_command_status_is_good_and_the_page_is_written_only_if_every_verdict_is(
    monkeypatch, tmp_path, verdicts, status
):
    entries = [Entry(verdict, number) for number, verdict in enumerate(verdicts)]
    published, noted, proven = [], [], []
    monkeypatch.setattr(command, "select", lambda tier, names: entries)
    monkeypatch.setattr(command, "publish", published.append)
    monkeypatch.setattr(command, "publish_proven", proven.extend)
    monkeypatch.setattr(command, "note", lambda tool, records, programs: noted.extend(records))
    assert command.main(["--folder", str(tmp_path), "--update-docs"]) == status
    assert len(published) == (status == 0)
    assert [each.verdict for each in proven] == (list(verdicts) if status == 0 else [])
    if status == 2:
        assert not noted
        return
    rows = json.loads((tmp_path / "formal.json").read_text(encoding="utf-8"))["proofs"]
    assert [row["verdict"] for row in rows] == [verdict.value for verdict in verdicts]
    assert sum(record.wrong for record in noted) == sum(not verdict.is_good for verdict in verdicts)
    assert sum(record.count for record in noted) == sum(verdict is not EQUIVALENT for verdict in verdicts)


@pytest.mark.parametrize("verdict", Verdict)
def test_evidence_counts_every_change_that_is_one_and_what_is_not_good_as_wrong(verdict):
    change = answer(verdict, unit="mutants", claim="mutant/step/first_half/0")
    found = [(one.kind, one.count, one.wrong) for one in report.evidence([change])]
    assert found == ([] if verdict is EQUIVALENT else [(Means.FAULTS, 1, int(verdict not in GOOD))])


@pytest.mark.parametrize(("given", "is_whole"), [((), True), (("--tier", "fast"), False), (("step/0",), False)])
def test_evidence_is_noted_of_a_whole_run_only(monkeypatch, tmp_path, given, is_whole):
    noted = []
    monkeypatch.setattr(command, "select", lambda tier, names: [Entry(PROVEN, 0)])
    monkeypatch.setattr(command, "note", lambda tool, records, programs: noted.append(tool))
    assert command.main(["--folder", str(tmp_path), *given]) == 0
    assert noted == (["formal"] if is_whole else [])


def test_catalogue_has_every_fault_that_declares_a_proof():
    assert [entry.fault for entry in catalogue() if isinstance(entry, PinnedFault)] == [*rtl_faults()]
    assert all(fault.proofs for fault in rtl_faults())


def test_engine_version_names_each_part_of_the_engine():
    # Answers are kept by it: an answer of another version must not count.
    assert engine_version(BITWUZLA) == f"bitwuzla {version_of('bitwuzla')}"
    assert engine_version(CVC5) == f"cvc5 {version_of('cvc5')}"
    assert engine_version(Z3_CADICAL) == f"z3 {version_of('z3-solver')}, CaDiCaL {cadical()[1]}"


def test_proofs_that_ask_the_same_at_once_are_both_answered_and_kept(monkeypatch, tmp_path):
    # The second one could not rename the file that both had written, which ended the run with a FileNotFoundError.
    both, write = threading.Barrier(2, timeout=10), Path.write_bytes

    def write_beside_the_other(path, *given, **named):
        write(path, *given, **named)
        if path.suffix == ".new":
            both.wait()

    def ask_beside_the_other(*given):
        both.wait()
        return {"answer": "unsat", "seconds": 1.0}

    monkeypatch.setattr(Path, "write_bytes", write_beside_the_other)
    monkeypatch.setattr(proof, "_ask", ask_beside_the_other)
    same = Proof("claim", "unit", "mode", "none", BITWUZLA, lambda folder: "same", 1)
    with ThreadPoolExecutor(2) as pool:
        told = [each.result() for each in [pool.submit(prove, same, tmp_path) for _ in range(2)]]
    assert [each.verdict for each in told] == [PROVEN, PROVEN]
    assert prove(same, tmp_path).cached
