"""Ids of the proofs that refute faults, by the part of the RTL that is at fault."""

from __future__ import annotations

__all__ = [
    "ACCUMULATION",
    "AXI_STREAM",
    "BFLOAT16_NEAR",
    "BOUNDED",
    "CONTROL",
    "FAR",
    "FOUR_LANES",
    "FULL_QUEUE",
    "LANE",
    "NARROWING",
    "NEAR",
    "OPERAND",
    "OUTCOME",
    "PRODUCT",
    "ROUNDING",
    "STREAM",
    "STREAM_OF_3",
    "VECTOR_ORDER",
    "VECTOR_RESULTS",
    "VECTOR_VALUES",
    "VECTOR_WAITING",
    "WIDENING",
    "control",
]

_FIRST_HALF = "step/first_half/cbfloat16/cbfloat16_into_cbfloat16/bitwuzla"
_SECOND_HALF = "step/second_half/cbfloat16/cbfloat16_into_cbfloat16/bitwuzla"
_INTO_FLOAT32 = "step/second_half/cbfloat16/cbfloat16_into_float32/bitwuzla"
#: Only where words are no longer than a product do bits fall out of the first shift.
_LEVEL_2 = "step/second_half/cbfloat16_level_2/cbfloat16_into_cbfloat16/bitwuzla"
_OWN_FORM = "lane/own_form/cbfloat16/cbfloat16_into_cbfloat16/bitwuzla"

# -- the step
OPERAND = (_FIRST_HALF, _OWN_FORM)
PRODUCT = (_FIRST_HALF, _SECOND_HALF)
NEAR = (_SECOND_HALF, _INTO_FLOAT32)
#: For faults that only numbers of this format meet.
BFLOAT16_NEAR = (
    "step/second_half/bfloat16/bfloat16_into_bfloat16/bitwuzla",
    "step/second_half/bfloat16/bfloat16_into_float32/distances_-2..3/bitwuzla",
)
FAR = (_SECOND_HALF, _INTO_FLOAT32, _LEVEL_2)
ACCUMULATION = (_SECOND_HALF,)
ROUNDING = (_OWN_FORM, _SECOND_HALF, _INTO_FLOAT32)
OUTCOME = (_OWN_FORM, _SECOND_HALF)
LANE = (_OWN_FORM,)

# -- the converters
NARROWING = ("converter/float32_to_cbfloat16/interval/bitwuzla",)
WIDENING = ("converter/cbfloat16_to_float32/interval/bitwuzla",)
STREAM = ("stream/float32_to_cbfloat16/stages_2/bitwuzla",)
STREAM_OF_3 = ("stream/float32_to_cbfloat16/stages_3/bitwuzla",)


def control(*stages: int) -> tuple[str, ...]:
    """Return the proofs by induction of the control of units of some depths."""
    return tuple(f"control/induction/stages_{each}/bitwuzla" for each in stages)


# -- the control around the lane
BOUNDED = tuple(f"control/bounded/stages_{stages}/bitwuzla" for stages in (1, 3))
#: A unit of full depth holds a beat before it is issued, one of 8 stages does not.
CONTROL = (*control(11, 8), *BOUNDED)
AXI_STREAM = ("axi_stream/cbfloat16/bitwuzla",)

# -- the control around several lanes
VECTOR_RESULTS = ("vector/bounded/lanes_2/stages_1/beats_5/bitwuzla",)
#: No result may leave before the last beat of as many as fill the queue has come and given both parts.
FULL_QUEUE = ("vector/bounded/lanes_2/stages_1/beats_5_refusing/bitwuzla",)
#: A pair of lanes has the operands of its level 0 where those of the other levels are; the next pair has not.
FOUR_LANES = ("vector/bounded/lanes_4/stages_1/beats_3/bitwuzla",)
#: The order of results, and how long beats wait, of units of two sizes; what a lane's values become, of the smaller.
VECTOR_ORDER, VECTOR_WAITING = (
    tuple(f"vector/{claim}/lanes_{lanes}/stages_{stages}/bitwuzla" for lanes, stages in ((2, 3), (4, 11)))
    for claim in ("order", "waiting")
)
#: The odd lane first: it meets most faults.
VECTOR_VALUES = tuple(f"vector/values/lanes_2/stages_3/lane_{lane}/bitwuzla" for lane in (1, 0))
