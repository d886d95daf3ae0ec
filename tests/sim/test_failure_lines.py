"""The text of a failure: enough to see the fault, and last the command that repeats it."""

import numpy as np
import pytest
from rich.console import Console

from golden import CBFLOAT16, FLOAT6_E3M2FN, FP16, FP32
from sim.bench.explain import explain_block, explain_conversion, show
from sim.bench.findings import Context
from sim.fields import Fields
from sim.port import Port
from sim.run.outcome import Outcome
from sim.run.report import print_outcome
from sim.scenario import Scenario

ANSWER = {"bits": CBFLOAT16.width, "flags": 5, "refused": 1}
MODES = Port(Fields({"code": FP32.width, "rounding": 3}), Fields(ANSWER))


def line_of(mode: int, wanted: dict[str, int], found: dict[str, int]) -> str:
    """Return the line about 0.1 as float32, converted in a mode."""
    payloads = np.array([MODES.request.pack(code=0x3DCCCCCD, rounding=mode)])
    answers = np.array([MODES.answer.pack(**{**dict.fromkeys(ANSWER, 0), **wanted})])
    context = Context("unit", 1, 1.0, MODES, ["float32", "cbfloat16"])
    scenario = Scenario("one", payloads, answers, np.zeros(1, np.int64))
    return explain_conversion(context, scenario, 0, int(MODES.answer.pack(**{**dict.fromkeys(ANSWER, 0), **found})))


@pytest.mark.parametrize("count", [24, 25, 60])
def test_report_long_failure_keeps_the_command_that_repeats_it(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*(f"line {number}" for number in range(count - 1)), "repeat: python -m sim --seed 1 --units mac"]
    print_outcome(Console(width=120), Outcome("mac", failures=["\n".join(lines)]), 1, 1)
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(shown) == 24
    assert shown[:22] == lines[:22]
    assert shown[22] == (lines[22] if count == 24 else "...")
    assert shown[-1] == lines[-1]


def test_conversion_in_a_mode_failure_names_the_mode() -> None:
    line = line_of(3, {"bits": 0x3734, "flags": 1}, {"bits": 0x3733, "flags": 1})
    assert line.startswith("float32 0x3dcccccd (0.10000000149011612) up -> cbfloat16: expected 0x3734 ")


def test_conversion_that_is_refused_wrongly_says_so() -> None:
    line = line_of(7, {"refused": 1}, {})
    assert line.startswith("float32 0x3dcccccd (0.10000000149011612) mode 7 -> cbfloat16: ")
    assert "expected 0x0000 (0.0) flags none, refused, got 0x0000 (0.0) flags none, +0 ulp" in line


@pytest.mark.parametrize(("lanes", "those"), [(1, "value 1;"), (2, "values 0 to 1;")])
def test_block_failure_names_the_values_of_its_beat(lanes: int, those: str) -> None:
    port = Port(Fields({"values": 16 * lanes}), Fields({"codes": 6 * lanes, "scale": 8, "last": 1}))
    answers = np.array([port.answer.pack(codes=0, scale=255, last=1)] * 2)
    scenario = Scenario("one", np.zeros(2, np.uint64), answers, np.zeros(2, np.int64))
    scenario.details = {"values": np.array([[0x3C00, 0x7C00]])}
    context = Context("unit", 1, 1.0, port, [FP16.name, FLOAT6_E3M2FN.name])
    assert those in explain_block(context, scenario, 1, None).partition("largest")[0]


def test_answer_beyond_the_codes_of_its_format_is_shown_as_none_of_them():
    assert show(0x41C00036, CBFLOAT16) == "0x41c00036 (no code of cbfloat16)"
