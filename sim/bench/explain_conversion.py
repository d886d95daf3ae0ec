"""Failure lines of a format converter."""

from __future__ import annotations

from golden import format_named
from sim.bench.explain import distance_in_ulp, flag_names, show
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["explain_conversion"]


def explain_conversion(context: Context, scenario: Scenario, index: int, actual: int | str | None) -> str:
    """Return what was converted, what had to come and what came."""
    source, destination = map(format_named, context.formats)
    wanted = context.port.answer.unpack(scenario.answers[index])
    given = context.port.request.unpack(scenario.payloads[scenario.case[index]])
    code = given.pop("code")
    expected = f"expected {show(wanted['bits'], destination)} flags {flag_names(wanted.get('flags', 0))}"
    if isinstance(actual, int):
        found = context.port.answer.unpack(actual)
        distance = distance_in_ulp(wanted["bits"], found["bits"], destination)
        got = f"got {show(found['bits'], destination)} flags {flag_names(found.get('flags', 0))}, {distance}"
    else:
        got = f"got {actual or 'unknown bits'}"
    controls = "".join(f" {name} {value:#x}" for name, value in given.items())
    return f"{source} {show(code, source)}{controls} -> {destination}: {expected}, {got} (seed {context.seed})"
