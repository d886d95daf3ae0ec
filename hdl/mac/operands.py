# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The operands of a group of lanes: those of the held beat, or of a promotion."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.cores.operand import split_code
from hdl.cores.words import named, record
from hdl.mac.arrangement import Arrangement
from hdl.mac.lane import operand_layout, operand_one
from hdl.mac.parameters import MacParameters

__all__ = ["GROUP", "Operands", "groups_of"]

#: Lanes that share copies of the control: a pair, which shares an fp32 accumulator.
GROUP = 2


def groups_of(lanes: int) -> list[range]:
    """Return the numbers of the lanes of each group."""
    return [range(lanes)[start:][:GROUP] for start in range(0, lanes, GROUP)]


class Operands(wiring.Component):
    """Take the operands of a beat apart, hold them, and select them or those of a promotion.

    ::

        code -> split -> held -----+-> lanes              with a rank `input`
                                   |
        code -> arrived -> split -> held -+-> lanes       with a rank `arrive`, too: one cycle behind the control
                                          |
        promoted, 1.0 --------------------'

    A cycle behind the control, every group of lanes has separate registers for its decisions, so that nothing that is
    decided late in a cycle has many readers.

    Parameters
    ----------
    parameters : MacParameters
    arrangement : Arrangement
    lanes : range
        The lanes of the group.

    Ports
    -----
    beat : the arrangement's beat, in
    load : in
        The held beat, if any, leaves in this cycle, and `beat` is held from the next one on.
    promotes, format : in
        A promotion is issued in this cycle, and its format.
    promoted : array of operand_layout, in
        The first factors of that promotion, when its operands leave.
    a, b : array of operand_layout, out
        The operands of the operation that was issued `operand_delay` cycles ago.

    Attributes
    ----------
    held : Signal
        State that proofs refer to: the operands ``a`` and ``b`` of the held beat.
    arrived : Signal
        State that proofs refer to, with a rank ``arrive``: ``a``, ``b`` and ``format`` of the beat of the cycle before.
    load_there, promotes_there : Signal
        State that proofs refer to: `load` and `promotes`, `operand_delay` cycles ago.
    """

    def __init__(self, parameters: MacParameters, arrangement: Arrangement, lanes: range) -> None:
        self.parameters, self.arrangement, self._lanes = parameters, arrangement, lanes
        operand = operand_layout(parameters.formats)
        super().__init__(
            {
                "beat": In(arrangement.beat),
                "load": In(1),
                "promotes": In(1),
                "format": In(arrangement.operation["format"].shape),
                "promoted": In(operand).array(len(lanes)),
                "a": Out(operand).array(len(lanes)),
                "b": Out(operand).array(len(lanes)),
            }
        )
        operands = data.ArrayLayout(operand, len(lanes))
        codes = data.ArrayLayout(parameters.code_width, len(lanes))
        self.held = Signal(data.StructLayout({"a": operands, "b": operands}), name="held")
        self.arrived = Signal(
            data.StructLayout({"a": codes, "b": codes, "format": arrangement.beat["format"].shape}),
            name="arrived",
            reset_less=True,
        )
        self.load_there, self.promotes_there = Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, held, kind = self.parameters, self.held, self.parameters.multiplier
        codes = Signal(self.arrived.shape(), name="codes")
        m.d.comb += [
            codes.format.eq(self.beat.format),
            *(
                codes[name][place].eq(self.arrangement.code(self.beat, name, lane))
                for name in ("a", "b")
                for place, lane in enumerate(self._lanes)
            ),
        ]
        its_format = self.format
        if parameters.operand_delay:
            m.d.sync += self.arrived.eq(codes)
            codes = self.arrived
            its_format = Signal.like(self.format, name="promoted_format", reset_less=True)
            m.d.sync += its_format.eq(self.format)
        for name in ("load", "promotes"):
            there, value = getattr(self, f"{name}_there"), getattr(self, name)
            m.d.comb += there.eq(copied(m, f"{name}_copy", value, kind) if parameters.operand_delay else value)
        decoded = Signal(held.shape(), name="decoded")
        layout = operand_layout(parameters.formats)
        for name in ("a", "b"):
            splits = [split_code(m, parameters.operands, codes.format, code) for code in codes[name]]
            m.d.comb += decoded[name].eq(Cat(record(layout, vars(split)) for split in splits))
        if parameters.has_input_rank:
            with m.If(self.load_there):
                m.d.sync += held.eq(decoded)
        else:
            m.d.comb += held.eq(decoded)
        one = named(m, "one", operand_one(parameters.formats, its_format))
        for place in range(len(self._lanes)):
            m.d.comb += [
                self.a[place].eq(Mux(self.promotes_there, self.promoted[place].as_value(), held.a[place].as_value())),
                self.b[place].eq(Mux(self.promotes_there, one, held.b[place].as_value())),
            ]
        return m
