"""Running one scenario on the design: clock, reset, driver, monitor, scoreboard."""

from __future__ import annotations

import gc
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from sim.bench.bus import BusCounting
from sim.bench.counting import Counting
from sim.bench.driver import Driver
from sim.bench.episode import PATIENCE, SURPLUS, Ran
from sim.bench.findings import Context, Explain, findings
from sim.bench.manager import quiet
from sim.bench.monitor import Monitor
from sim.scenario import Scenario

__all__ = ["EXPLAIN", "SCENARIOS", "Testbench", "run_folder"]

#: Environment variable that names the folder with the manifest and the scenarios.
RUN_FOLDER = "CBFLOAT_SIM_RUN"


def run_folder() -> Path:
    """Return the folder of this run."""
    return Path(os.environ[RUN_FOLDER])


_manifest: dict[str, Any] = json.loads((run_folder() / "manifest.json").read_text()) if RUN_FOLDER in os.environ else {}

#: Names of the scenarios of this run.
SCENARIOS: list[str] = _manifest.get("scenarios", [])
_module, _explain = _manifest.get("explain", ["sim.bench.findings", "Explain"])
#: Makes the failure lines of the unit.
EXPLAIN: Explain = getattr(import_module(_module), _explain)

# Imported modules are never freed; repeated garbage collection over them takes a tenth of a simulation.
gc.freeze()


class Testbench:
    """The shell around the design, with the facts of its manifest."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.context = Context.from_dict(_manifest)
        self._edge = FallingEdge(dut.clk)

    async def reset(self) -> None:
        """Start the clock and reset the design."""
        self.dut.rst.value = 1
        self.dut.valid.value = 0
        self.dut.take.value = 0
        self.dut.payload.value = 0
        if self.context.port.chunk_bits:
            self.dut.chunk.value = 0
        if self.context.port.counters == "ports":
            self.dut.clear_counts.value = 0
        if self.context.port.counters == "bus":
            quiet(self.dut)
        Clock(self.dut.clk, 2, unit="step", impl="gpi").start()
        await self.wait(3)
        self.dut.rst.value = 0
        await self.wait(1)

    async def wait(self, cycles: int) -> None:
        """Let cycles pass."""
        for _ in range(cycles):
            await self._edge

    async def run(self, name: str, explain: Explain) -> None:
        """Drive a scenario, compare, and fail with one line per finding.

        Parameters
        ----------
        name : str
            Scenario in the folder of this run.
        explain : function
            Makes a line from the context, the scenario, the index of an expected answer and the actual answer.
        """
        scenario = Scenario.load(run_folder(), name)
        ran = []
        for at in range(len(scenario.episodes)):
            ran.append(await self._episode(scenario, at))
            await self._interrupt()
        found = findings(self.context, scenario, ran, explain)
        if found:
            raise AssertionError("\n".join(found))

    async def _interrupt(self) -> None:
        """Reset the design for one cycle, in which the streams go on as they were."""
        self.dut.rst.value = 1
        await self.wait(1)
        self.dut.rst.value = 0
        self.dut.valid.value = 0
        self.dut.take.value = 0

    async def _episode(self, scenario: Scenario, at: int) -> Ran:
        driver, monitor = Driver(self.dut, scenario, scenario.payload_span(at)), Monitor(self.dut, scenario)
        counting = self._counting(scenario, at)
        cut = int(scenario.episodes[at][2])
        await self._drive(driver, monitor, counting, len(scenario.answer_span(at)), cut)
        counts = None
        if counting and cut:
            counting.abort()
        elif counting:
            counts = await counting.finish()
        return Ran(
            monitor.answers,
            driver.accepted,
            driver.last_cycle - driver.first_cycle + 1,
            [*monitor.broken_promises, *(counting.broken if counting else [])],
            counts,
            counting.met if counting else 0,
            driver.is_blocked,
            monitor.is_answered,
        )

    def _counting(self, scenario: Scenario, at: int) -> Counting | BusCounting | None:
        """Return the reader of the counters, if there are any."""
        match self.context.port.counters:
            case "ports":
                return Counting(self.dut, scenario)
            case "bus":
                return BusCounting(self.dut, self._edge, self.context.seed + at)
        return None

    async def _drive(
        self, driver: Driver, monitor: Monitor, counting: Counting | BusCounting | None, expected: int, cut: int
    ) -> None:
        """Go on until everything has come and nothing more comes, or for as many cycles as `cut` says."""
        edge, cycle, quiet = self._edge, 0, 0
        drive, observe = driver.step, monitor.step
        while quiet < (SURPLUS if driver.is_done and len(monitor.answers) >= expected else PATIENCE):
            # A unit that never stops answering would keep the loop running.
            if (cut and cycle == cut) or len(monitor.answers) > expected + SURPLUS:
                return
            await edge
            cycle += 1
            quiet += 1
            if observe(cycle):
                quiet = 0
            if drive(cycle):
                quiet = 0
            if counting:
                counting.step(cycle)
