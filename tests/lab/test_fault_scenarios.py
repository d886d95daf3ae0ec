"""Scenarios written for particular faults of a netlist: each catches its faults with any seed."""

import inspect
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from hdl.catalogue import Kind
from hdl.cores.operand import _special_classes
from hdl.cores.outcome import decide_class
from hdl.cores.words import choose
from lab.faults.gates import gates_of
from lab.faults.machine import Cause, Machine
from lab.netlists.candidates import candidates
from lab.netlists.design import design_of
from lab.netlists.fault import Fault
from sim.scenario import Scenario
from sim.stimulus.kept import watched_over_resets
from sim.stimulus.mac import MacMaker
from sim.stimulus.neighbours import neighbours, neighbours_of_promotions
from sim.stimulus.piled import piled_promotions
from sim.stimulus.vector import VectorMaker
from sim.units import UNITS, port_of

pytestmark = pytest.mark.long

SEEDS = range(1, 6)

_LIMIT = re.compile(r"near_limit\[(\d+)\] (.*)")


def lines_of(*functions: Callable[..., Any]) -> set[str]:
    """Return the places of these functions of hdl, line by line."""
    places = set()
    for function in functions:
        lines, start = inspect.getsourcelines(function)
        file = function.__module__.removeprefix("hdl.").replace(".", "/")
        places |= {f"{file}.py:{start + line}" for line in range(len(lines))}
    return places


def not_caught(
    name: str, wanted: Callable[[Fault], bool], made: Callable[[Any], list[Scenario]]
) -> tuple[int, list[str]]:
    """Return how many faults were tried, and seed and name of those that all of the scenarios of a seed miss."""
    unit = UNITS[name]
    component = unit.build()
    design = design_of(component)
    faults = [fault for fault in candidates(design) if wanted(fault)]
    gates, port = gates_of(design, faults), port_of(unit, component)
    maker = VectorMaker if unit.kind is Kind.VECTOR else MacMaker
    missed = []
    for seed in SEEDS:
        machine = Machine(gates, port, {number: number + 1 for number in range(len(faults))})
        for scenario in made(maker(component, port, seed, name, unit.effort)):
            machine.run(scenario)
        causes = machine.caught[1 : len(faults) + 1]
        missed += [f"{seed}: {fault.name}" for fault, cause in zip(faults, causes, strict=True) if cause == Cause.SAME]
    return len(faults), missed


def test_mac_operation_that_a_reset_puts_behind_any_rank_is_told() -> None:
    # Behind most ranks it was caught by chance; behind the second one, never.
    def writes(fault: Fault) -> bool:
        return fault.place == "mac/operation.py:106" and fault.what.endswith("another value, bit 15")

    assert not_caught("mac_cbfloat16", writes, lambda maker: [watched_over_resets(maker)]) == (11, [])


def test_vector_limit_of_an_exponent_that_is_lost_is_told_in_every_lane() -> None:
    # Every seed missed it in some lanes. A sum of cbfloat16 cancels so much at the exponent fields 1 to 19 alone: those
    # of the first five groups of four. Two lanes add into fp32, too, and have more groups.
    def is_lost(fault: Fault) -> bool:
        found = _LIMIT.match(fault.what)
        return found is not None and found[2] == "is always 0" and int(found[1]) < 5

    assert not_caught("vector_mac_no_flags", is_lost, neighbours) == (20, [])


def test_vector_limit_of_the_cycle_before_is_told() -> None:
    # It ends the shift of the next difference, which leaves nothing.
    def is_late(fault: Fault) -> bool:
        found = _LIMIT.match(fault.what)
        return found is not None and found[2] == "one cycle late" and fault.module == "top.group_0.lane_0"

    assert not_caught("vector_mac_no_flags", is_late, neighbours) == (7, [])


def test_vector_class_of_the_cycle_before_is_told_in_every_lane() -> None:
    # No seed brought an infinity right behind the promotion of a NaN into the same lane.
    places = lines_of(_special_classes, decide_class)

    def is_late(fault: Fault) -> bool:
        return fault.what.endswith("one cycle late") and fault.place in places

    def made(maker: Any) -> list[Scenario]:
        return [*neighbours(maker), neighbours_of_promotions(maker)]

    count, missed = not_caught("vector_mac_no_flags", is_late, made)
    # Two inversions in two expressions of each of four lanes: constants, for the code of b is never overridden.
    assert count == 140
    assert len(missed) == len(SEEDS) * 16, missed
    assert len(set(missed)) == len(SEEDS) * 8, missed


def test_vector_promotion_that_does_not_wait_for_one_of_its_row_is_told() -> None:
    def is_one(fault: Fault) -> bool:
        return "promotions.waiting" in fault.module and fault.what.endswith("always 0")

    count, missed = not_caught("vector_mac_no_flags", is_one, lambda maker: [piled_promotions(maker)])
    # Of three groups of places, what says that the promotion waits in this cycle: the unit asks for the next one only.
    assert count == 25
    assert len(missed) == len(SEEDS) * 9, missed
    assert len(set(missed)) == len(missed)


def test_vector_choice_of_another_format_is_told_in_every_lane() -> None:
    # In lane 3, no seed rounded a sum of float16 up to infinity: 0x7bff + 0x3c00 * 0x4c00.
    def is_off_by_one(fault: Fault) -> bool:
        return fault.place in lines_of(choose) and fault.what.endswith(": 1 -> 2") and "lane_" in fault.module

    count, missed = not_caught("vector_mac", is_off_by_one, neighbours)
    # No cbfloat16 products go into a float16 accumulator, in four lanes; other scenarios tell the last one, in two.
    assert (count, Counter(each.split(" ", 1)[1] for each in missed)) == (
        66, {"hdl/cores/words.py:30 off by one: $3: 1 -> 2": 20, "hdl/cores/words.py:30 off by one: $89: 1 -> 2": 10},
    )  # fmt: skip
