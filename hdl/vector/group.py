# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""A group of lanes with their registers, which has its own copies of the control."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.cores.result import flags_layout
from hdl.cores.words import named
from hdl.mac.counters import events_layout
from hdl.mac.flags import Flags
from hdl.mac.lane import operand_layout, step_of
from hdl.mac.parameters import WORD_WIDTH
from hdl.mac.passing import passes_behind
from hdl.mac.ports import Error
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import RESULT_WIDTH
from hdl.vector.register_file import VectorRegisterFile

__all__ = ["LaneGroup"]


class LaneGroup(wiring.Component):
    """Carry out the operations of the control in a few lanes that lie side by side.

    ::

        operation behind each rank -> copies -> lane 0, lane 1, ...  <-> registers
                                                        '-> flags, codes, results as operands

    Parameters
    ----------
    parameters : VectorParameters
        Of the whole unit.
    operation : data.StructLayout
        With the fields of `hdl.vector.arrangement.vector_operation_layout`.
    lanes : range
        The numbers of its lanes; the first one is even.
    lane_type : type
        As in `hdl.VectorMac`.

    Ports
    -----
    at : array of operation, in
        The operation as issued and behind each rank.
    a, b, issued_flags : arrays of operand_layout, flags_layout, in
        For each lane, the operands of the operation that was issued `operand_delay` cycles ago, and the flags already
        raised on them.
    promoted, flags : arrays of operand_layout, flags_layout, out
        For each lane, the result behind the last rank as an operand, and its flags.
    words, answer_flags : arrays of unsigned(32), flags_layout, out
        The words of a result and its flags, behind the rank ``pack`` if there is one; 0 for a refusal.
    events : array of events_layout, out
        Events of the step of each lane, for the counters; absent without counters.

    Attributes
    ----------
    lanes_built, flag_parts : dict of int to Component
        The lanes that are built, by their number in the unit, and their flags; none in a unit without flags.
    register_file : VectorRegisterFile
    passes : Signal
        State that proofs refer to, where operands take a cycle more: the next result replaces the number that is read.
    clears : Signal
        State that proofs refer to: whether the even and the odd lanes give no code behind the last rank, of a refusal
        and, for the odd ones, of an fp32 result.
    copies : dict of int to Signal
        State that proofs refer to: fields of the operation behind a rank.
    """

    def __init__(
        self, parameters: VectorParameters, operation: data.StructLayout, lanes: range, lane_type: type[Any]
    ) -> None:
        self.parameters, self._lanes = parameters, lanes
        operand = operand_layout(parameters.formats)
        ranks, count = len(parameters.operation_ranks), len(lanes)
        super().__init__(
            {
                "at": In(operation).array(ranks + 1),
                "a": In(operand).array(count),
                "b": In(operand).array(count),
                "issued_flags": In(flags_layout()).array(count),
                "promoted": Out(operand).array(count),
                "flags": Out(flags_layout()).array(count),
                "words": Out(RESULT_WIDTH).array(count // 2),
                "answer_flags": Out(flags_layout()).array(count),
                **({"events": Out(events_layout()).array(count)} if parameters.counters else {}),
            }
        )
        # Without chunks, the odd lanes need only their registers.
        built = [lane for lane in lanes if parameters.has_chunks or lane % 2 == 0]
        self.lanes_built = {lane: lane_type(parameters.of_lane(lane)) for lane in built}
        self.flag_parts = {lane: Flags(parameters) for lane in built if parameters.flags}
        self.register_file = VectorRegisterFile(replace(parameters, lanes=count), operation)
        self.passes, self.clears = Signal(), Signal(2)
        self.copies = {
            rank: Signal(data.StructLayout({name: operation[name].shape for name in names}), name=f"copy_{rank}")
            for rank, names in self._needed(operation).items()
        }

    def _needed(self, operation: data.StructLayout) -> dict[int, list[str]]:
        """Return the fields that the group reads at each rank, except where facts about a chunk are still added."""
        parameters, last = self.parameters, len(self.parameters.operation_ranks)
        step = ["format", "accumulator_format", *(["rounding"] if "rounding" in operation.members else [])]
        needed = {rank: list(step) for rank in range(1, last + 1)}
        for rank in {parameters.reading_position, parameters.position("align")} - {0}:
            needed[rank] += ["register", "partial", "fresh"]
        written = ("register", "partial", "writes")
        for rank, names in ((last - 1, (*written, "wide")), (last, written)):
            if rank:
                needed[rank] += [name for name in names if name not in needed[rank]]
        needed.pop(parameters.chunk_delay, None)
        return needed

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, registers = self.parameters, self.register_file
        at = self._copied(m)
        m.submodules.registers = registers
        m.d.comb += [
            registers.reading.eq(at[parameters.reading_position]),
            registers.class_reading.eq(at[parameters.position("align")]),
            # A number is written while it enters the last rank, so that it can be read while it is there.
            registers.writing.eq(at[-2]),
            registers.class_writing.eq(at[-1]),
        ]
        behind = None
        if parameters.reads_early:
            # A cycle ahead where there is one, because every lane has its own copies.
            ahead = parameters.operand_delay
            behind = named(m, "passes_behind", passes_behind(parameters, self.at, ahead))
            if ahead:
                m.d.sync += self.passes.eq(behind)
                behind = self.passes
        for place, number in enumerate(self._lanes):
            if number in self.lanes_built:
                self._connect(m, place, number, at, behind)
        self._answer(m)
        return m

    def _answer(self, m: Module) -> None:
        """Pack the results of pairs of lanes into words; the odd lane of a pair has no part in an fp32 result."""
        before, kind = self.at[-2], self.parameters.multiplier
        is_refused = named(m, "is_refused_before", before.error != Error.NONE)
        facts = Cat(is_refused, is_refused | before.wide)
        m.d.comb += self.clears.eq(copied(m, "clears_behind", facts, kind, resets=True))
        for place, flags in enumerate(self.flags):
            raised = Signal(flags_layout(), name=f"raised_{place}")
            m.d.comb += raised.eq(Mux(self.clears[place % 2], 0, flags.as_value()))
            if "pack" in self.parameters.ranks:
                # The register's reset clears a refusal.
                now, raised = raised, Signal.like(raised, name=f"packed_{place}", reset_less=True)
                m.d.sync += raised.eq(now)
            m.d.comb += self.answer_flags[place].eq(raised)
        codes = [self.lanes_built[lane].code if lane in self.lanes_built else C(0, WORD_WIDTH) for lane in self._lanes]
        for word, even, odd in zip(self.words, codes[::2], codes[1::2], strict=True):
            m.d.comb += word.eq(even | (odd << WORD_WIDTH))

    def _copied(self, m: Module) -> list[Any]:
        """Return the operation behind each rank, with this group's copies of the fields that it reads."""
        copies: list[Any] = []
        for rank, operation in enumerate(self.at):
            there = Signal(operation.shape(), name=f"at_{rank}")
            m.d.comb += there.eq(operation)
            if (copy := self.copies.get(rank)) is not None:
                before = Signal(copy.shape(), name=f"before_{rank}")
                m.d.comb += [before[name].eq(self.at[rank - 1][name]) for name, _ in copy.shape()]
                m.d.comb += copy.eq(copied(m, f"copied_{rank}", before, self.parameters.multiplier, resets=True))
                m.d.comb += [there[name].eq(copy[name]) for name, _ in copy.shape()]
            copies.append(there)
        return copies

    def _connect(self, m: Module, place: int, number: int, at: list[Any], behind: Any) -> None:
        """Connect a lane to its operands, its registers, and the promotions of its results.

        In a unit that reads early, a result may replace the number that the registers gave a cycle ago.
        """
        parameters, lane, registers = self.parameters, self.lanes_built[number], self.register_file
        m.submodules[f"lane_{number}"] = lane
        result_class, stored = registers.result_class[place], registers.numbers[place]
        if behind is not None:
            read, stored = stored, Signal.like(stored, name=f"number_{number}", reset_less=True)
            m.d.sync += stored.eq(read)
            # The exponent has its own, because more follows in the same cycle.
            passes = {
                part: copied(m, f"passes_by_{number}_{part}", behind, parameters.multiplier)
                for part in ("exponent", "rest")
            }
            stored = Cat(
                Mux(passes["exponent" if name in ("field", "was_normal") else "rest"], lane.result[name], stored[name])
                for name, _ in stored.shape()
            )
        m.d.comb += [
            lane.a.eq(self.a[place]),
            lane.b.eq(self.b[place]),
            lane.stored.eq(stored),
            lane.stored_class.eq(registers.number_class[place]),
            lane.clears.eq(self.clears[place % 2]),
            registers.results[place].eq(lane.number),
            result_class.is_infinite.eq(lane.result_class.is_infinite),
            result_class.is_nan.eq(lane.result_class.is_nan),
            self.promoted[place].eq(lane.promoted),
        ]
        for step, operation in zip(lane.steps, at[parameters.operand_delay :], strict=True):
            m.d.comb += [step[name].eq(value) for name, value in step_of(parameters.formats, operation, number).items()]
        if parameters.counters:
            m.d.comb += self.events[place].eq(lane.events)
        if parameters.flags:
            m.submodules[f"flags_{number}"] = flags = self.flag_parts[number]
            m.d.comb += [
                flags.issued.eq(self.issued_flags[place]),
                flags.stored.eq(registers.number_class[place].flags),
                flags.step.eq(lane.result_class.flags),
                result_class.flags.eq(flags.o),
                self.flags[place].eq(flags.o),
            ]
