"""Promotions: results of finished chunks return as products ``partial * 1.0``."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.result import flags_layout
from hdl.cores.words import named
from hdl.mac.arrangement import Arrangement
from hdl.mac.lane import operand_layout
from hdl.mac.parameters import MacParameters

__all__ = ["ReturningPromotions", "promotion_rounding", "promotions_signature"]


def promotion_rounding(parameters: MacParameters, finished: Any) -> dict[str, Any]:
    """Return the rounding fields of the promotion that a finished product causes: its mode, and ``random_promotion``.

    A unit without levels 1 and 2 has no promotions, and its products have no such numbers.
    """
    brought = {"rounding": "rounding"} | ({"random": "random_promotion"} if parameters.has_chunks else {})
    return {name: finished[brought[name]] for name, _ in parameters.formats.controls if name in brought}


def promotions_signature(parameters: MacParameters, arrangement: Arrangement) -> wiring.Signature:
    """Return the ports of the part that keeps promotions until they are issued.

    ``finished`` : operation, in
        The operation behind the last rank.
    ``promoted``, ``flags`` : arrays of operand_layout, flags_layout, in
        The result of each lane as an operand, and its flags.
    ``in_flight`` : array of operation, in
        The operation behind each rank, in order.
    ``counts``, ``offers_chunk`` : in
        A product of a chunk is issued; is ready to issue.
    ``has_room`` : out
        A further product of a chunk may be issued.
    ``are_settled`` : out
        No promotion in flight has yet to write a total that an operation issued now would read.
    ``issues``, ``issues_next`` : out
        A promotion is issued in this cycle; in the next one, if that is known.
    ``operation`` : operation, out
        That promotion.
    ``operands``, ``operand_flags`` : arrays of operand_layout, flags_layout, out
        The operands of the lanes and their flags, `operand_delay` cycles later.
    """
    operand, operation, lanes = operand_layout(parameters.formats), arrangement.operation, arrangement.lanes
    return wiring.Signature(
        {
            "finished": In(operation),
            "promoted": In(operand).array(lanes),
            "flags": In(flags_layout()).array(lanes),
            "in_flight": In(operation).array(len(parameters.operation_ranks)),
            "counts": In(1),
            "offers_chunk": In(1),
            "has_room": Out(1),
            "are_settled": Out(1),
            "issues": Out(1),
            "issues_next": Out(1),
            "operation": Out(operation),
            "operands": Out(operand).array(lanes),
            "operand_flags": Out(flags_layout()).array(lanes),
        }
    )


class ReturningPromotions(wiring.Component):
    """Issue a promotion in the cycle in which its chunk leaves the last rank: none ever waits.

    Promotions with the same register need no check of their distance, because each follows its product by a fixed
    number of cycles. Every lane's result returns to the same lane.

    `promotions_signature` describes its ports.

    Parameters
    ----------
    parameters : MacParameters
    arrangement : Arrangement

    Attributes
    ----------
    others, cycles_of_others : Signal
        State that proofs refer to: whether operations of a level with chunks may be in flight, and for how many cycles.
    """

    def __init__(self, parameters: MacParameters, arrangement: Arrangement) -> None:
        self.parameters = parameters
        super().__init__(promotions_signature(parameters, arrangement))
        self.others = Signal(name="others_in_flight")
        self.cycles_of_others = Signal(range(parameters.stages + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, finished, operation = self.parameters, self.finished, self.operation
        fp32 = len(parameters.accumulators) - 1
        m.d.comb += [
            self.has_room.eq(1),
            self.issues.eq(finished.promote),
            self.issues_next.eq(self.in_flight[-2].promote if self.parameters.has_input_rank else 0),
            operation.register.eq(finished.register),
            operation.format.eq(finished.format),
            operation.accumulator_format.eq(Mux(finished.wide_total, fp32, finished.format)),
            operation.wide.eq(finished.wide_total),
            operation.fresh.eq(finished.fresh_total),
            operation.last.eq(finished.last),
            operation.writes.eq(1),
            *(operation[name].eq(value) for name, value in promotion_rounding(parameters, finished).items()),
        ]
        for lane, operand in enumerate(self.operands):
            flags = self.flags[lane].as_value() & self.issues.replicate(len(self.flags[lane].as_value()))
            m.d.comb += [operand.eq(self.promoted[lane]), self.operand_flags[lane].eq(flags)]
        if 0 in parameters.levels and parameters.has_chunks:
            self._settle(m)
        else:
            m.d.comb += self.are_settled.eq(1)
        return m

    def _settle(self, m: Module) -> None:
        """Determine whether operations of levels other than 0 may be in flight."""
        # Starts one cycle after the issue, or with a product that is only offered, because the issue is tight in time.
        parameters, newest, left = self.parameters, self.in_flight[0], self.cycles_of_others
        recent = named(m, "other_issued", newest.writes & (newest.partial | ~newest.is_product))
        m.d.sync += [
            left.eq(Mux(recent, parameters.stages, left - (left != 0))),
            self.others.eq(self.finished.promote | self.offers_chunk | recent | (left > 1)),
        ]
        m.d.comb += self.are_settled.eq(~self.others)
