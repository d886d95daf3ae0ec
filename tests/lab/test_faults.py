"""The generator of faults, the simulation of 511 at once, and the proof that a fault changes nothing."""

from typing import Any

import numpy as np
import pytest
from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lab.faults.__main__ import main
from lab.faults.aig import Question
from lab.faults.campaign import Fate, Judged, Target, batches, judge
from lab.faults.equivalence import Conjectures, Pair
from lab.faults.gates import gates_of
from lab.faults.machine import Cause, Machine, Wires
from lab.faults.proofs import faulty, proofs_of, try_proofs
from lab.faults.reasons import reason_of
from lab.faults.report import NOT_KNOWN, figures, survivors, unexpected
from lab.netlists.candidates import candidates, choose
from lab.netlists.design import NOWHERE, Design, design_of
from lab.netlists.fault import HOLDS, KINDS, Fault
from lab.proofs.proof import Verdict, prove
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario
from sim.units import UNITS


class Adder(wiring.Component):
    """A running sum behind one rank: small, with a register that keeps its value, a constant and a comparison."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total, enable = Signal(4, name="total"), Signal(name="enable")
        m.d.comb += [enable.eq(~self.o.valid | self.o.ready), self.i.ready.eq(enable)]
        big = Signal(name="big")
        m.d.comb += big.eq(self.i.payload > 9)
        with m.If(enable):
            # The content of an empty rank does not matter: `self.i.valid &` could go, and nothing would show.
            with m.If(self.i.valid & (enable | big)):
                m.d.sync += self.o.payload.eq(total + Mux(big, 1, self.i.payload))
            with m.If(self.i.valid):
                m.d.sync += total.eq(total + Mux(big, 1, self.i.payload))
            m.d.sync += self.o.valid.eq(self.i.valid)
        return m


PORT = Port(Fields({"payload": 4}), Fields({"payload": 4}))


@pytest.fixture(scope="module")
def adder() -> Design:
    return design_of(Adder())


@pytest.fixture(scope="module")
def found(adder: Design) -> list[Fault]:
    return list(candidates(adder))


def scenario(**given: Any) -> Scenario:
    payloads = np.random.default_rng(1).integers(0, 16, 200).astype(np.uint64)
    sums = np.cumsum(np.where(payloads > 9, 1, payloads)) % 16
    takes = np.random.default_rng(2).random(97) < 0.7
    values = {"payloads": payloads, "answers": sums.astype(np.uint64), "case": np.arange(200), "takes": takes}
    return Scenario("sums", **values | given)


def caught(design: Design, faults: list[Fault], driven: Scenario | None = None) -> list[Cause]:
    machine = Machine(gates_of(design, faults), PORT, {number: number + 1 for number in range(len(faults))})
    machine.run(driven or scenario())
    return [Cause(int(cause)) for cause in machine.caught[1 : len(faults) + 1]]


def one(found: list[Fault], kind: str, words: str) -> Fault:
    return next(fault for fault in found if fault.kind == kind and words in fault.what)


def test_candidates_of_a_small_unit_are_of_every_kind(found):
    assert {fault.kind for fault in found} == set(KINDS)


def test_choice_leaves_no_kind_out_and_is_repeated_by_its_seed(found):
    chosen = choose(found, 3 * len(KINDS), 1)
    assert {fault.kind for fault in chosen} == set(KINDS)
    assert len(set(chosen)) == len(chosen)
    assert chosen == choose(found, 3 * len(KINDS), 1) != choose(found, 3 * len(KINDS), 2)


def test_fault_in_the_comparison_of_an_enumeration_is_placed_where_its_result_goes():
    # The cell's own line is one of Amaranth: docs/faults.md counted eight such faults in a module called "?".
    found = list(candidates(design_of(UNITS["mac_cbfloat16"].build())))
    assert not [fault.name for fault in found if fault.file == NOWHERE]
    without_line = [fault for fault in found if not fault.has_line]
    assert {(fault.file, fault.group, fault.module) for fault in without_line} == {
        ("mac/multiply_accumulate.py", "", "top")
    }
    assert len(without_line) == 4


def test_candidates_of_the_mac_have_the_faults_that_an_outside_trial_found():
    names = [fault.name for fault in candidates(design_of(UNITS["mac_cbfloat16"].build()))]
    for file, words in (
        ("mac/chunks.py", "width: left_before, 16 -> 6 bits"),
        ("mac/chunks.py", "delay: is_one one cycle late"),
        ("mac/issue.py", "ignores the reset"),
        ("mac/promotions.py", "cycles_of_others"),
    ):
        assert any(name.startswith(f"hdl/{file}") and words in name for name in names), words


@pytest.mark.parametrize(
    ("kind", "words", "cause"),
    [
        ("constant", "bit 3, is always 0", Cause.WRONG),
        ("width", "4 -> 3 bits", Cause.WRONG),
        ("off by one", "+ 1", Cause.WRONG),
        ("condition", "always the choice", None),
        ("constant", "enable is always 0", Cause.STUCK),
    ],
)
def test_copy_with_a_fault_is_caught_and_the_unit_itself_is_not(adder, found, kind, words, cause):
    (told,) = caught(adder, [one(found, kind, words)])
    assert told is not Cause.SAME
    assert cause in (None, told)


def test_copies_with_many_faults_at_once_are_told_as_each_alone(adder, found):
    chosen = [fault for fault in choose(found, 60, 3) if not fault.may_loop]
    together = caught(adder, chosen)
    assert Cause.SAME in together
    assert len(set(together)) > 2
    for fault, told in list(zip(chosen, together, strict=True))[:5]:
        assert caught(adder, [fault]) == [told], fault.name


def test_unit_that_does_not_give_what_it_should_ends_the_run(adder, found):
    machine = Machine(gates_of(adder, found[:1]), PORT, {0: 1})
    with pytest.raises(RuntimeError, match="without faults fails"):
        machine.run(scenario(answers=np.zeros(200, np.uint64)))


def test_scenario_without_answers_is_an_error(adder, found):
    machine = Machine(gates_of(adder, found[:1]), PORT, {0: 1})
    with pytest.raises(ValueError, match="nothing would be compared"):
        machine.run(scenario(answers=np.zeros(0, np.uint64), payloads=np.zeros(0, np.uint64)))


def missing(design: Design, faults: list[Fault], driven: Scenario | None = None) -> list[str]:
    gates = gates_of(design, faults)
    guards = [(at, value) for at, name in enumerate(gates.names) if name for value in (True, False)]
    machine = Machine(gates, PORT, {number: number + 1 for number in range(len(faults))})
    machine.watch(guards, 100)
    machine.run(driven or scenario(), cut=150)
    pair = Pair(gates, Wires.of(gates.ports, axi_stream=False), guards)
    return [pair.missing(number, Conjectures(*machine.seen(number + 1))) for number in range(len(faults))]


def test_fault_in_what_nobody_looks_at_is_proven_to_be_none(adder, found):
    unseen = [fault for fault in found if fault.kind == "condition" and "without i__valid" in fault.what]
    told, proofs = caught(adder, unseen), missing(adder, unseen)
    assert (Cause.SAME, "") in zip(told, proofs, strict=True)


def test_faults_that_are_caught_are_never_proven_to_be_none(adder, found):
    chosen = [fault for fault in choose(found, 40, 5) if not fault.may_loop]
    pairs = list(zip(caught(adder, chosen), missing(adder, chosen), chosen, strict=True))
    assert [fault.name for told, lacking, fault in pairs if told is not Cause.SAME and not lacking] == []


@pytest.mark.turns
@pytest.mark.parametrize(("same", "guarded"), [(True, True), (True, False), (False, True)])
def test_faults_that_are_caught_are_not_proven_to_be_none_by_conjectures_that_nothing_has_tried(
    adder, found, same, guarded
):
    # No run has thinned them out: what does not follow one cycle later, induction must drop by itself.
    chosen = [fault for fault in choose(found, 40, 5) if not fault.may_loop]
    gates = gates_of(adder, chosen)
    guards = [(at, value) for at, name in enumerate(gates.names) if name for value in (True, False)]
    pair, registers = Pair(gates, Wires.of(gates.ports, axi_stream=False), guards), len(gates.registers)
    given = Conjectures(np.full(registers, same), np.full((len(guards), registers), guarded))
    seen = [fault for fault, told in zip(chosen, caught(adder, chosen), strict=True) if told is not Cause.SAME]
    assert len(seen) > 20
    assert [fault.name for fault in seen if not pair.missing(chosen.index(fault), given)] == []


def test_sample_of_a_converter_is_judged_and_most_faults_are_told():
    (batch,) = batches([Target("cbfloat16_to_float32", 40)])
    judged, cycles, _ = judge(batch)
    assert len(judged) > 30
    assert cycles > 1000
    told = sum(one.verdict is Fate.SIMULATION for one in judged)
    assert told > 0.8 * len(judged)


def wrapper_fault(words: str) -> Judged:
    found = candidates(design_of(UNITS["mac_axi_stream"].build()))
    fault = next(each for each in found if each.file == "axi_stream.py" and words in each.what)
    return Judged("mac_axi_stream", fault, Fate.OPEN, "")


@pytest.mark.long
def test_proof_refutes_a_register_beyond_the_unit_that_is_not_refused():
    # Register 16 of a unit of 16.
    judged, _ = try_proofs(wrapper_fault("16 -> 17"))
    assert judged.verdict is Fate.PROOF
    assert judged.by == "axi_stream/configurable/bitwuzla"


@pytest.mark.long
def test_proof_of_the_unit_without_faults_goes_through_the_same_way(tmp_path):
    (proof,) = proofs_of(wrapper_fault("16 -> 17"))
    with faulty(None):
        assert prove(proof, tmp_path).verdict is Verdict.PROVEN


def test_run_without_faults_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--count", "0"])
    assert "--count: got 0, must be at least 1" in capsys.readouterr().err


def test_tables_count_what_was_judged_and_list_survivors_with_their_reason(found):
    judged = [
        Judged("adder", found[0], Fate.OPEN, ""),
        Judged("adder", found[1], Fate.SIMULATION, "sums"),
        Judged("adder", found[2], Fate.NONE, "structure"),
    ]
    by_module, _, by_unit, survived = figures(judged)
    assert [row[1:] for row in by_unit.rows] == [("3", "1", "0", "1", "1", "50.0 %")]
    assert sum(int(row[1]) for row in by_module.rows) == 3
    assert [row[-1] for row in survived.rows] == [f"open: {NOT_KNOWN}"]
    assert survivors(judged) == [f"{found[0].name} (adder, {found[0].module})"]


def test_survivor_that_the_page_lists_without_a_reason_fails_the_run(found):
    # A run ended with 0 once the page listed its survivors, even those into which nobody had looked.
    judged = [
        Judged("adder", found[0], Fate.OPEN, ""),
        Judged("adder", found[1], Fate.OPEN, "", f"not decided; control/a/bitwuzla {HOLDS}"),
    ]
    first, second = survivors(judged)
    assert unexpected(judged, known=[first, second]) == [first]
    assert unexpected(judged[1:], known=[second]) == []
    assert unexpected(judged[1:], known=[first]) == [second]


@pytest.mark.parametrize(
    ("remark", "why"),
    [
        ("not decided; 2 registers differ in simulation", "open: not decided; 2 registers differ in simulation"),
        (
            f"not decided; control/a/bitwuzla {HOLDS}; control/b/bitwuzla {HOLDS}",
            "the specification holds of a unit with it all the same: control/a/bitwuzla, control/b/bitwuzla",
        ),
    ],
)
def test_tables_say_what_was_tried_of_a_survivor_without_a_reason(found, remark, why):
    assert [row[-1] for row in figures([Judged("adder", found[0], Fate.OPEN, "", remark)])[-1].rows] == [why]


def test_reason_holds_only_in_the_units_that_it_is_known_of():
    # In the vector unit only level 1 needs an even register; in the unit of one lane level 0 does, too.
    fault = Fault(
        "mac/decode.py:61", "operand", "$9: held_valid instead of decoded.wide_total", "top", "cell", "A", (), 0
    )
    assert reason_of(fault, "vector_mac").startswith("equivalent")
    assert not reason_of(fault, "mac_cbfloat16")


class Idle(wiring.Component):
    """A rank whose word never leaves 0, with a bit that a fault may look at."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        enable = Signal()
        first, second = (Signal(4, name=name, reset_less=True) for name in ("first", "second"))
        m.d.comb += [enable.eq(~self.o.valid | self.o.ready), self.i.ready.eq(enable)]
        # Neither register ever holds anything but 0, which induction from any state does not know.
        m.d.sync += [first.eq(second & self.i.payload), second.eq(first | second)]
        with m.If(enable):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload ^ (first & self.i.payload))]
        return m


