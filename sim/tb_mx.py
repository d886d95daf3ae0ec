"""cocotb tests of the block quantiser."""

from __future__ import annotations

from typing import Any

import cocotb

from sim.bench.explain_block import explain_block
from sim.bench.testbench import SCENARIOS, Testbench


@cocotb.test()
@cocotb.parametrize(scenario=[cocotb.Param(name, name=name) for name in SCENARIOS])
async def blocks_give_what_golden_gives(dut: Any, scenario: str) -> None:
    bench = Testbench(dut)
    await bench.reset()
    await bench.run(scenario, explain_block)
