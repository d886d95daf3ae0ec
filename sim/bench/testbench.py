"""Running one scenario on the design: clock, reset, driver, monitor, scoreboard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from sim.bench.driver import Driver
from sim.bench.monitor import Monitor
from sim.bench.scoreboard import Scoreboard
from sim.port import Port
from sim.scenario import Scenario

__all__ = ["SCENARIOS", "Testbench", "run_folder"]

#: Environment variable that names the folder with the manifest and the scenarios.
RUN_FOLDER = "CBFLOAT_SIM_RUN"

#: Cycles without a transfer after which whatever is missing will not come.
_PATIENCE = 400
#: Cycles in which nothing more may come once everything has come.
_SURPLUS = 40
_SHOWN = 5


def run_folder() -> Path:
    """Return the folder of this run."""
    return Path(os.environ[RUN_FOLDER])


_manifest: dict[str, Any] = json.loads((run_folder() / "manifest.json").read_text()) if RUN_FOLDER in os.environ else {}

#: Names of the scenarios of this run.
SCENARIOS: list[str] = _manifest.get("scenarios", [])


class Testbench:
    """The shell around the design, and what the manifest says of it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.port = Port.from_dict(_manifest["port"])
        self.seed, self.unit, self.formats = _manifest["seed"], _manifest["unit"], _manifest["formats"]
        self.effort: float = _manifest["effort"]
        self._edge = FallingEdge(dut.clk)

    async def reset(self) -> None:
        """Start the clock and reset the design."""
        self.dut.rst.value = 1
        self.dut.valid.value = 0
        self.dut.take.value = 0
        self.dut.payload.value = 0
        if self.port.chunk_bits:
            self.dut.chunk.value = 0
        Clock(self.dut.clk, 2, unit="step", impl="gpi").start()
        await self.wait(3)
        self.dut.rst.value = 0
        await self.wait(1)

    async def wait(self, cycles: int) -> None:
        """Let cycles pass."""
        for _ in range(cycles):
            await self._edge

    async def run(self, name: str, explain: Callable[..., str]) -> None:
        """Drive a scenario, compare, and fail with one line per finding.

        Parameters
        ----------
        name : str
            Scenario in the folder of this run.
        explain : function
            Makes a line from the testbench, the scenario, the index of an expected answer and what came instead.
        """
        scenario = Scenario.load(run_folder(), name)
        driver, monitor = Driver(self.dut, scenario), Monitor(self.dut, scenario)
        await self._drive(driver, monitor, len(scenario.answers))
        scoreboard = Scoreboard(self.port)
        scoreboard.compare(scenario, monitor.answers)
        findings = self._findings(scenario, scoreboard, driver, monitor, explain)
        if findings:
            raise AssertionError("\n".join(findings))

    async def _drive(self, driver: Driver, monitor: Monitor, expected: int) -> None:
        edge, cycle, quiet = self._edge, 0, 0
        drive, observe = driver.step, monitor.step
        while quiet < (_SURPLUS if driver.is_done and len(monitor.answers) >= expected else _PATIENCE):
            await edge
            cycle += 1
            quiet += 1
            if observe(cycle):
                quiet = 0
            if drive(cycle):
                quiet = 0

    def _findings(
        self, scenario: Scenario, scoreboard: Scoreboard, driver: Driver, monitor: Monitor, explain: Callable[..., str]
    ) -> list[str]:
        total = len(scenario.answers)
        findings = []
        if not total:
            findings.append("the scenario expects no answer: nothing was tested")
        if not driver.is_done:
            findings.append(f"only {driver.accepted} of {len(scenario.payloads)} payloads were accepted")
        for kind, found in (("mismatches", scoreboard.mismatches), ("unanswered", scoreboard.unanswered)):
            if found:
                findings.append(f"{len(found)} of {total} answers: {kind}")
        lines = [explain(self, scenario, wrong.index, wrong.actual) for wrong in scoreboard.mismatches[:_SHOWN]]
        lines += [explain(self, scenario, index, "nothing") for index in scoreboard.unanswered[:_SHOWN]]
        for answer in scoreboard.unexpected[:_SHOWN]:
            fields = "unknown bits" if answer is None else self.port.answer.unpack(answer)
            lines.append(f"answer that nobody expects: {fields}")
        lines += monitor.broken_promises[:_SHOWN]
        cycles = driver.last_cycle - driver.first_cycle + 1
        if scenario.cycles and cycles != scenario.cycles:
            findings.append(f"{driver.accepted} products took {cycles} cycles, must be {scenario.cycles}")
        effort = "" if self.effort == 1 else f" --effort {self.effort}"
        repeat = f"repeat: python -m sim --seed {self.seed} --units {self.unit} --scenarios {scenario.name}{effort}"
        return [*findings, *lines, repeat] if findings or lines else []
