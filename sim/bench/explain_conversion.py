"""Failure lines of a format converter."""

from __future__ import annotations

from collections.abc import Mapping

from golden import FloatFormat, format_named
from sim.bench.explain import distance_in_ulp, flag_names, mode_name, show
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["explain_conversion"]


def explain_conversion(context: Context, scenario: Scenario, index: int, actual: int | str | None) -> str:
    """Return the input, the expected answer and the actual one."""
    source, destination = map(format_named, context.formats)
    wanted = context.port.answer.unpack(scenario.answers[index])
    given = context.port.request.unpack(scenario.payloads[scenario.case[index]])
    code = given.pop("code")
    expected = f"expected {_answer(wanted, destination)}"
    if isinstance(actual, int):
        found = context.port.answer.unpack(actual)
        distance = distance_in_ulp(wanted["bits"], found["bits"], destination)
        got = f"got {_answer(found, destination)}, {distance}"
    else:
        got = f"got {actual or 'unknown bits'}"
    controls = f" {mode_name(given.pop('rounding'))}" if "rounding" in given else ""
    controls += "".join(f" {name} {value:#x}" for name, value in given.items())
    return f"{source} {show(code, source)}{controls} -> {destination}: {expected}, {got} (seed {context.seed})"


def _answer(word: Mapping[str, int], destination: FloatFormat) -> str:
    """Return a result as text; a refused one has the bits and flags of +0."""
    refused = ", refused" if word.get("refused") else ""
    return f"{show(word['bits'], destination)} flags {flag_names(word.get('flags', 0))}{refused}"
