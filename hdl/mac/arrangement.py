"""The arrangement of lanes under one control: the operands of each lane, and the results of a beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth import C, Value
from amaranth.lib import data

from hdl.mac.operation import operation_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import product_beat_layout

__all__ = ["Arrangement", "one_lane"]


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """Facts about the lanes that `hdl.mac.issue.Issue` needs.

    Parameters
    ----------
    lanes : int
        Number of lanes. All of them perform the same operation in a cycle.
    beat : data.StructLayout
        The input: ``format``, ``level``, ``register``, ``first``, ``last``, and operands of any layout.
    operation : data.StructLayout
        With the fields of `hdl.mac.operation.operation_layout`.
    code : function of (beat, "a" or "b", lane)
        Return a lane's operand code.
    needs_even : function of beat
        Return whether an fp32 total must be in an even register at its level.
    is_twofold : function of the decoded beat
        Return whether the reduction that it ends has two results.
    counts_held : bool
        Whether chunks are counted for the register of the held beat instead of the operation's. The operation may be a
        promotion, which does not count.
    announces : bool
        Whether every promotion is announced one cycle ahead of its issue.
    """

    lanes: int
    beat: data.StructLayout
    operation: data.StructLayout
    code: Callable[[Any, str, int], Value]
    needs_even: Callable[[Any], Value] = lambda beat: C(1, 1)
    is_twofold: Callable[[Any], Value] = lambda held: C(0, 1)
    counts_held: bool = False
    announces: bool = False


def one_lane(parameters: MacParameters) -> Arrangement:
    """Return the arrangement of `hdl.MultiplyAccumulate`."""
    return Arrangement(
        lanes=1,
        beat=product_beat_layout(parameters),
        operation=operation_layout(parameters),
        code=lambda beat, name, lane: beat[name],
        announces=True,
    )
