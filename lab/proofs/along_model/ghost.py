"""The sequential model of a multiply-accumulate unit as a module beside it, for a proof by induction.

The model decides about a product, and about its promotion, in the cycle of its issue. The result of a step is left
open: a *record* holds the operands that the operation must get and the result that it then has, and moves along with
it. So the lane gives the results of the records, and the claim is that every operation gets the operands of its record.

The model follows any one pair of registers, so a claim about this pair holds for every pair. It knows the kinds of
operations on other registers, and takes the counts of their chunks from the unit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value

from hdl.cores.words import named
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, product_beat_layout, rounding_fields
from lab.proofs.along_model.record import NUMBER_BITS, Record, chosen, model_layout, record_layout, value_layout

__all__ = ["AT_RESET", "Ghost"]

#: Of a register in the model: no level has used it yet.
AT_RESET = {"level": 3}


class Ghost:
    """The model, and the records of operations in flight.

    Parameters
    ----------
    m : Module
        Gets the registers.
    parameters : MacParameters
    given, total_given : Value
        The lane's results for the product that is issued, and for its promotion.
    chunk : Value
        The port: its value at the issue of the first product of a chunk is the length of that chunk.
    pair : Value
        The pair of registers that the model follows.
    counted : View
        The unit's count of the chunk in the register that the issued operation names.

    Attributes
    ----------
    beat, beat_valid
        The beat that has been taken and not issued.
    records : list of Record
        Records of the operation that is issued, and of the operation behind each rank.
    delivered : Record
        Record of the operation at the queue.
    registers, total
        The model: `model_layout` for both registers of the pair, the fp32 value of the pair.
    issued, numbers : list of Signal
        How many results of each kind have been issued.
    is_issued, is_sound, is_legal, is_promoting : Value
    ends_as_told : Value
        The product ends its chunk if it is the last one, or if it fills the chunk; a chunk of unlimited size never
        fills. This holds as long as the port has not changed between 0 and another value since the chunk began.
    since_reset : Signal
        Cycles since the last reset, up to 3.
    error : Value
        Of the beat.
    """

    def __init__(
        self,
        m: Module,
        parameters: MacParameters,
        given: Any,
        total_given: Any,
        chunk: Value,
        pair: Value,
        counted: Any,
    ) -> None:
        self.parameters, self.pair, self._counted = parameters, pair, counted
        self.depth = len(parameters.operation_ranks)
        layout = record_layout(parameters)
        self.beat, self.beat_valid = Signal(product_beat_layout(parameters)), Signal()
        #: Cycles since a product of a level with chunks wanted to be issued, or a promotion was.
        self.since_others = Signal(5)
        self.since_reset = Signal(2)
        m.d.sync += self.since_reset.eq(self.since_reset + ~self.since_reset.all())
        fields = [Signal(layout, name=f"record_{place}") for place in range(self.depth + 1)]
        self.records = [Record(m, each, pair) for each in fields]
        self.delivered = self.records[-1]
        for one, following in pairwise(fields):
            m.d.sync += following.eq(one)
        if "pack" in parameters.ranks:
            packed = Signal(layout, name="record_packed")
            m.d.sync += packed.eq(fields[-1])
            self.delivered = Record(m, packed, pair)
        self.registers = [
            Signal(model_layout(parameters), name=f"model_{register}", init=AT_RESET) for register in (0, 1)
        ]
        self.total = Signal(value_layout(parameters), name="total_of_pair")
        self.numbers = [Signal(NUMBER_BITS, name=f"issued_{kind}") for kind in range(4)]
        self.is_issued = Signal()
        self._given, self._total_given, self._chunk = given, total_given, chunk
        self._issue(m)

    def take(self, m: Module, beat: Any, valid: Value, ready: Value) -> None:
        """Hold a beat until it is issued; without a rank that holds one, the beat is the one on offer."""
        if not self.parameters.has_input_rank:
            m.d.comb += [self.beat.eq(beat), self.beat_valid.eq(valid)]
            return
        takes = valid & ready
        m.d.sync += self.beat_valid.eq(takes | self.beat_valid & ~self.is_issued)
        with m.If(takes):
            m.d.sync += self.beat.eq(beat)

    def _issue(self, m: Module) -> None:
        beat, last_one = self.beat, self.records[-1]
        register = beat.register
        state = Signal(model_layout(self.parameters), name="model_here")
        with m.If(register[1:] == self.pair):
            m.d.comb += state.eq(Mux(register[0], self.registers[1].as_value(), self.registers[0].as_value()))
        with m.Else():
            counted = self._counted
            m.d.comb += [state.size.eq(counted.left), state.open.eq(counted.open), state.later.eq(counted.is_later)]
        is_chain, is_wide = beat.level == 0, beat.level != 2
        unsupported = (beat.level == 3) | (beat.format >= len(self.parameters.operands))
        if "rounding" in rounding_fields(self.parameters):
            unsupported |= ~Cat(beat.rounding == mode.value for mode in self.parameters.formats.roundings).any()
        error = self.error = Mux(
            unsupported, Error.UNSUPPORTED, Mux(is_wide & register[0], Error.ALIGNMENT, Error.NONE)
        )
        sound = Signal(name="is_sound")
        m.d.comb += sound.eq(error == 0)
        self.is_sound = sound
        other_level = self.registers[1].level
        same_level = (state.level == beat.level) & (~is_wide | (other_level == beat.level))
        self.is_legal: Value = ~self.is_issued | ~sound | beat.first | same_level | (register[1:] != self.pair)
        self.is_promoting = last_one.is_pending
        other = self.is_promoting | (self.beat_valid & sound & ~is_chain)
        since = self.since_others
        m.d.sync += since.eq(Mux(other, 0, since + ~since.all()))

        new = self.records[0].fields
        starts = beat.first | ~state.open
        length = Signal(self.parameters.chunk_bits, name="length")
        m.d.comb += length.eq(Mux(starts, 0, state.count) + 1)
        size = named(m, "size", Mux(starts, self._chunk, state.size))
        is_limited = self._chunk != 0
        ends = named(m, "ends", beat.last | (is_limited & (length == size)))
        self._kept = named(m, "kept", (register[1:] == self.pair) & (starts | state.kept) & (is_limited == (size != 0)))
        told = beat.last | ((size != 0) & (Mux(starts, 0, state.count) + 1 == size))
        self.ends_as_told: Value = ~(self.is_issued & sound & ~is_chain & self._kept) | (ends == told)
        chunk_before = Mux(starts, 0, state.partial.as_value())
        wide = Mux(register[1:] == self.pair, self.total.as_value(), 0)
        is_first, refused = beat.first | ~state.later, self.is_issued & ~sound
        fields = {
            "writes": self.is_issued & sound,
            "refused": refused,
            "is_product": 1,
            "is_chain": is_chain,
            "wide_total": is_wide,
            "first": beat.first,
            "last": beat.last,
            "starts": starts,
            "ends": ends,
            "is_first": is_first,
            "register": register,
            "format": beat.format,
            "error": error,
            "count": state.count,
            "held_size": state.size,
            "port": self._chunk,
            "size": size,
            "open": state.open,
            "later": state.later,
            **{name: beat[name] for name in rounding_fields(self.parameters)},
            "before": Mux(is_chain, Mux(beat.first, 0, wide), chunk_before),
            "given": self._given,
            "total_before": Mux(is_first, 0, Mux(is_wide, wide, state.total.as_value())),
            "total_given": self._total_given,
            "number": chosen(self.numbers, Cat(refused, register[0])),
        }
        promotion = {name: last_one.fields[name] for name, _ in last_one.fields.shape()}
        promotion |= {
            "is_product": 0,
            "base": last_one.flags,
            "before": last_one.fields.total_before,
            "given": last_one.fields.total_given,
        }
        if "random_promotion" in promotion:
            promotion["random"] = promotion["random_promotion"]
        with m.If(self.is_promoting):
            m.d.comb += [new[name].eq(value) for name, value in promotion.items()]
        with m.Else():
            m.d.comb += [new[name].eq(value) for name, value in fields.items()]
        self._advance(m, length)

    def _advance(self, m: Module, length: Value) -> None:
        """Let the model take the product that is issued."""
        beat, new = self.beat, self.records[0]
        with m.If(new.is_sound_product & new.is_followed):
            for register, state in enumerate(self.registers):
                with m.If(beat.register[0] == register):
                    m.d.sync += state.level.eq(beat.level)
                    with m.If(new.counts):
                        m.d.sync += [
                            state.partial.eq(new.after),
                            state.count.eq(length),
                            state.size.eq(new.fields.size),
                            state.kept.eq(self._kept),
                            state.open.eq(~new.fields.ends),
                            state.later.eq(new.fields.ends | ~new.fields.is_first),
                        ]
                        with m.If(new.fields.ends & ~new.fields.wide_total):
                            m.d.sync += state.total.eq(new.total_after)
                with m.Elif(new.fields.wide_total):
                    # It is the other register of the pair.
                    m.d.sync += state.level.eq(beat.level)
            with m.If(new.is_chain):
                m.d.sync += self.total.eq(new.after)
            with m.If(new.is_pending & new.fields.wide_total):
                m.d.sync += self.total.eq(new.total_after)
        gives = new.fields.refused | new.is_sound_product & new.fields.last
        for kind, number in enumerate(self.numbers):
            with m.If(gives & new.is_followed & (new.kind == kind)):
                m.d.sync += number.eq(number + 1)
