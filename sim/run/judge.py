"""Reading cocotb's results, because its runner does not fail if tests fail or no test ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from junitparser import Error, JUnitXml, Skipped, TestCase

__all__ = ["Judgement", "judge", "read_cases"]


@dataclass
class Judgement:
    """The verdict on a run's results.

    Attributes
    ----------
    failures : list of str
        Empty if every scenario ran and passed.
    is_broken : bool
        Something other than a comparison failed.
    """

    failures: list[str] = field(default_factory=list)
    is_broken: bool = False

    def blame(self, line: str, *, broken: bool = True) -> None:
        """Add a failure."""
        self.failures.append(line)
        self.is_broken |= broken


def judge(results: Path, scenarios: list[str]) -> Judgement:
    """Judge the results of a run of these scenarios.

    Parameters
    ----------
    results : Path
        JUnit XML.
    scenarios : list of str
        A test belongs to a scenario if its name ends in ``=`` and the scenario's name.
    """
    judgement = Judgement()
    if not results.is_file():
        judgement.blame(f"{results.name}: the simulation ended without results; see simulation.log beside it")
        return judgement
    cases = list(read_cases(results))
    if not cases:
        judgement.blame(f"{results.name}: no test ran")
        return judgement
    ran = [scenario for scenario in scenarios if any(_belongs(case, scenario) for case in cases)]
    missing = sorted(set(scenarios) - set(ran))
    if missing:
        judgement.blame(f"{len(missing)} of {len(scenarios)} scenarios did not run: {', '.join(missing)}")
    for case in cases:
        for result in case.result:
            if isinstance(result, Skipped):
                judgement.blame(f"{case.name}: skipped")
                continue
            message, text = result.message or "", result.text or ""
            is_comparison = not isinstance(result, Error) and "AssertionError" in f"{result.type} {text}"
            # The traceback of a failed comparison says nothing about the design.
            shown = message if is_comparison and message else f"{message}\n{text}"
            judgement.blame(f"{case.name}: {shown}", broken=not is_comparison)
    return judgement


def read_cases(results: Path) -> list[TestCase]:
    """Return all test cases of a JUnit file, however deep."""
    xml = JUnitXml.fromfile(str(results))
    suites = [xml] if hasattr(xml, "testcases") else list(xml)
    return [case for suite in suites for case in suite if isinstance(case, TestCase)]


def _belongs(case: TestCase, scenario: str) -> bool:
    return (case.name or "").endswith(f"={scenario}")
