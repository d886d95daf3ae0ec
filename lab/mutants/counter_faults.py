"""Bugs in what is counted: the wrong step, the wrong event, lost addends, clears and resets."""

from __future__ import annotations

from typing import Any

from lab.mutants.mutant import Mutant
from sim.run.compiled import Engine

__all__ = ["COUNTER_FAULTS"]

_MAC, _VECTOR = "mac_counters", "vector_mac_counters"
_SWAMPED = ("step/swamped/cbfloat16/cbfloat16_into_cbfloat16/bitwuzla",)
_OWN_FORM = ("lane/own_form/counters/cbfloat16_into_cbfloat16/bitwuzla",)
_EVENTS = ("counters/events/lanes_1/bitwuzla", "counters/events/lanes_4/bitwuzla")
_ADDS = ("counters/adds/1/bitwuzla", "counters/adds/4/bitwuzla")
_BUS = ("counters/bus/rules/bitwuzla",)
_COUNTED = ("control/counted/stages_1/bitwuzla",)


def _fault(
    name: str, file: str, old: str, new: str, unit: str = _MAC, scenarios: str = "counted_events", **refuted: Any
) -> Mutant:
    # The stimulus of these units is short as it is.
    return Mutant(name, file, old, new, unit, scenarios, effort=1.0, **refuted)


def _bus(name: str, file: str, old: str, new: str, proofs: tuple[str, ...] = _BUS) -> Mutant:
    # Only in the simulator is there anything on the bus.
    return _fault(name, file, old, new, "mac_axi_counters", engine=Engine.SIMULATOR, proofs=proofs, fast=True)


