"""The scenarios as machine code: they agree with a simulator, and see faults."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from golden import CBFLOAT16, FP16, FloatFormat, dot
from hdl.verilog import to_verilog
from sim.bench.episode import Ran
from sim.bench.explain import explain_conversion
from sim.bench.findings import Context, findings
from sim.bench.shell import shell
from sim.cycles.model import Model
from sim.cycles.registers import Register, never_seen, registers_of
from sim.fields import Fields
from sim.port import Port
from sim.run.compiled import Engine, run_compiled
from sim.run.compiled import _resets as resets_met
from sim.run.coverage import write_coverage
from sim.run.outcome import Outcome
from sim.run.simulate import Job, run_unit
from sim.scenario import Scenario
from sim.stimulus.long_chunks import long_lengths, sparse_results
from sim.units import UNITS, port_of
from tools.paths import ROOT

UNIT = "float16_to_float32_stages_3"
FOLDER = ROOT / "build" / "test_cycles"

SOURCE = """
struct p_testbench : public module {
\t// \\init: 0
\t// \\hdlname: dut counter
\twire<40> p_dut_2e_counter {0u};
\twire<1> p_accepted;
\t// \\hdlname: dut words
\tmemory<7> memory_p_dut_2e_words { 16u };
};
"""


def model_of(verilog: str, folder: Path) -> tuple[Model, Port]:
    port = port_of(UNITS[UNIT], UNITS[UNIT].build())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "design.v").write_text(verilog)
    (folder / "shell.v").write_text(shell(UNIT, port))
    return Model([folder / "design.v", folder / "shell.v"], port, folder / "compiled"), port


def conversions(port: Port, codes: list[int], bits: list[int]) -> Scenario:
    scenario = Scenario(
        "some", np.array(codes, np.uint64), port.answer.pack(bits=np.array(bits)), np.arange(len(codes))
    )
    scenario.ends = np.arange(len(codes))
    return scenario


def found_by(model: Model, port: Port, scenario: Scenario) -> list[str]:
    context = Context(UNIT, 1, 1.0, port, ["float16", "float32"])
    return findings(context, scenario, model.run(scenario), explain_conversion)


@pytest.fixture(scope="module")
def compiled() -> tuple[Model, Port]:
    return model_of(to_verilog(UNITS[UNIT].build(), UNIT), FOLDER)


def test_model_right_answers_find_nothing(compiled: tuple[Model, Port]) -> None:
    model, port = compiled
    assert found_by(model, port, conversions(port, [0x3C00, 0xC000], [0x3F800000, 0xC0000000])) == []


def test_model_wrong_answer_is_named_with_both_codes(compiled: tuple[Model, Port]) -> None:
    model, port = compiled
    found = "\n".join(found_by(model, port, conversions(port, [0x3C00, 0xC000], [0x3F800000, 0xC0000001])))
    assert "1 of 2 answers: mismatches" in found
    assert "0xc000 (-2.0) -> float32: expected 0xc0000001" in found


def test_model_reset_drops_what_is_under_way_and_starts_anew(compiled: tuple[Model, Port]) -> None:
    model, port = compiled
    scenario = conversions(port, [0x3C00] * 8 + [0xC000], [0x3F800000] * 8 + [0xC0000000])
    scenario.episodes = np.array([[0, 0, 5], [8, 8, 0]])
    first, second = model.run(scenario)
    assert 0 < len(first.answers) < first.accepted < 8
    assert second.answers == [port.answer.pack(bits=0xC0000000)]
    assert found_by(model, port, scenario) == []


def test_model_pauses_keep_payloads_apart(compiled: tuple[Model, Port]) -> None:
    model, port = compiled
    scenario = conversions(port, [0x3C00, 0xC000], [0x3F800000, 0xC0000000])
    scenario.pauses = np.array([0, 10])
    (ran,) = model.run(scenario)
    assert ran.cycles == 12


def test_unit_whose_result_survives_a_reset_fails(tmp_path: Path) -> None:
    verilog = to_verilog(UNITS[UNIT].build(), UNIT)
    wrong = tmp_path / "wrong.v"
    assert verilog.count("if (rst) begin") == 3
    wrong.write_text(verilog.replace("if (rst) begin", "if (0) begin"))
    job = Job(UNIT, 1, tmp_path / "run", scenarios="resets", verilog=wrong, engines=(Engine.COMPILED,))
    outcome = run_unit(job)
    assert not outcome.is_broken
    assert "answer that nobody expects" in outcome.failures[0]
    assert run_unit(dataclasses.replace(job, verilog=None)).passed


def test_findings_answer_of_what_was_not_accepted_before_the_reset_is_unexpected() -> None:
    port = Port(Fields({"code": 16}), Fields({"bits": 32}))
    scenario = conversions(port, [1, 2, 3], [4, 5, 6])
    scenario.episodes = np.array([[0, 0, 9], [3, 3, 0]])
    found = findings(Context(UNIT, 1, 1.0, port, []), scenario, [Ran([4, 5], accepted=1), Ran()], explain_conversion)
    assert "answer that nobody expects: {'bits': 5}" in found


def test_registers_are_read_with_their_names_widths_and_depths() -> None:
    assert registers_of(SOURCE, "testbench") == [
        Register("dut.counter", "p_dut_2e_counter", 40, 0),
        Register("dut.words", "memory_p_dut_2e_words", 7, 16),
    ]


def test_bits_that_were_never_0_or_1_are_told_by_register() -> None:
    registers = registers_of(SOURCE, "testbench")
    zeros = np.array([0xFFFFFFFE, 0xFF, 0x7F], np.uint32)
    ones = np.array([0xFFFFFFFF, 0x7F, 0x7F], np.uint32)
    assert never_seen(registers, zeros, ones) == {"dut.counter": ([0], [39])}


@pytest.mark.parametrize(("bits", "expected"), [(3, [1, 2, 3, 4, 5, 7, 0]), (1, [1, 0])])
def test_long_lengths_lie_around_powers_of_two(bits: int, expected: list[int]) -> None:
    assert long_lengths(bits, 16) == expected


def test_long_lengths_reach_the_largest_of_the_port() -> None:
    lengths = long_lengths(16, 16)
    assert {1, 2, 63, 64, 65, 255, 256, 257, 32769, 65535, 0} <= set(lengths)
    assert max(lengths) == 65535


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("operand", [CBFLOAT16, FP16], ids=str)
def test_sparse_results_are_those_of_all_products_with_flags(operand: FloatFormat, level: int) -> None:
    rng = np.random.default_rng(3)
    places = np.array([0, 1, 7, 16, 17, 30, 33])
    a, b = (rng.integers(0, operand.inf, places.size).astype(np.uint16) for _ in "ab")
    chunks = np.array([1, 3, 16, 17, 40])
    results, flags = sparse_results(operand, level, a, b, places, chunks)
    every, ones = np.zeros(36, np.uint16), np.full(36, operand.one, np.uint16)
    every[places], ones[places] = a, b
    for at, chunk in enumerate(chunks.tolist()):
        result, raised = dot(every, ones, operand=operand, level=level, chunk=chunk, return_flags=True)
        assert (int(results[at]), int(flags[at])) == (int(result), int(raised)), chunk


def test_register_bit_that_must_change_and_does_not_fails(tmp_path: Path) -> None:
    outcome = Outcome("unit", still={"dut.issue.chunks.states": [15], "dut.lane.constant": [0]})
    assert outcome.stuck == ["dut.issue.chunks.states[15]"]


def test_coverage_page_shows_holes_and_registers_that_never_changed(tmp_path: Path) -> None:
    outcome = Outcome("unit", required={"reset/answer_waits", "reset/payload_refused"}, register_bits=9)
    outcome.bins["reset/answer_waits"] = 12
    outcome.still = {"dut.counter": [3, 4]}
    write_coverage([outcome], "one unit", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'class="met1" title="reset / answer_waits: 12"' in page
    assert 'class="hole" title="reset / payload_refused: 0"' in page
    assert "dut.counter[3,4]" in page
    assert "<td>7/9</td>" in page


def test_unit_that_does_not_translate_is_broken(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.v"
    wrong.write_text("module nothing; endmodule\n")
    outcome = run_unit(Job(UNIT, 1, tmp_path / "run", scenarios="resets", verilog=wrong, engines=(Engine.COMPILED,)))
    assert outcome.is_broken


def test_run_compiled_ends_early_with_the_first_failure(compiled: tuple[Model, Port]) -> None:
    _, port = compiled
    outcome, wrong = Outcome(UNIT), conversions(port, [0x3C00], [1])
    context = Context(UNIT, 1, 1.0, port, ["float16", "float32"])
    sources = [FOLDER / "design.v", FOLDER / "shell.v"]
    run_compiled(sources, [wrong, wrong], context, explain_conversion, FOLDER / "again", outcome, stops_early=True)
    assert len(outcome.failures) == 1
    assert not outcome.is_broken


def test_reset_is_counted_in_the_state_in_which_it_met_the_unit() -> None:
    # Three payloads in each episode, each with an answer; the last episode runs to its end and does not count.
    scenario = conversions(port_of(UNITS[UNIT], UNITS[UNIT].build()), [0] * 12, [0] * 12)
    scenario.episodes = np.array([[0, 0, 9], [3, 3, 9], [6, 6, 9], [9, 9, 0]])

    def states(**first: object) -> dict[str, int]:
        return dict(resets_met(scenario, [Ran(**first), Ran(), Ran(), Ran([0] * 3, accepted=3, is_answered=True)]))

    assert states() == {}
    assert states(answers=[0], accepted=1) == {"reset/in_operation": 1}
    assert states(accepted=1, is_answered=True) == {"reset/in_operation": 1, "reset/answer_waits": 1}
    on_its_way = {"reset/in_operation": 1, "reset/answers_on_their_way": 1}
    assert states(accepted=1) == on_its_way
    assert states(answers=[0], accepted=2) == on_its_way
    held = {"reset/payload_refused": 1, "reset/held_payload_with_answer": 1}
    assert states(accepted=1, is_blocked=True) == on_its_way | held
    scenario.ends = scenario.ends + 1
    assert states(accepted=1) == {"reset/in_operation": 1, "reset/nothing_due": 1}
    assert states(accepted=1, is_blocked=True) == {
        "reset/in_operation": 1, "reset/nothing_due": 1, "reset/payload_refused": 1,
    }  # fmt: skip
