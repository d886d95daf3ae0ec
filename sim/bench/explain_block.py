"""Failure lines of the block quantiser: the wrong elements of a beat."""

from __future__ import annotations

from golden import format_named
from sim.bench.explain import distance_in_ulp, show
from sim.bench.findings import Context
from sim.scenario import Scenario

__all__ = ["explain_block"]

_SHOWN = 2


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
