"""The cocotb tests of every unit: one for each scenario of the run."""

from __future__ import annotations

from typing import Any

import cocotb

from sim.bench.testbench import EXPLAIN, SCENARIOS, Testbench


@cocotb.test()
@cocotb.parametrize(scenario=[cocotb.Param(name, name=name) for name in SCENARIOS])
async def unit_gives_what_golden_gives(dut: Any, scenario: str) -> None:
    bench = Testbench(dut)
    await bench.reset()
    await bench.run(scenario, EXPLAIN)
