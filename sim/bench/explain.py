"""Failure lines: codes in hex and as values, distances in ulp, flags by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from golden import Flag, FloatFormat, Rounding, decode, format_named
from golden.arrays.checks import code_dtype
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["distance_in_ulp", "explain_block", "explain_conversion", "flag_names", "mode_name", "show"]

_MODES = {mode.value: str(mode) for mode in Rounding}
_SHOWN = 2  # wrong elements of a beat


def show(code: int, fmt: FloatFormat) -> str:
    """Return a code in hex and its value."""
    digits = -(-fmt.width // 4)
    if code >> fmt.width:  # a broken unit may answer this
        return f"{code:#x} (no code of {fmt})"
    value = float(decode(np.array(code, code_dtype(fmt)), fmt))
    return f"0x{code:0{digits}x} ({value!r})"


def distance_in_ulp(expected: int, actual: int, fmt: FloatFormat) -> str:
    """Return the distance of two codes in representable values, or the reason why there is none."""
    ordinals = []
    for code in (expected, actual):
        if fmt.is_nan(code):
            return "one is NaN" if expected != actual else "0 ulp"
        magnitude = code & (fmt.sign_mask - 1)
        ordinals.append(-magnitude if code & fmt.sign_mask else magnitude)
    if ordinals == [0, 0] and expected != actual:
        return "0 ulp, but the sign of zero"
    return f"{ordinals[1] - ordinals[0]:+d} ulp"


def mode_name(code: int) -> str:
    """Return the name of a rounding mode; a refused payload may have an invalid code."""
    return _MODES.get(code, f"mode {code}")


def flag_names(flags: int) -> str:
    """Return the names of flags, such as ``inexact|overflow``, or ``none``."""
    names = [flag.name.lower() for flag in Flag if flags & flag and flag.name]
    if flags & 8:
        names.append("divide_by_zero")
    return "|".join(names) or "none"


def explain_block(context: Context, scenario: Scenario, index: int, actual: int | str | None) -> str:
    """Return the block, its scale, and the values of a beat with the expected and the actual codes."""
    source, element = map(format_named, context.formats)
    lanes = context.port.answer.widths["codes"] // element.width
    block = int(scenario.case[index])
    values, beats = scenario.details["values"][block], scenario.details["values"].shape[1] // lanes
    at = index % beats * lanes
    wanted = context.port.answer.unpack(scenario.answers[index])
    given = [int(value) & (source.sign_mask - 1) for value in values]
    largest = max(given)
    those = f"value {at}" if lanes == 1 else f"values {at} to {at + lanes - 1}"
    lines = [
        f"block {block} of {source} to {element}, {those}; largest magnitude "
        f"{show(largest, source)} at {given.index(largest)} (seed {context.seed})"
    ]
    if not isinstance(actual, int):
        return "\n".join([*lines, f"  got {actual or 'unknown bits'}"])
    found = context.port.answer.unpack(actual)
    for name in ("scale", "last"):
        if found[name] != wanted[name]:
            lines.append(f"  {name}: expected {wanted[name]}, got {found[name]}")
    mask, shown = (1 << element.width) - 1, 0
    exponents = scenario.details.get("tensor_exponent")
    over = f"2^{wanted['scale'] - 127}"
    if exponents is not None:
        over = f"the scale {wanted['scale']:#x} and 2^{exponents[block]}"
    for lane in range(lanes):
        expected, got = (word["codes"] >> lane * element.width & mask for word in (wanted, found))
        if expected == got or shown == _SHOWN:
            continue
        shown += 1
        random = scenario.details.get("random")
        chance = "" if random is None else f", random {int(random[block, at + lane]):#x}"
        lines.append(
            f"  value {at + lane}: {show(int(values[at + lane]), source)} over {over}{chance}: "
            f"expected {show(expected, element)}, got {show(got, element)}, {distance_in_ulp(expected, got, element)}"
        )
    return "\n".join(lines)


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
