"""Bugs beside the datapath that only certain stimulus shows: long chunks, resets, the port `chunk`, waiting."""

from __future__ import annotations

from typing import Any

from lab.mutants.mutant import Mutant
from lab.mutants.proofs import AXI_STREAM, CONTROL, STREAM, STREAM_OF_3, VECTOR_ORDER, control

__all__ = ["CONTROL_FAULTS"]

_VECTOR = "vector_mac_no_flags"


def _chunk(name: str, old: str, new: str, unit: str = "mac_cbfloat16", effort: float = 0.15, **refuted: Any) -> Mutant:
    return Mutant(name, "mac/chunks.py", old, new, unit, "long_chunks", effort, **refuted)


def _reset(
    name: str, file: str, old: str, new: str, unit: str = "mac_cbfloat16", scenarios: str = "resets", **refuted: Any
) -> Mutant:
    return Mutant(name, file, old, new, unit, scenarios, 1.0 if unit == _VECTOR else 0.15, **refuted)


def _waits(name: str, file: str, old: str, new: str, unit: str = "mac_cbfloat16", **refuted: Any) -> Mutant:
    return Mutant(name, file, old, new, unit, "distances", 1.0 if unit == _VECTOR else 0.15, **refuted)


_COUNTER = '"left": parameters.chunk_bits'

