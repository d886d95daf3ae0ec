"""The payloads of the block quantiser's streams."""

from __future__ import annotations

from typing import Any

from amaranth.lib import data

from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan
from hdl.mx.parameters import MxParameters
from hdl.mx.plan import SCALE_WIDTH

__all__ = ["element_beat_layout", "value_beat_layout"]


def value_beat_layout(parameters: MxParameters) -> data.StructLayout:
    """Return the input of the unit, least significant first.

    ``values``
        Codes of the source format, the first one in the lowest bits.
    ``random``
        A random number for each value (NUMERICS section 10). Absent unless `rounding` is ``stochastic``.
    ``tensor_exponent``
        Only for NVFP4: the scale of the tensor is 2 to this power. The one of a block's last beat is used.
    """
    fields: dict[str, Any] = {"values": data.ArrayLayout(parameters.source.width, parameters.lanes)}
    if parameters.plan.is_stochastic:
        fields["random"] = data.ArrayLayout(parameters.random_bits, parameters.lanes)
    if isinstance(parameters.plan, NumberPlan):
        fields["tensor_exponent"] = TENSOR_EXPONENT
    return data.StructLayout(fields)


def element_beat_layout(parameters: MxParameters) -> data.StructLayout:
    """Return the output of the unit, least significant first.

    ``codes``
        Codes of the element format, in the order of the values.
    ``scale``
        The block's scale, a code of ``float8_e8m0fnu``, the same in all beats of a block; 255 is NaN. For NVFP4, a code
        of ``float8_e4m3fn``; 127 is NaN.
    ``last``
        The last beat of a block.
    """
    codes = data.ArrayLayout(parameters.plan.element.width, parameters.lanes)
    return data.StructLayout({"codes": codes, "scale": SCALE_WIDTH, "last": 1})
