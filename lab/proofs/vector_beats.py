"""The duties of a vector unit towards its beats, for any results of its lanes: issue each once, and count chunks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from hdl.mac.ports import Error
from hdl.vector.ports import vector_beat_layout
from lab.proofs.opened_vector import OpenedVector

__all__ = ["BeatsAndChunks"]


class BeatsAndChunks:
    """The beat that has been taken and not issued, and the counting of the chunks of one pair of rows.

    As `lab.proofs.along_model.ghost.Ghost`, without values.

    Parameters
    ----------
    m : Module
        Gets the registers.
    top : Component
        With the ports of the unit and ``pair``.
    opened : OpenedVector

    Attributes
    ----------
    beat, beat_valid : Signal
    records : list
        Of the product that is issued, and of those behind the first two ranks.
    registers : list of Signal
        The model, for both rows of the pair.
    is_issued, is_sound, is_legal, error : Value
        Whether the beat is issued, is not refused, continues only values that it may; the reason for a refusal.
    since_reset : Signal
        Cycles since the last reset, up to 3.
    """

    def __init__(self, m: Module, top: Any, opened: OpenedVector) -> None:
        self.parameters = parameters = top.unit.parameters
        self.pair = top.pair
        bits = parameters.chunk_bits
        self.since_reset = Signal(2)
        m.d.sync += self.since_reset.eq(self.since_reset + ~self.since_reset.all())
        state = data.StructLayout({"count": bits, "size": bits, "open": 1, "later": 1, "kept": 1, "level": 2})
        self.registers = [Signal(state, name=f"model_{row}", init={"level": 3}) for row in (0, 1)]
        flags = ("counts", "first", "last", "starts", "ends", "is_first", "open", "later")
        words = ("count", "held_size", "port", "size")
        layout = data.StructLayout(
            {**dict.fromkeys(flags, 1), **dict.fromkeys(words, bits), "register": parameters.register_width}
        )
        records = [Signal(layout, name=f"record_{place}") for place in range(3)]
        m.d.sync += [records[1].eq(records[0]), records[2].eq(records[1])]
        self.records: list[Any] = [
            SimpleNamespace(fields=each, counts=each.counts, is_followed=each.register[1:] == self.pair)
            for each in records
        ]
        self.beat, self.beat_valid = Signal(vector_beat_layout(parameters)), Signal()
        issued = opened.operations[0]
        self.is_issued = (issued.is_product & issued.writes) | Cat(issued.error).any()
        self._take(m, top)
        self._count(m, records[0], top.chunk, opened.states.reading.data)

    def _take(self, m: Module, top: Any) -> None:
        if not self.parameters.has_input_rank:
            m.d.comb += [self.beat.eq(top.i.payload), self.beat_valid.eq(top.i.valid)]
            return
        takes = top.i.valid & top.i.ready
        m.d.sync += self.beat_valid.eq(takes | self.beat_valid & ~self.is_issued)
        with m.If(takes):
            m.d.sync += self.beat.eq(top.i.payload)

    def _count(self, m: Module, new: Any, port: Value, counted: Any) -> None:
        beat = self.beat
        row = beat.register
        unsupported = (beat.level == 3) | (beat.format >= len(self.parameters.operands))
        misaligned = (beat.level == 1) & row[0]
        self.error = Mux(unsupported, Error.UNSUPPORTED, Mux(misaligned, Error.ALIGNMENT, Error.NONE))
        self.is_sound = Signal(name="is_sound")
        m.d.comb += self.is_sound.eq(~unsupported & ~misaligned)
        is_sound, followed = self.is_issued & self.is_sound, row[1:] == self.pair
        state = Signal(self.registers[0].shape(), name="model_here")
        with m.If(followed):
            m.d.comb += state.eq(Mux(row[0], self.registers[1].as_value(), self.registers[0].as_value()))
        with m.Else():
            m.d.comb += [state.size.eq(counted.left), state.open.eq(counted.open), state.later.eq(counted.is_later)]
        self.is_legal = ~is_sound | beat.first | ~followed | (state.level == beat.level)
        starts = beat.first | ~state.open
        length = Signal(len(port), name="length")
        m.d.comb += [
            length.eq(Mux(starts, 0, state.count) + 1),
            new.counts.eq(is_sound & (beat.level != 0)),
            new.first.eq(beat.first),
            new.last.eq(beat.last),
            new.starts.eq(starts),
            new.ends.eq(beat.last | ((port != 0) & (length == new.size))),
            new.is_first.eq(beat.first | ~state.later),
            new.open.eq(state.open),
            new.later.eq(state.later),
            new.count.eq(state.count),
            new.held_size.eq(state.size),
            new.port.eq(port),
            new.size.eq(Mux(starts, port, state.size)),
            new.register.eq(row),
        ]
        with m.If(is_sound & followed):
            for number, model in enumerate(self.registers):
                with m.If(row[0] == number):
                    m.d.sync += model.level.eq(beat.level)
                    with m.If(new.counts):
                        m.d.sync += [
                            model.count.eq(length),
                            model.size.eq(new.size),
                            model.kept.eq((starts | state.kept) & ((port != 0) == (new.size != 0))),
                            model.open.eq(~new.ends),
                            model.later.eq(new.ends | ~new.is_first),
                        ]
                with m.Elif(beat.level == 1):
                    # Its total takes both rows.
                    m.d.sync += model.level.eq(1)
