"""The flags of a reduction, on their way through the pipeline beside its numbers: the one way that they travel."""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.result import flags_layout
from hdl.mac.parameters import MacParameters

__all__ = ["Flags"]


class Flags(wiring.Component):
    """Collect the flags of a step and of all before it on the same value: of its chunk and of its accumulator.

    Parameters
    ----------
    parameters : MacParameters

    Ports
    -----
    issued : flags_layout, in
        Those raised on a promotion that is issued; 0 with a product.
    stored : flags_layout, in
        Those of the accumulator of the operation at rank ``align``.
    step : flags_layout, in
        Those of the step that stands behind the last rank.
    o : flags_layout, out
        All of them, behind the last rank.

    Attributes
    ----------
    behind : list of Signal
        State that proofs speak of: the flags behind each rank.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        flags = flags_layout()
        super().__init__({"issued": In(flags), "stored": In(flags), "step": In(flags), "o": Out(flags)})
        ranks = range(1, len(parameters.operation_ranks) + 1)
        self.behind = [Signal(flags.size, name=f"flags_{rank}") for rank in ranks]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        current: Value = self.issued.as_value()
        for position, behind in enumerate([*self.behind, None]):
            if position == self.parameters.position("align"):
                current = current | self.stored.as_value()
            if behind is not None:
                m.d.sync += behind.eq(current)
                current = behind
        m.d.comb += self.o.eq(current | self.step.as_value())
        return m