def test_fault_in_a_register_that_never_leaves_its_first_value_is_proven_to_be_none():
    design = design_of(Idle())
    faults = [
        each for each in candidates(design) if each.kind == "constant" and each.what.startswith(("first", "second"))
    ]
    words = np.random.default_rng(3).integers(0, 16, 200).astype(np.uint64)
    driven = scenario(payloads=words, answers=words)
    told, proofs = caught(design, faults, driven), missing(design, faults, driven)
    unseen = [lacking for cause, lacking in zip(told, proofs, strict=True) if cause is Cause.SAME]
    assert len(unseen) >= 4
    assert set(unseen) == {""}
    assert all(lacking for cause, lacking in zip(told, proofs, strict=True) if cause is not Cause.SAME)


class Through(wiring.Component):
    """Words pass through, but not twice in a row: outputs of gates alone."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(name="held")
        m.d.sync += held.eq(self.i.valid & ~held)
        m.d.comb += [self.o.valid.eq(self.i.valid & ~held), self.i.ready.eq(self.o.ready & ~held)]
        m.d.comb += self.o.payload.eq(self.i.payload ^ held)
        return m


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("i__ready without o__ready", "ready"),
        ("o__valid without i__valid", "valid"),
        ("o__payload, bit 3, is always 0", "an answer"),
    ],
)
def test_fault_in_one_output_alone_is_not_proven_to_be_none(what, name, monkeypatch):
    design = design_of(Through())
    (fault,) = (each for each in candidates(design) if each.what == what)
    gates = gates_of(design, [fault])
    registers = len(gates.registers)
    pair = Pair(gates, Wires.of(gates.ports, axi_stream=False), [])
    every = Conjectures(np.ones(registers, np.bool_), np.ones((0, registers), np.bool_))
    assert pair.missing(0, every) == f"{name} may differ"
    monkeypatch.setattr(Question, "possible", lambda self, edges: None if edges else [])
    assert pair.missing(0, every) == "not decided"


def test_fault_of_which_the_solver_decides_nothing_is_not_proven_to_be_none(adder, found, monkeypatch):
    # Outputs that are the same gates need no solver, but the undecided registers must still count.
    monkeypatch.setattr(Question, "possible", lambda self, edges: None if edges else [])
    chosen = [fault for fault in choose(found, 40, 5) if not fault.may_loop]
    gates = gates_of(adder, chosen)
    registers = len(gates.registers)
    pair = Pair(gates, Wires.of(gates.ports, axi_stream=False), [])
    every = Conjectures(np.ones(registers, np.bool_), np.ones((0, registers), np.bool_))
    told = {pair.missing(number, every) for number in sorted(gates.selects)}
    assert told == {"not decided"}


@pytest.mark.parametrize(("bit", "is_known"), [(0, True), (3, True), (13, False), (15, False)])
def test_reason_of_a_reset_holds_for_the_register_of_an_operation_and_not_for_its_valid_bit(bit, is_known):
    # Bit 15 says that the operation writes: one that nobody issued would.
    what = f"at__3.register[15:0] is reset to another value, bit {bit}"
    assert (
        bool(reason_of(Fault("mac/operation.py:106", "reset", what, "top", "cell", "Q", (), 0), "mac_cbfloat16"))
        is is_known
    )