COUNTER_FAULTS = (
    # -- lost addends
    _fault(
        "zero_product_counts_as_lost",
        "cores/swamping.py",
        "is_there & compared.product_is_lower",
        "compared.product_is_lower",
        scenarios="steps",
        proofs=_SWAMPED,
        fast=True,
    ),
    _fault(
        "product_above_half_an_ulp_is_never_lost",
        "cores/swamping.py",
        "compared.distance >= fmt.fraction_bits",
        "compared.distance > fmt.fraction_bits",
        scenarios="steps",
        proofs=_SWAMPED,
        fast=True,
    ),
    _fault(
        "result_two_codes_below_is_taken_for_the_same",
        "cores/swamping.py",
        "_COMPARED = 2",
        "_COMPARED = 1",
        proofs=_SWAMPED,
        fast=True,
    ),
    _fault(
        "lowest_bits_of_the_widest_format_are_compared",
        "cores/swamping.py",
        "Cat(fraction[len(fraction) - fmt.fraction_bits :], field)",
        "Cat(fraction, field)",
        scenarios="steps",
        proofs=_SWAMPED,
        fast=True,
    ),
    _fault(
        "product_beside_an_infinity_counts_as_lost",
        "cores/outcome.py",
        "is_number & is_swamped(formats, index, rounded)",
        "is_swamped(formats, index, rounded)",
        scenarios="steps",
        proofs=_SWAMPED,
        fast=True,
    ),
    # -- which event, which step
    _fault(
        "every_event_is_inexact",
        "mac/lane.py",
        "else finished.flags[name] for name in EVENTS",
        'else finished.flags["inexact"] for name in EVENTS',
        proofs=_OWN_FORM,
    ),
    _fault(
        "promotions_count_as_products",
        "mac/counters.py",
        'step["is_product"] if kind == "products" else ~step["is_product"]',
        'step["writes"] if kind == "products" else ~step["is_product"]',
        proofs=_EVENTS,
        fast=True,
    ),
    _fault(
        "overflow_of_a_promotion_is_not_counted",
        "mac/accumulator.py",
        "self.events.eq(lane.events)",
        "self.events.eq(lane.events.as_value() & Mux(self.at[-1].is_product, 31, 27))",
        proofs=_COUNTED,
    ),
    _fault(
        "step_is_counted_with_the_next_operation",
        "mac/multiply_accumulate.py",
        "connect_counters(self, counting, control.at[-1])",
        "connect_counters(self, counting, control.at[-2])",
        proofs=_COUNTED,
    ),
    _fault(
        "refused_product_is_counted",
        "mac/counters.py",
        "counting.writes.eq(finished.writes)",
        "counting.writes.eq(finished.writes | finished.error.as_value().any())",
        scenarios="refusals",
        proofs=_COUNTED,
    ),
    _fault(
        "idle_cycles_are_counted",
        "mac/counters.py",
        'step["writes"] & (is_wide',
        "(is_wide",
        proofs=_EVENTS,
    ),
    # -- several lanes
    _fault(
        "vector_idle_lanes_are_counted_at_level_0",
        "mac/counters.py",
        '(is_wide | ~step["wide"])',
        '(is_wide | ~step["wide"] | 1)',
        _VECTOR,
        proofs=_EVENTS,
    ),
    _fault(
        "vector_events_of_the_first_lane_stand_for_all",
        "vector/vector_mac.py",
        "there.eq(self.lane_parts[number].events)",
        "there.eq(self.lane_parts[number * 0].events)",
        _VECTOR,
        proofs=("counters/vector/lanes_2/bitwuzla",),
        fast=True,
    ),
    _fault(
        "vector_events_of_two_lanes_count_once",
        "mac/counters.py",
        "_sum(bits[:half]) + _sum(bits[half:])",
        "_sum(bits[:half]) | _sum(bits[half:])",
        _VECTOR,
        proofs=_EVENTS,
    ),
    # -- clears and resets
    _fault(
        "clear_loses_the_step_of_its_cycle",
        "mac/counters.py",
        "self.value.eq(self.more)",
        "self.value.eq(0)",
        proofs=_ADDS,
        fast=True,
    ),
    _fault(
        "clear_is_ignored",
        "mac/counters.py",
        "counter.clear.eq(self.clear)",
        'counter.clear.eq(self.clear & (kind == "products"))',
        proofs=_EVENTS,
    ),
    _fault(
        "step_at_a_reset_is_counted_after_it",
        "mac/counters.py",
        "reset_less=reset_less)",
        "reset_less=True)",
        scenarios="resets_while_counting",
        proofs=_EVENTS,
        fast=True,
    ),
    # -- the bus
    _bus(
        "bus_write_of_no_byte_clears",
        "axi_lite.py",
        "writes & is_clear & self.strobes.any()",
        "writes & is_clear",
    ),
    _bus(
        "bus_shows_products_as_promotions",
        "axi_lite.py",
        "= self.counts[kind][name]",
        '= self.counts["products"][name]',
    ),
    _bus(
        "bus_accepts_writes_to_counters",
        "axi_lite.py",
        "Mux(is_clear, _OKAY, _SLAVE_ERROR)",
        "_OKAY",
    ),
    _bus(
        "bus_answer_falls_before_it_is_taken",
        "axi_lite.py",
        "with m.If(self.rready):",
        "with m.If(1):",
    ),
    _bus(
        "bus_clear_does_not_reach_the_counters",
        "axi_stream.py",
        "unit.clear_counts.eq(bus.clear)",
        "unit.clear_counts.eq(0)",
        proofs=("counters/bus/unit/bitwuzla",),
    ),
    # -- the bus, with much on it
    _bus(
        "bus_write_behind_an_answer_is_lost",
        "axi_lite.py",
        "self.has_data & (~self.bvalid | self.bready)),",
        "self.has_data),",
    ),
    _bus("bus_strobes_are_those_of_a_later_write", "axi_lite.py", "self.strobes.any()", "self.wstrb.any()"),
    _bus(
        "bus_address_behind_an_answer_is_overwritten",
        "axi_lite.py",
        "self.awready.eq(~self.has_address)",
        "self.awready.eq(~self.has_address | self.bvalid)",
    ),
    _bus("bus_answer_is_lost_to_an_early_bready", "axi_lite.py", "self.bvalid.eq(1)", "self.bvalid.eq(~self.bready)"),
    _bus("bus_answer_is_lost_to_an_early_rready", "axi_lite.py", "self.rvalid.eq(1)", "self.rvalid.eq(~self.rready)"),
    _bus(
        "bus_read_takes_the_address_of_a_write_beside_it",
        "axi_lite.py",
        "self.read_address.eq(self.araddr[2:])",
        "self.read_address.eq(Mux(self.awvalid, self.awaddr, self.araddr)[2:])",
    ),
    _bus(
        "bus_write_waits_for_a_read",
        "axi_lite.py",
        "writes.eq(self.has_address & self.has_data & (",
        "writes.eq(self.has_address & self.has_data & ~self.rvalid & (",
    ),
    _bus(
        "bus_answer_survives_reset",
        "axi_lite.py",
        "self.has_address, self.has_data, self.reads = ",
        "self.rvalid._reset_less = True\n        self.has_address, self.has_data, self.reads = ",
    ),
    # -- counters that are almost full
    _bus(
        "counter_wraps_around",
        "mac/counters.py",
        "Mux(self.is_high & (self.more > room), room, self.more)",
        "self.more",
        _ADDS,
    ),
    _bus(
        "counter_stops_one_step_early", "mac/counters.py", "self.more > room), room,", "self.more >= room), 0,", _ADDS
    ),
    _bus("high_counter_is_noticed_too_late", "mac/counters.py", "(2 * most - 1)", "(most - 1)", _ADDS),
    _bus("cleared_counter_is_still_high", "mac/counters.py", ".all() & ~self.clear", ".all()", _ADDS),
)