CONTROL_FAULTS = (
    # -- long chunks
    _chunk("chunk_counter_of_6_bits", _COUNTER, '"left": min(parameters.chunk_bits, 6)', proofs=control(3), fast=True),
    _chunk("chunk_counter_one_bit_short", _COUNTER, '"left": parameters.chunk_bits - 1', effort=1.0, proofs=CONTROL),
    _chunk(
        "chunk_of_257_counts_as_1", '"is_one", length == 1', '"is_one", length[:8] == 1', proofs=control(3), fast=True
    ),
    _chunk(
        "chunk_of_256_is_unlimited", '"is_unlimited", length == 0', '"is_unlimited", length[:8] == 0', proofs=control(3)
    ),
    _chunk("chunk_ends_by_its_low_bits", "is_last.eq(before == 2)", "is_last.eq(before[:7] == 2)", proofs=CONTROL),
    _chunk(
        "chunk_ends_without_its_top_bit",
        "is_last.eq(before == 2)",
        "is_last.eq(before[:15] == 2)",
        effort=1.0,
        proofs=CONTROL,
    ),
    _chunk(
        "vector_chunk_of_257_counts_as_1",
        '"is_one", length == 1',
        '"is_one", length[:8] == 1',
        _VECTOR,
        1.0,
        proofs=CONTROL,
    ),
    # -- resets in the middle of work
    _reset(
        "held_beat_survives_reset",
        "mac/issue.py",
        'Signal(self._decoded, name="held"), Signal(name="held_valid")',
        'Signal(self._decoded, name="held", reset_less=True), Signal(name="held_valid", reset_less=True)',
        proofs=control(11),
    ),
    _reset(
        "operations_survive_reset",
        "mac/operation.py",
        'Signal(layout, name=f"operation_{position + 1}")',
        'Signal(layout, name=f"operation_{position + 1}", reset_less=True)',
        proofs=control(11),
    ),
    _reset(
        "reset_writes_a_register",
        "mac/operation.py",
        'Signal(layout, name=f"operation_{position + 1}")',
        'Signal(layout, name=f"operation_{position + 1}", init={"writes": 1})',
        scenarios="kept_over_resets",
        proofs=control(11),
    ),
    _reset(
        "taken_places_survive_reset",
        "mac/results.py",
        "init=places - 2)",
        "init=places - 2, reset_less=True)",
        proofs=CONTROL,
    ),
    _reset(
        "vector_place_freed_at_a_reset_is_free_twice",
        "vector/results.py",
        "Signal(range(places + 1)), Signal()",
        "Signal(range(places + 1)), Signal(reset_less=True)",
        _VECTOR,
        proofs=VECTOR_ORDER,
    ),
    _reset(
        "vector_held_promotion_survives_reset",
        "vector/promotions.py",
        "Signal(self.entry), Signal(), Signal()",
        "Signal(self.entry), Signal(reset_less=True), Signal()",
        _VECTOR,
        proofs=VECTOR_ORDER,
    ),
    _reset(
        "widened_beat_survives_reset",
        "mac/widen.py",
        "self.i.valid, enable, reset=True)",
        "self.i.valid, enable)",
        "mac_narrow",
        proofs=("widening/mac/bitwuzla",),
    ),
    _reset(
        "converter_result_survives_reset",
        "converter.py",
        'rank(m, "result_valid", valid, enable, reset=True)',
        'rank(m, "result_valid", valid, enable)',
        "float32_to_cbfloat16_stages_3",
        proofs=STREAM,
    ),
    _reset(
        "converter_code_under_way_survives_reset",
        "converter.py",
        'rank(m, "half_shifted_valid", valid, enable, reset=True)',
        'rank(m, "half_shifted_valid", valid, enable)',
        "float32_to_cbfloat16_stages_3",
        proofs=STREAM_OF_3,
        fast=True,
    ),
    _reset(
        "axi_reset_ignored",
        "axi_stream.py",
        "sync.rst.eq(~self.aresetn)",
        "sync.rst.eq(0)",
        "mac_axi_stream",
        proofs=AXI_STREAM,
    ),
    # -- the port `chunk`; a rank that holds beats hides one cycle
    Mutant(
        "chunk_port_seen_a_cycle_late",
        "mac/chunks.py",
        'length = named(m, "length", self.chunk)',
        "length = self._later(m, self.chunk)",
        "mac_stages_7",
        "port_changes",
        proofs=CONTROL,
    ),
    Mutant(
        "chunk_port_seen_two_cycles_late",
        "mac/chunks.py",
        'length = named(m, "length", self.chunk)',
        "length = self._later(m, self._later(m, self.chunk))",
        scenarios="port_changes",
        proofs=CONTROL,
    ),
    # -- a receiver that waits
    Mutant(
        "converter_valid_waits_for_ready",
        "converter.py",
        "enable = ~self.o.valid | self.o.ready",
        "enable = self.o.ready",
        "float32_to_cbfloat16_stages_3",
        "stream_idle_none_backpressure_none",
        proofs=STREAM,
    ),
    # -- AXI4-Stream
    Mutant(
        "axi_register_wraps_around",
        "axi_stream.py",
        " & (self.s_axis_tuser.register < unit.registers)",
        "",
        "mac_axi_stream",
        "refusals",
        proofs=AXI_STREAM,
        fast=True,
    ),
    # -- waiting
    # Up to three cycles less change nothing: a product of level 0 must not be issued ahead of the promotion, but may
    # follow it at once, because it starts afresh. Waiting for a promotion at the end, or after its issue, is spare.
    _waits(
        "level_0_waits_ten_cycles_less",
        "mac/promotions.py",
        "left.eq(Mux(recent, parameters.stages, left - (left != 0)))",
        "left.eq(Mux(recent, parameters.stages - 10, left - (left != 0)))",
        proofs=CONTROL,
    ),
    _waits(
        "bypass_ignores_partial_sums",
        "mac/accumulator.py",
        " & (reader.partial == writer.partial)",
        "",
        proofs=CONTROL,
    ),
    # -- what only a promotion raises
    Mutant(
        "promotions_overflow_raises_nothing",
        "mac/accumulator.py",
        "flags.step.eq(lane.result_class.flags)",
        "flags.step.eq(lane.result_class.flags.as_value() & Mux(self.at[-1].is_product, 31, 27))",
        scenarios="steps",
        proofs=CONTROL,
    ),
)
