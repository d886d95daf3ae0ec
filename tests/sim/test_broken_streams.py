"""Units with a broken stream or a deliberate fault fail, in machine code and in a simulator."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from golden import CBFLOAT16, FLOAT8_E5M2, FP16, format_named
from hdl.catalogue import Kind, Unit
from hdl.verilog import to_verilog
from sim.bench.explain_reduction import inner_format
from sim.run.compiled import Engine
from sim.run.simulate import Job, prepare, run_unit
from sim.units import UNITS

UNIT = "float16_to_float32_stages_3"
#: A wrapper of the right unit: logic between its answers and the bench. `count` and `left` count answers, `idle` cycles
#: without one; `asked` says that somebody was ready since the last one was taken.
WRAPPER = """
module {unit}(
  input clk, input rst, input [15:0] i__payload, input i__valid, output i__ready,
  output [36:0] o__payload, output o__valid, input o__ready
);
  wire valid;
  wire [36:0] answer;
  reg phase = 0;
  reg [7:0] count = 0;
  reg [7:0] left = 8'd255;
  reg [7:0] idle = 0;
  reg asked = 0;
  wire shown = {shown};
  wire swallowed = {swallowed};
  reg again = 0;
  wire taken = o__ready & shown | swallowed;
  right right(
    .clk(clk), .rst(rst), .i__payload(i__payload), .i__valid(i__valid), .i__ready(i__ready),
    .o__payload(answer), .o__valid(valid), .o__ready(taken)
  );
  assign o__valid = valid & shown & ~swallowed | again;
  assign o__payload = answer ^ {changed} ^ {{37{{left == 8'd0 | count == 8'd255}}}};
  always @(posedge clk) begin
    phase <= ~phase;
    asked <= ~rst & (o__ready | asked) & ~(valid & taken);  // nobody drives o__ready at the first edge
    again <= {again} | again & ~o__ready;
    if (valid & taken) begin count <= count + 8'd1; left <= left - 8'd1; end
    if (valid) idle <= 8'd0;
    else if (count != 8'd0 & idle != 8'd255) idle <= idle + 8'd1;
  end
endmodule
"""
RIGHT = {"shown": "1'b1", "swallowed": "1'b0", "again": "1'b0", "changed": "37'd0"}
WRONG = {
    "valid_falls": ({"shown": "phase"}, "valid fell before the answer was taken"),
    "answer_changes": ({"changed": "{36'd0, phase}"}, "the answer changed before it was taken"),
    "top_bit_of_an_answer_changes": ({"changed": "{phase, 36'd0}"}, "the answer changed before it was taken"),
    "an_answer_too_many_30_cycles_later": ({"again": "idle == 8'd30"}, "answer that nobody expects"),
    "last_answer_never_comes": ({"swallowed": "valid & count == 8'd29"}, "1 of 30 answers: unanswered"),
    "flag_of_the_last_answer": ({"changed": "{count == 8'd29, 36'd0}"}, "1 of 30 answers: mismatches"),
    "answers_for_ever": ({"again": "count == 8'd30"}, "answer that nobody expects"),
    "valid_waits_for_ready": ({"shown": "asked"}, "30 of 30 answers: unanswered"),
    "payloads_are_refused": ({"shown": "count != 8'd5"}, "of 30 payloads were accepted"),
}


def outcome_of(job: Job, folder: Path, engine: Engine, backpressure: str = "random", **fault: str):
    wrong = folder / "wrong.v"
    verilog = to_verilog(UNITS[UNIT].build(), UNIT)
    assert verilog.count(f"module {UNIT}(") == 1
    right = verilog.replace(f"module {UNIT}(", "module right(")
    wrong.write_text(right + WRAPPER.format(unit=UNIT, **RIGHT | fault))
    scenario = f"stream_idle_none_backpressure_{backpressure}"
    return run_unit(Job(job.unit, 1, job.folder, effort=0.25, scenarios=scenario, verilog=wrong, engines=(engine,)))


@pytest.mark.parametrize("engine", Engine)
def test_unit_in_a_wrapper_that_changes_nothing_passes(small_job: Job, tmp_path: Path, engine: Engine) -> None:
    outcome = outcome_of(small_job, tmp_path, engine)
    assert (outcome.failures, outcome.vectors) == ([], 30)
    if engine is Engine.COMPILED:
        # 30 answers: no bit of 32 and more has been 1 in the one, or 0 in the other.
        still = {name.rpartition(".")[2]: bits for name, bits in outcome.still.items()}
        assert (still["count"], still["left"]) == ([5, 6, 7], [5, 6, 7])
        assert "phase" not in still


@pytest.mark.turns
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("fault", WRONG)
def test_unit_with_a_broken_stream_fails(small_job: Job, tmp_path: Path, fault: str, engine: Engine) -> None:
    change, said = WRONG[fault]
    backpressure = "none" if fault == "valid_waits_for_ready" else "random"
    outcome = outcome_of(small_job, tmp_path, engine, backpressure, **change)
    assert not outcome.is_broken
    assert said in "".join(outcome.failures)


_MODES = ("nearest_even", "toward_zero")


def failures(
    unit: Unit, folder: Path, monkeypatch: pytest.MonkeyPatch, scenarios: str, fault: tuple[str, str]
) -> list[str]:
    """The regression's failures for a unit with a fault in all lanes of its Verilog, which passes without it."""
    monkeypatch.setitem(UNITS, unit.name, unit)
    job = Job(unit.name, 1, folder / "run", scenarios=scenarios, engines=(Engine.COMPILED,))
    assert run_unit(job).failures == []
    old, new = fault
    text, times = re.subn(old, new, (job.folder / "one.v").read_text())
    assert times == unit.arguments.get("lanes", 1)
    faulty = folder / "faulty.v"
    faulty.write_text(text)
    return run_unit(replace(job, verilog=faulty)).failures


