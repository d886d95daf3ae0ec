"""cocotb tests of the multiply-accumulate unit behind AXI4-Stream ports."""

from __future__ import annotations

from typing import Any

import cocotb

from sim.bench.explain_reduction import explain_reduction
from sim.bench.testbench import SCENARIOS, Testbench


@cocotb.test()
@cocotb.parametrize(scenario=[cocotb.Param(name, name=name) for name in SCENARIOS])
async def reductions_give_what_golden_gives(dut: Any, scenario: str) -> None:
    bench = Testbench(dut)
    await bench.reset()
    await bench.run(scenario, explain_reduction)
