"""The arrangement of lanes in pairs; the even lanes also compute in fp32."""

from __future__ import annotations

from typing import Any

from amaranth import Mux, Value

from hdl.mac.arrangement import Arrangement
from hdl.vector.operation import vector_operation_layout
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout

__all__ = ["pairs_of_lanes"]


def pairs_of_lanes(parameters: VectorParameters) -> Arrangement:
    """Return the arrangement of `hdl.VectorMac`.

    Totals of level 1 occupy a pair of rows and produce two results. At level 0 only the even lanes have operands.
    """

    def code(beat: Any, name: str, lane: int) -> Value:
        its: Value = beat[name][lane]
        if lane % 2 == 0 and 0 in parameters.levels:
            return Mux(beat.level == 0, beat[name][lane // 2], its)
        return its

    return Arrangement(
        lanes=parameters.lanes,
        beat=vector_beat_layout(parameters),
        operation=vector_operation_layout(parameters),
        code=code,
        needs_even=lambda beat: beat.level == 1,
        is_twofold=lambda held: held.wide_total & ~held.is_chain & held.is_sound,
        counts_held=True,
    )
