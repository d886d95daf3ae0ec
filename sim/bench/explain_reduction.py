"""Failure lines of the multiply-accumulate unit: the whole reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from golden import FP32, FloatFormat, Reduction, explain, format_named
from sim.bench.explain import distance_in_ulp, flag_names, mode_name, show
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["ERRORS", "PER_PRODUCT", "explain_reduction", "inner_format", "products"]

#: Names of the errors, by number.
ERRORS = ("none", "alignment", "unsupported", "3")
#: Details with one entry for every product instead of every reduction.
PER_PRODUCT = ("a", "b", "modes")
_SHOWN = 3
#: Reductions of up to this many products are explained step by step.
_EXPLAINED = 8


def explain_reduction(context: Context, scenario: Scenario, index: int, actual: int | str | None) -> str:
    """Return the reduction, the expected answer and the actual one."""
    row = scenario.case[index]
    detail: dict[str, Any] = {
        key: int(values[row]) for key, values in scenario.details.items() if key not in PER_PRODUCT
    }
    formats = [format_named(name) for name in context.formats]
    wanted = context.port.answer.unpack(scenario.answers[index])
    if detail["error"]:
        what = f"product with format {detail['format']}, level {detail['level']}, to be refused"
        operand, outer = formats[0], FP32
    else:
        operand = formats[detail["format"]]
        outer = inner_format(formats, operand) if detail["level"] == 2 else FP32
        chunk = detail["chunk"] or "any length"
        start = "" if detail["first"] else f", from {show(detail['initial'], outer)}"
        what = f"{operand} level {detail['level']} chunk {chunk} K={detail['products']}{start}"
    lines = [f"answer {index}: {what}, register {detail['register']} (seed {context.seed})"]
    lines.append(f"  products: {products(scenario, detail, operand)}")
    lines.append(f"  expected {_answer(wanted, outer)}")
    if isinstance(actual, int):
        found = context.port.answer.unpack(actual)
        distance = distance_in_ulp(wanted["result"], found["result"] & ((1 << outer.width) - 1), outer)
        lines.append(f"  got      {_answer(found, outer)}, {distance}")
    else:
        lines.append(f"  got      {actual or 'unknown bits'}")
    # Steps are explained only if all have the same mode.
    if 0 < detail["products"] <= _EXPLAINED and not detail["error"] and "modes" not in scenario.details:
        steps = _steps(scenario, detail, operand, inner_format(formats, operand))
        lines += [f"    {line}".rstrip() for line in steps]
    return "\n".join(lines)


def _steps(scenario: Scenario, detail: dict[str, Any], operand: FloatFormat, inner: FloatFormat) -> list[str]:
    """Return the expected result of each step."""
    reduced = slice(detail["start"], detail["start"] + detail["products"])
    factors = [scenario.details[key][reduced].tolist() for key in ("a", "b")]
    start = 0 if detail["first"] else detail["initial"]
    reduction = Reduction.for_level(detail["level"], operand, chunk=detail["chunk"] or None, inner=inner)
    explained = explain(*factors, operand=operand, reduction=reduction, initial=start)
    return explained.table(codes=True).splitlines()


def inner_format(formats: Sequence[FloatFormat], operand: FloatFormat) -> FloatFormat:
    """Return the format of chunks: the last one in `formats` if operands are widened to it."""
    return formats[-1] if operand.width < formats[-1].width else operand


def _answer(fields: dict[str, int], outer: FloatFormat) -> str:
    result = fields["result"]
    shown = show(result, outer) if result < 1 << outer.width else f"0x{result:x} (too wide for {outer})"
    flags = f" flags {flag_names(fields['flags'])}" if "flags" in fields else ""
    return f"{shown}{flags} error {ERRORS[fields['error']]} register {fields['register']}"


def products(scenario: Scenario, detail: dict[str, Any], operand: FloatFormat) -> str:
    """Return the products of a reduction, without the middle of a long one."""
    count, start = detail["products"], detail["start"]
    if not count:
        return "none"
    places = list(range(count)) if count <= 2 * _SHOWN else [*range(_SHOWN), -1, *range(count - _SHOWN, count)]
    factors = [scenario.details[key][start : start + count].tolist() for key in ("a", "b")]
    pairs = ["..." if k < 0 else " * ".join(show(int(codes[k]), operand) for codes in factors) for k in places]
    if "modes" in scenario.details:
        modes = scenario.details["modes"][start : start + count].tolist()
        pairs = [pair if k < 0 else f"{pair} {mode_name(modes[k])}" for pair, k in zip(pairs, places, strict=True)]
    return ", ".join(pairs)
