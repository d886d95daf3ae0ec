# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The operands of waiting promotions, for a group of lanes."""

from __future__ import annotations

from amaranth import Module, Mux, Shape, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.cores.result import flags_layout
from hdl.cores.words import named
from hdl.mac.lane import operand_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["WaitingOperands"]


class WaitingOperands(wiring.Component):
    """Keep the operands and flags of the promotions in the queue, and move them as it does, `operand_delay` later.

    Parameters
    ----------
    parameters : VectorParameters
    lanes : int
        Lanes of the group.

    Ports
    -----
    writes_next, writes, produce : in
        A promotion arrives in the next cycle, in this one; its position in the queue.
    promoted, flags : arrays of operand_layout, flags_layout, in
        The result of each lane as an operand, and its flags.
    consume, load : in
        The position of the first promotion in the queue; it is held from the next cycle on.
    issues : in
        An operation of the held promotion is issued.
    operands, operand_flags : arrays of operand_layout, flags_layout, out
        The operands of the operation that was issued `operand_delay` cycles ago, and their flags.

    Attributes
    ----------
    entry : data.StructLayout
        The layout of what is kept.
    storage : Memory
        State that proofs refer to.
    writing, reading
        Its ports.
    held : Signal
        State that proofs refer to: the operands of the held promotion.
    writes_there, produce_there : Signal
        State that proofs refer to: copies of `writes` and `produce`.
    load_there, consume_there, issues_there : Signal
        State that proofs refer to: `load`, `consume` and `issues`, `operand_delay` cycles ago.
    """

    def __init__(self, parameters: VectorParameters, lanes: int) -> None:
        self.parameters = parameters
        operand, flags, depth = operand_layout(parameters.formats), flags_layout(), parameters.promotions
        super().__init__(
            {
                "writes_next": In(1),
                "writes": In(1),
                "produce": In(range(depth)),
                "promoted": In(operand).array(lanes),
                "flags": In(flags).array(lanes),
                "consume": In(range(depth)),
                "load": In(1),
                "issues": In(1),
                "operands": Out(operand).array(lanes),
                "operand_flags": Out(flags).array(lanes),
            }
        )
        kept = {"operands": data.ArrayLayout(operand, lanes)}
        if parameters.flags:
            kept["flags"] = data.ArrayLayout(flags, lanes)
        self.entry = data.StructLayout(kept)
        self.storage = Memory(shape=Shape.cast(self.entry).width, depth=depth, init=[])
        self.writing, self.reading = self.storage.write_port(), self.storage.read_port(domain="comb")
        self.held = Signal(self.entry)
        self.writes_there, self.produce_there = Signal(), Signal(range(depth))
        self.load_there, self.consume_there, self.issues_there = Signal(), Signal(range(depth)), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.storage = self.storage
        parameters, held, kind = self.parameters, self.held, self.parameters.multiplier
        produce_next = named(m, "produce_next", (self.produce + self.writes)[: len(self.produce)])
        # Registers equal to those of the queue, but of this group; those behind them are a cycle later.
        ahead = {"writes": self.writes_next, "produce": produce_next}
        behind = {name: getattr(self, name) for name in ("load", "consume", "issues")}
        for name, value in (ahead | behind).items():
            copy = copied(m, f"{name}_copy", value, kind, resets=True) if parameters.operand_delay else None
            m.d.comb += getattr(self, f"{name}_there").eq(getattr(self, name) if copy is None else copy)
        arrived = Signal(self.entry, name="arrived")
        m.d.comb += [
            *(place.eq(operand) for place, operand in zip(arrived.operands, self.promoted, strict=True)),
            self.writing.addr.eq(self.produce_there),
            self.writing.en.eq(self.writes_there),
            self.writing.data.eq(arrived),
            self.reading.addr.eq(self.consume_there),
        ]
        with m.If(self.load_there):
            m.d.sync += held.eq(self.reading.data)
        with m.Elif(self.issues_there):
            # The numbers of the odd lanes move to the lanes with fp32.
            for part in (held[name] for name in self.entry.members):
                m.d.sync += [part[lane].eq(part[lane + 1]) for lane in range(0, len(self.operands), 2)]
        m.d.comb += [operand.eq(place) for operand, place in zip(self.operands, held.operands, strict=True)]
        if parameters.flags:
            m.d.comb += [place.eq(flags) for place, flags in zip(arrived.flags, self.flags, strict=True)]
            for flags, place in zip(self.operand_flags, held.flags, strict=True):
                m.d.comb += flags.eq(Mux(self.issues_there, place.as_value(), 0))
        return m