def unit_of(kind: Kind, **arguments: Any) -> Unit:
    lanes = {"lanes": 2} if kind is Kind.VECTOR else {}
    return Unit(name="one", kind=kind, arguments={"stages": 3, "registers": 8, **lanes, **arguments}, effort=0.03)


@pytest.mark.long
@pytest.mark.parametrize("kind", [Kind.MAC, Kind.VECTOR])
def test_counter_that_misses_one_event_in_one_mode_is_found(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Toward zero 0x7dff * 0x3e00 + 0x7dff stays 0x7dff, so the product is lost whole.
    fault = r"(round_watched_is_largest & )round_to_largest;", r"\g<1>1'h0;"
    unit = unit_of(kind, operands=(CBFLOAT16,), levels=(2,), roundings=_MODES, counters=True)
    (found,) = failures(unit, tmp_path, monkeypatch, "counted_events", fault)
    assert "products.swamped counts" in found


@pytest.mark.long
@pytest.mark.parametrize("kind", [Kind.MAC, Kind.VECTOR])
def test_flag_of_narrow_operands_that_stay_as_they_are_and_is_lost_is_found(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 0x01 * 0x01 is 2**-32, and the least float8_e5m2 is 2**-16: inexact and underflow.
    fault = r"assign step_flags\[1\] = .*;", "assign step_flags[1] = 1'h0;"
    unit = unit_of(kind, operands=(FLOAT8_E5M2,), inner="operand", levels=(2,))
    found = failures(unit, tmp_path, monkeypatch, "steps", fault)
    assert "float8_e5m2 level 2" in found[0]
    assert "underflow" in found[0]


def test_failure_line_of_operands_that_stay_as_they_are_has_no_wider_inner_format() -> None:
    # Otherwise, beside float16, float8_e5m2 would be taken for widened to float16.
    for operands, names in (
        ((FLOAT8_E5M2, FP16), ["float8_e5m2", "float16", "float8_e5m2"]),
        ((FP16, FLOAT8_E5M2), ["float16", "float8_e5m2"]),
    ):
        *_, found = prepare.__wrapped__(unit_of(Kind.MAC, operands=operands, inner="operand", levels=(2,)), 1, 0.01)
        assert found == names
        formats = [format_named(name) for name in found]
        assert [inner_format(formats, operand) for operand in operands] == list(operands)
