"""The block quantiser's function on a whole block, without registers."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.conversion import Convert
from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan
from hdl.mx.number_scaling import NumberScale, Quotient
from hdl.mx.plan import SCALE_WIDTH, BlockPlan
from hdl.mx.scaling import Divide, Scale, largest_of

__all__ = ["QuantizeBlock", "converter", "divider", "measured", "scale_finder", "scale_ranks"]


def converter(plan: BlockPlan | NumberPlan, *, is_last: bool) -> Convert:
    """Return the first or the last conversion of a value."""
    chosen = plan.last if is_last and isinstance(plan, BlockPlan) else plan.first
    return Convert(
        chosen.source,
        chosen.destination,
        roundings=chosen.roundings,
        overflow=chosen.overflow,
        random_bits=chosen.random_bits,
        with_flags=chosen.with_flags,
    )


def scale_finder(plan: BlockPlan | NumberPlan, *, has_ranks: bool = False) -> Any:
    """Return the core that finds the scale of a block, with `scale_ranks` registers inside or none."""
    if isinstance(plan, NumberPlan):
        return NumberScale(plan, has_ranks=has_ranks)
    return Scale(plan, has_ranks=has_ranks)


def scale_ranks(plan: BlockPlan | NumberPlan) -> int:
    """Return the cycles that finding a scale takes in a core with ranks."""
    return (NumberScale if isinstance(plan, NumberPlan) else Scale).ranks


def measured(plan: BlockPlan | NumberPlan, code: Value) -> Value:
    """Return the part of a wide code whose largest one in a block the scale follows from."""
    return code[:-1] if isinstance(plan, NumberPlan) else code[plan.wide.fraction_bits : -1]


def divider(plan: BlockPlan | NumberPlan, *, has_ranks: bool = False) -> Any:
    """Return the core that divides a value by the scale of its block, with two ranks inside or none."""
    if isinstance(plan, NumberPlan):
        return Quotient(plan, has_ranks=has_ranks)
    return Divide(plan, has_ranks=has_ranks)


class QuantizeBlock(wiring.Component):
    """Quantise the values of a block. Combinational.

    Parameters
    ----------
    plan : BlockPlan or NumberPlan
    block : int
        Values that share a scale.

    Ports
    -----
    values : array of unsigned(source.width), in
    random : array of unsigned(random_bits), in
        Absent unless the rounding is stochastic.
    tensor_exponent : signed(8), in
        Only if scales are numbers: the scale of the tensor is 2 to this power.
    codes : array of unsigned(element.width), out
    scale : unsigned(8), out
    """

    def __init__(self, plan: BlockPlan | NumberPlan, block: int) -> None:
        self.plan, self.block = plan, block
        random = {"random": In(data.ArrayLayout(plan.random_bits, block))} if plan.is_stochastic else {}
        exponent = {"tensor_exponent": In(TENSOR_EXPONENT)} if isinstance(plan, NumberPlan) else {}
        super().__init__(
            {
                "values": In(data.ArrayLayout(plan.source.width, block)),
                **random,
                **exponent,
                "codes": Out(data.ArrayLayout(plan.element.width, block)),
                "scale": Out(SCALE_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan = self.plan
        m.submodules.scale = scale = scale_finder(plan)
        parts: list[Value] = []
        for at in range(self.block):
            m.submodules[f"to_wide_{at}"] = first = converter(plan, is_last=False)
            m.submodules[f"divide_{at}"] = divide = divider(plan)
            m.d.comb += [first.code.eq(self.values[at]), divide.scaling.eq(scale.o)]
            if isinstance(plan, NumberPlan):
                kept = plan.kept(m, f"below_{at}", first.o.bits, self.values[at][-1])
                parts.append(measured(plan, kept))
                m.d.comb += [divide.code.eq(kept), self.codes[at].eq(Quotient.element_of(plan, divide.o))]
                continue
            parts.append(measured(plan, first.o.bits))
            m.submodules[f"to_element_{at}"] = last = converter(plan, is_last=True)
            m.d.comb += [divide.code.eq(first.o.bits), last.code.eq(divide.o), self.codes[at].eq(last.o.bits)]
            if plan.is_stochastic:
                m.d.comb += last.controls.random.eq(self.random[at])
        if isinstance(plan, NumberPlan):
            m.d.comb += scale.tensor_exponent.eq(self.tensor_exponent)
        m.d.comb += [scale.largest.eq(largest_of(m, "larger", parts)), self.scale.eq(scale.o.scale)]
        return m
