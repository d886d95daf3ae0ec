"""cocotb tests of a format converter."""

from __future__ import annotations

from typing import Any

import cocotb

from golden import format_named
from sim.bench.explain import distance_in_ulp, flag_names, show
from sim.bench.testbench import SCENARIOS, Testbench
from sim.scenario import Scenario


@cocotb.test()
@cocotb.parametrize(scenario=[cocotb.Param(name, name=name) for name in SCENARIOS])
async def converter_gives_what_golden_gives(dut: Any, scenario: str) -> None:
    bench = Testbench(dut)
    await bench.reset()
    await bench.run(scenario, _explain)


def _explain(bench: Testbench, scenario: Scenario, index: int, actual: int | str | None) -> str:
    source, destination = map(format_named, bench.formats)
    wanted = bench.port.answer.unpack(scenario.answers[index])
    code = int(scenario.payloads[scenario.case[index]])
    expected = f"expected {show(wanted['bits'], destination)} flags {flag_names(wanted.get('flags', 0))}"
    if isinstance(actual, int):
        found = bench.port.answer.unpack(actual)
        distance = distance_in_ulp(wanted["bits"], found["bits"], destination)
        got = f"got {show(found['bits'], destination)} flags {flag_names(found.get('flags', 0))}, {distance}"
    else:
        got = f"got {actual or 'unknown bits'}"
    return f"{source} {show(code, source)} -> {destination}: {expected}, {got} (seed {bench.seed})"
