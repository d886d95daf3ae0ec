"""Failure lines of the SIMD multiply-accumulate unit: the reductions of the wrong elements."""

from __future__ import annotations

from golden import FP32, FloatFormat, format_named
from sim.bench.explain import distance_in_ulp, flag_names, show
from sim.bench.explain_reduction import ERRORS, PER_PRODUCT, inner_format, products
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["explain_vector"]

_SHOWN = 2


def explain_vector(context: Context, scenario: Scenario, index: int, actual: int | str | None) -> str:
    """Return the reductions of the wrong elements, with the expected and the actual answers."""
    row = int(scenario.case[index])
    detail = {key: int(values[row]) for key, values in scenario.details.items() if key not in PER_PRODUCT}
    formats = [format_named(name) for name in context.formats]
    wanted = context.port.answer.unpack(scenario.answers[index])
    operand = formats[detail["format"]] if detail["format"] < len(formats) else formats[0]
    outer = inner_format(formats, operand) if detail["level"] == 2 else FP32
    what = f"{operand} level {detail['level']} chunk {detail['chunk'] or 'any length'} K={detail['products']}"
    if detail["error"]:
        what = f"products with format {detail['format']}, level {detail['level']}, to be refused"
    lines = [f"answer {index}: {what}, row {detail['register']}, part {wanted['part']} (seed {context.seed})"]
    found = context.port.answer.unpack(actual) if isinstance(actual, int) else None
    if found is None:
        lines.append(f"  got {actual or 'unknown bits'}")
    else:
        for word in ("error", "register", "part"):
            if found[word] != wanted[word]:
                names = (ERRORS[wanted[word]], ERRORS[found[word]]) if word == "error" else (wanted[word], found[word])
                lines.append(f"  {word}: expected {names[0]}, got {names[1]}")
    if detail["error"]:
        return "\n".join(lines)
    count = 0
    for lane, (place, expected) in enumerate(_numbers(context, wanted, outer)):
        got = _numbers(context, found, outer)[lane][1] if found else None
        if got == expected or count == _SHOWN:
            continue
        count += 1
        # The details list the elements of an answer in order, alternating between both parts.
        element = 2 * lane + wanted["part"] if detail["level"] == 1 else lane
        at = row + element
        its = {key: int(scenario.details[key][at]) for key in ("products", "start", "initial", "first")}
        start = "" if its["first"] else f", from {show(its['initial'], outer)}"
        lines.append(f"  element {element} at bit {place}{start}: {products(scenario, its, operand)}")
        lines.append(f"    expected {show(expected[0], outer)} flags {flag_names(expected[1])}")
        if got:
            distance = distance_in_ulp(expected[0], got[0], outer)
            lines.append(f"    got      {show(got[0], outer)} flags {flag_names(got[1])}, {distance}")
    return "\n".join(lines)


def _numbers(context: Context, fields: dict[str, int], outer: FloatFormat) -> list[tuple[int, tuple[int, int]]]:
    """Return the positions of the numbers in an answer, and each number with its flags."""
    step = 32 if outer is FP32 else 16
    numbers = []
    for low in range(0, context.port.answer.widths["result"], step):
        code = fields["result"] >> low & (1 << outer.width) - 1
        numbers.append((low, (code, fields.get("flags", 0) >> low // 16 * 5 & 31)))
    return numbers
