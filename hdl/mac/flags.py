"""The flags of a reduction, which travel through the pipeline with its numbers."""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.result import flags_layout
from hdl.mac.parameters import MacParameters

__all__ = ["Flags"]


class Flags(wiring.Component):
    """Accumulate the flags of all steps on a value: its chunk and its accumulator.

    Parameters
    ----------
    parameters : MacParameters

    Ports
    -----
    issued : flags_layout, in
        Flags of a promotion whose operands leave the control; 0 for a product.
    stored : flags_layout, in
        Flags of the accumulator, for the operation at rank ``align``.
    step : flags_layout, in
        Flags of the step behind the last rank.
    at : array of flags_layout, out
        Flags of the operation with its operands and behind each rank; from the rank ``align`` on with its
        accumulator's.
    o : flags_layout, out
        All flags, behind the last rank.

    Attributes
    ----------
    behind : list of Signal
        State that proofs refer to: the flags behind each rank.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        flags = flags_layout()
        ranks = len(parameters.lane_ranks)
        inputs = dict.fromkeys(("issued", "stored", "step"), In(flags))
        super().__init__(inputs | {"at": Out(flags).array(ranks + 1), "o": Out(flags)})
        # In a unit with several lanes, the first register's reset clears the flags of a product, and is for that alone.
        self.behind = [
            Signal(flags.size, name=f"flags_{rank}", reset_less=rank <= parameters.operand_delay)
            for rank in range(1, ranks + 1)
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for position, (there, behind) in enumerate(zip(self.at, [self.issued, *self.behind], strict=True)):
            current = Value.cast(behind)
            if position == self.parameters.position("align") - self.parameters.operand_delay:
                current = current | self.stored.as_value()
            m.d.comb += there.eq(current)
        m.d.sync += [behind.eq(there) for behind, there in zip(self.behind, self.at[:-1], strict=True)]
        m.d.comb += self.o.eq(self.at[-1].as_value() | self.step.as_value())
        return m
