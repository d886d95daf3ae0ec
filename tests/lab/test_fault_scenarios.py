"""Scenarios written for particular faults of a netlist: each catches its faults with any seed."""

from collections.abc import Callable
from typing import Any

import pytest

from hdl.catalogue import Kind
from lab.faults.gates import gates_of
from lab.faults.machine import Cause, Machine
from lab.netlists.candidates import candidates
from lab.netlists.design import design_of
from lab.netlists.fault import Fault
from sim.scenario import Scenario
from sim.stimulus.kept import watched_over_resets
from sim.stimulus.mac import MacMaker
from sim.stimulus.neighbours import neighbours
from sim.stimulus.piled import piled_promotions
from sim.stimulus.vector import VectorMaker
from sim.units import UNITS, port_of

pytestmark = pytest.mark.long

SEEDS = range(1, 6)


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


#: Each place to which a leading one may be moved; the place of exponent 0 is never the limit.
LIMITS = {f"near_limit[{place}] one cycle late" for place in range(25)}


def test_vector_limit_of_an_exponent_that_is_lost_is_told_in_every_lane() -> None:
    # Every seed missed it in some lanes: near_limit[9] and [16] of lane 0 with seed 3. A sum of cbfloat16 cancels so
    # much at the exponent fields 1 to 19 alone. Two lanes add into fp32, too, and have three places more.
    lost = {
        f"top.lane_{lane} near_limit[{(25, 22)[lane % 2] - field}] is always 0"
        for lane in range(4)
        for field in range(1, 20)
    }

    def is_lost(fault: Fault) -> bool:
        return fault.place == "cores/near.py:54" and f"{fault.module} {fault.what}" in lost

    assert not_caught("vector_mac_no_flags", is_lost, neighbours) == (76, [])


def test_vector_fault_of_one_cycle_is_told() -> None:
    def is_one(fault: Fault) -> bool:
        # A limit that ends the shift of the next difference, which leaves nothing.
        if fault.place == "cores/near.py:54":
            return fault.module == "top.lane_0" and fault.what in LIMITS
        # A promotion that waits one cycle less behind one to its row that was late itself.
        return fault.place == "mac/hazards.py:59" and "promotions" in fault.module and ", 3 -> " in fault.what

    def made(maker: Any) -> list[Scenario]:
        return [*neighbours(maker), piled_promotions(maker)]

    assert not_caught("vector_mac_no_flags", is_one, made) == (27, [])
