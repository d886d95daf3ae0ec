# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""A lane with its own registers: a multiply-accumulate unit without its control."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.cores.result import flags_layout
from hdl.mac.counters import events_layout
from hdl.mac.flags import Flags
from hdl.mac.lane import operand_layout, step_of
from hdl.mac.parameters import MacParameters
from hdl.mac.passing import Passing, passes_behind
from hdl.mac.register_file import RegisterFile

__all__ = ["Accumulator"]

_READ = ("register", "wide", "partial")


class Accumulator(wiring.Component):
    """Add one product a cycle to the lane's accumulator that the operation selects.

    Parameters
    ----------
    parameters : MacParameters
    operation : data.StructLayout
        With the fields of `hdl.mac.operation.operation_layout`.
    lane : Component
        With the signature `hdl.mac.lane.lane_signature`; it becomes a submodule.

    Ports
    -----
    at : array of operation, in
        The operation as issued and behind each rank: `hdl.mac.operation.Flight`.
    a, b : operand_layout, in
        Operands of the issued operation.
    issued_flags : flags_layout, in
        Flags already raised on a promotion that is issued.
    code : unsigned, out
        The result: behind the last rank, or behind the rank ``pack`` if there is one.
    promoted, flags : operand_layout, flags_layout, out
        The result behind the last rank as an operand, and the flags of all steps up to it.
    events : events_layout, out
        Events of the step behind the last rank; only with counters.

    Attributes
    ----------
    lane, registers, its_flags : Component
        The last one is None in a unit without flags. Their classes document the state that proofs refer to.
    passing : Passing
        Its ``passed_by`` is state that proofs refer to.
    reading : dict of str to Signal
        State that proofs refer to, in a unit that reads early: the operation whose accumulator is read, as far as the
        registers need it.
    """

    def __init__(self, parameters: MacParameters, operation: data.StructLayout, lane: Any) -> None:
        self.parameters, self.lane = parameters, lane
        operand = operand_layout(parameters.formats)
        super().__init__(
            {
                "at": In(operation).array(len(parameters.operation_ranks) + 1),
                "a": In(operand),
                "b": In(operand),
                "issued_flags": In(flags_layout()),
                "code": Out(parameters.formats.accumulator_width),
                "promoted": Out(operand),
                "flags": Out(flags_layout()),
                **({"events": Out(events_layout())} if parameters.counters else {}),
            }
        )
        self.registers = RegisterFile(parameters, operation)
        self.its_flags = Flags(parameters) if parameters.flags else None
        self.passing = Passing(parameters)
        self.reading = {name: Signal(operation[name].shape, name=f"reading_{name}") for name in _READ}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, lane, registers = self.parameters, self.lane, self.registers
        m.submodules.lane, m.submodules.registers = lane, registers
        m.d.comb += [
            lane.a.eq(self.a),
            lane.b.eq(self.b),
            lane.stored.eq(self._read(m)),
            lane.stored_class.eq(registers.number_class),
            # The unit clears a refusal behind its queue, which has more time.
            lane.clears.eq(0),
            registers.reading.eq(self._reading(m)),
            registers.class_reading.eq(self.at[parameters.position("align")]),
            registers.writing.eq(self.at[-1]),
            registers.result.eq(lane.result),
            registers.result_class.is_infinite.eq(lane.result_class.is_infinite),
            registers.result_class.is_nan.eq(lane.result_class.is_nan),
            self.code.eq(lane.code),
            self.promoted.eq(lane.promoted),
        ]
        for step, operation in zip(lane.steps, self.at, strict=True):
            m.d.comb += [step[name].eq(value) for name, value in step_of(parameters.formats, operation).items()]
        if parameters.counters:
            m.d.comb += self.events.eq(lane.events)
        if self.its_flags:
            m.submodules.flags = flags = self.its_flags
            m.d.comb += [
                flags.issued.eq(self.issued_flags),
                flags.stored.eq(registers.number_class.flags),
                flags.step.eq(lane.result_class.flags),
                registers.result_class.flags.eq(flags.o),
                self.flags.eq(flags.o),
            ]
        return m

    def _reading(self, m: Module) -> Any:
        """Return the operation whose accumulator is read."""
        if not self.parameters.reads_early:
            return self.at[self.parameters.reading_position]
        ahead, reader = (self.at[self.parameters.reading_position - place] for place in (1, 0))
        reading = Signal.like(reader, name="reading")
        m.d.comb += reading.fresh.eq(reader.fresh)
        for name, own in self.reading.items():
            # An address goes to many memories, so it has registers apart from the operation's.
            m.d.comb += own.eq(copied(m, f"own_{name}", Value.cast(ahead[name]), self.parameters.multiplier))
            m.d.comb += reading[name].eq(own)
        return reading

    def _read(self, m: Module) -> Value:
        """Return the accumulator for the operation at rank ``read``; the result of the last rank may pass by."""
        registers, passing = self.registers, self.passing
        if (written := passing.while_read(m, self.at)) is not None:
            m.d.comb += registers.passes_by.eq(written)
        if not self.parameters.reads_early:
            return registers.number
        number, passes_by = Signal.like(registers.number, reset_less=True), Signal(reset_less=True)
        m.d.sync += [number.eq(registers.number), passes_by.eq(passes_behind(self.parameters, self.at))]
        return Mux(passes_by, self.lane.result, number)
