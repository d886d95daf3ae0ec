"""The block quantiser's function on a whole block, without registers."""

from __future__ import annotations

from amaranth import Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.conversion import Convert
from hdl.mx.plan import SCALE_WIDTH, BlockPlan
from hdl.mx.scaling import Divide, Scale, largest_of

__all__ = ["QuantizeBlock", "converter"]


def converter(plan: BlockPlan, *, is_last: bool) -> Convert:
    """Return the first or the last conversion of a value."""
    chosen = plan.last if is_last else plan.first
    return Convert(
        chosen.source,
        chosen.destination,
        roundings=chosen.roundings,
        overflow=chosen.overflow,
        random_bits=chosen.random_bits,
        with_flags=chosen.with_flags,
    )


class QuantizeBlock(wiring.Component):
    """Quantise the values of a block. Combinational.

    Parameters
    ----------
    plan : BlockPlan
    block : int
        Values that share a scale.

    Ports
    -----
    values : array of unsigned(source.width), in
    random : array of unsigned(random_bits), in
        Absent unless the rounding is stochastic.
    codes : array of unsigned(element.width), out
    scale : unsigned(8), out
    """

    def __init__(self, plan: BlockPlan, block: int) -> None:
        self.plan, self.block = plan, block
        random = {"random": In(data.ArrayLayout(plan.random_bits, block))} if plan.is_stochastic else {}
        super().__init__(
            {
                "values": In(data.ArrayLayout(plan.source.width, block)),
                **random,
                "codes": Out(data.ArrayLayout(plan.element.width, block)),
                "scale": Out(SCALE_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan = self.plan
        m.submodules.scale = scale = Scale(plan)
        fields: list[Value] = []
        for at in range(self.block):
            m.submodules[f"to_wide_{at}"] = first = converter(plan, is_last=False)
            m.submodules[f"divide_{at}"] = divide = Divide(plan)
            m.submodules[f"to_element_{at}"] = last = converter(plan, is_last=True)
            fields.append(first.o.bits[plan.wide.fraction_bits : -1])
            m.d.comb += [first.code.eq(self.values[at]), divide.code.eq(first.o.bits), divide.scaling.eq(scale.o)]
            m.d.comb += [last.code.eq(divide.o), self.codes[at].eq(last.o.bits)]
            if plan.is_stochastic:
                m.d.comb += last.controls.random.eq(self.random[at])
        m.d.comb += [scale.largest.eq(largest_of(m, "larger", fields)), self.scale.eq(scale.o.scale)]
        return m
