"""Failure lines of an array of lanes: the reductions of the wrong elements of a row."""

from __future__ import annotations

from golden import FP32, format_named
from sim.bench.explain import distance_in_ulp, flag_names, show
from sim.bench.explain_reduction import ERRORS, PER_PRODUCT, inner_format, products
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["explain_matrix"]

_SHOWN = 2


def explain_matrix(context: Context, scenario: Scenario, index: int, actual: int | str | None) -> str:
    """Return the reductions of the wrong elements, with the expected and the actual answers."""
    case = int(scenario.case[index])
    detail = {key: int(values[case]) for key, values in scenario.details.items() if key not in PER_PRODUCT}
    formats = [format_named(name) for name in context.formats]
    wanted = context.port.answer.unpack(scenario.answers[index])
    operand = formats[detail["format"]] if detail["format"] < len(formats) else formats[0]
    outer = inner_format(formats, operand) if detail["level"] == 2 else FP32
    what = f"{operand} level {detail['level']} chunk {detail['chunk'] or 'any length'} K={detail['products']}"
    if detail["error"]:
        what = f"products with format {detail['format']}, level {detail['level']}, to be refused"
    row = wanted.get("row", 0)
    lines = [f"answer {index}: {what}, tile {detail['register']}, row {row} (seed {context.seed})"]
    found = context.port.answer.unpack(actual) if isinstance(actual, int) else None
    if found is None:
        lines.append(f"  got {actual or 'unknown bits'}")
    else:
        for word in ("error", "register", "row", "last_row"):
            if found.get(word) != wanted.get(word):
                names = (ERRORS[wanted[word]], ERRORS[found[word]]) if word == "error" else (wanted[word], found[word])
                lines.append(f"  {word}: expected {names[0]}, got {names[1]}")
    if detail["error"]:
        return "\n".join(lines)
    columns = _columns(context, scenario)
    count = 0
    for column in range(columns):
        expected = _number(context, wanted, column, columns)
        got = _number(context, found, column, columns) if found else None
        if got == expected or count == _SHOWN:
            continue
        count += 1
        its = {key: int(scenario.details[key][case + column]) for key in ("products", "start", "initial", "first")}
        start = "" if its["first"] else f", from {show(its['initial'], outer)}"
        lines.append(f"  column {column}{start}: {products(scenario, its, operand)}")
        lines.append(f"    expected {show(expected[0], outer)} flags {flag_names(expected[1])}")
        if got:
            distance = distance_in_ulp(expected[0], got[0], outer)
            lines.append(f"    got      {show(got[0], outer)} flags {flag_names(got[1])}, {distance}")
    return "\n".join(lines)


def _columns(context: Context, scenario: Scenario) -> int:
    """Return the number of columns: the operands of rows and columns have the same width."""
    request, answer = context.port.request.widths, context.port.answer
    rows = 1 + int(answer.get(scenario.answers, "row").max())
    return request["b"] * rows // request["a"]


def _number(context: Context, fields: dict[str, int], column: int, columns: int) -> tuple[int, int]:
    """Return the code and the flags of a column."""
    width = context.port.answer.widths["result"] // columns
    code = fields["result"] >> width * column & (1 << width) - 1
    return code, fields.get("flags", 0) >> 5 * column & 31
