"""cocotb tests of the multiply-accumulate unit behind AXI4-Stream ports."""

from __future__ import annotations

from typing import Any

import cocotb

from sim.bench.driver import Driver
from sim.bench.explain_reduction import explain_reduction
from sim.bench.monitor import Monitor
from sim.bench.testbench import SCENARIOS, Testbench, run_folder
from sim.scenario import Scenario

_CYCLES = 60


@cocotb.test()
@cocotb.parametrize(scenario=[cocotb.Param(name, name=name) for name in SCENARIOS])
async def reductions_give_what_golden_gives(dut: Any, scenario: str) -> None:
    bench = Testbench(dut)
    await bench.reset()
    await bench.run(scenario, explain_reduction)


@cocotb.test()
async def reset_drops_what_is_under_way(dut: Any) -> None:
    """Reset in the middle of a stream: tvalid falls, nothing comes afterwards."""
    bench = Testbench(dut)
    await bench.reset()
    scenario = Scenario.load(run_folder(), SCENARIOS[0])
    driver, monitor = Driver(dut, scenario), Monitor(dut, scenario)
    for cycle in range(1, _CYCLES):
        await bench.wait(1)
        monitor.step(cycle)
        driver.step(cycle)
    assert driver.accepted, "no product was accepted before the reset"
    dut.rst.value = 1
    dut.valid.value = 0
    dut.take.value = 0
    await bench.wait(2)
    dut.rst.value = 0
    for cycle in range(_CYCLES):
        await bench.wait(1)
        assert not dut.answered.value, f"m_axis_tvalid is high {cycle} cycles after the reset"
