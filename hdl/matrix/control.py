# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The control of an array of lanes: it decides once for all of them."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.cores.operand import split_code
from hdl.cores.words import named, record
from hdl.mac.chunks import Chunks
from hdl.mac.decode import decode_control, decoded_control
from hdl.mac.lane import number_layout
from hdl.mac.operation import Flight
from hdl.mac.ports import Error, rounding_fields
from hdl.matrix.initial import array_operation_layout, either_of, one_as_code, split_initial
from hdl.matrix.operands import split_layout
from hdl.matrix.parameters import GROUP, MatrixParameters
from hdl.matrix.ports import initial_fields, matrix_beat_layout

__all__ = ["MatrixControl"]


class MatrixControl(wiring.Component):
    """Issue one operation a cycle to all lanes: a promotion, otherwise the products of a beat.

    A beat is decoded and held, and waits while

    - a promotion is issued: `returning_position` cycles after the product that ended the chunk, whose place is thereby
      known long before;
    - a product of its tile was issued less than `accumulate_latency` cycles ago;
    - it has level 0 or loads initial values, and operations of other levels may be in flight;
    - it gives a result, and the results of its tile from before still await their way out;
    - the beat before it has the same tile: one cycle, in which the other conditions are decided.

    Nothing stalls after its issue: each tile has a place for its results in every lane.

    With shared promotions, none is issued here. A beat that may end a chunk waits like one that gives a result: until
    the partial sums of its tile from before have left the lanes.

    Parameters
    ----------
    parameters : MatrixParameters

    Ports
    -----
    i : stream of matrix_beat_layout, in
    chunk : unsigned(chunk_bits), in
    freed : in
        The results of the tile `freed_tile` are on their way into the chains.
    freed_tile : in
    a, b : arrays of split_layout, out
        The operands of the operation issued a cycle ago: behind the rank ``arrive``.
    initial : array of number_layout, out
        The numbers that the same operation loads, one for each column. Only with initial values.
    format, accumulator_format : out
        The formats of the issued operation.
    promotes : out
        The issued operation is a promotion.
    at : array of operation_layout, out
        The operation as issued and behind each rank.

    Attributes
    ----------
    held, held_valid : Signal
        State that proofs refer to: the decoded beat to issue, and whether there is one.
    recent : list of Signal
        State that proofs refer to: for each tile, whether a product was issued to it one cycle ago, two cycles ago, ...
    closed : Signal
        State that proofs refer to: for each tile, whether any was, or the next product ends a chunk while the results
        from before are under way. Then none may be issued to it in the next cycle.
    load : Signal
        State that proofs refer to: there is no held beat, or it is issued. Decided a cycle ahead.
    groups : list of tuple
        The name of an operand port, and the places in it that share a bit of `stays`.
    stays : Signal
        State that proofs refer to: for each group, the opposite of `load`, a cycle later.
    taken : dict of str to list of Signal
        State that proofs refer to: the operands that were offered a cycle ago, by the ports that they go to.
    pending : Signal
        State that proofs refer to: the tiles whose results are under way, from their issue until they have left.
    leaving, leaving_tile : Signal
        State that proofs refer to: `freed` and `freed_tile` of the cycle before.
    ending : list of Signal
        State that proofs refer to: for each tile, whether its chunk ends with the next product. Only with shared
        promotions.
    length : Signal
        State that proofs refer to: ``chunk`` of the cycle before. Only with shared promotions.
    others, cycles_of_others : Signal
        State that proofs refer to: whether operations of a level with chunks may be in flight, and for how many cycles.
    flight, chunks : Component
        Their classes document the state that proofs refer to.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        self.parameters = parameters
        formats, beat = parameters.formats, matrix_beat_layout(parameters)
        self._operands = ("a", "b", "initial") if parameters.initial else ("a", "b")
        split, self._operation = split_layout(formats), array_operation_layout(parameters.lanes)
        numbers = number_layout(formats)
        super().__init__(
            {
                "i": In(stream.Signature(beat)),
                "chunk": In(parameters.chunk_bits),
                "freed": In(1),
                "freed_tile": In(parameters.register_width),
                "a": Out(split).array(parameters.rows),
                "b": Out(split).array(parameters.columns),
                **({"initial": Out(numbers).array(parameters.columns)} if parameters.initial else {}),
                "format": Out(self._operation["format"].shape),
                "accumulator_format": Out(self._operation["accumulator_format"].shape),
                "promotes": Out(1),
                "at": Out(self._operation).array(len(parameters.operation_ranks) + 1),
            }
        )
        self._decoded = data.StructLayout(
            {
                **decoded_control(beat),
                **initial_fields(parameters),
            }
        )
        self.held, self.held_valid = Signal(self._decoded), Signal()
        tiles, cycles = range(parameters.registers), parameters.accumulate_latency - 2
        self.recent, self.closed = [Signal(cycles, name=f"recent_{tile}") for tile in tiles], Signal(len(tiles))
        self.load = Signal(init=1)
        self.groups = [
            (name, range(len(getattr(self, name)))[start:][:GROUP])
            for name in self._operands
            for start in range(0, len(getattr(self, name)), GROUP)
        ]
        self.stays = Signal(len(self.groups))
        self.taken = {
            name: [
                Signal(port.shape(), name=f"{name}_{place}_taken", reset_less=True)
                for place, port in enumerate(getattr(self, name))
            ]
            for name in self._operands
        }
        self.pending, self.will_pend = Signal(parameters.registers), Signal(parameters.registers)
        # Like the memory of the chunks, these have no reset.
        self.ending = [Signal(name=f"ending_{tile}", reset_less=True) for tile in tiles]
        self.length = Signal(parameters.chunk_bits, name="chunk_before", reset_less=True)
        self.leaving, self.leaving_tile = Signal(), Signal(parameters.register_width)
        self.others, self.cycles_of_others = Signal(name="others_in_flight"), Signal(range(parameters.stages + 1))
        self.flight, self.chunks = Flight(parameters, self._operation), Chunks(parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held, held_valid = self.held, self.held_valid
        m.submodules.flight = self.flight
        m.d.comb += [there.eq(here) for there, here in zip(self.at, self.flight.at, strict=True)]

        operands, fields = self._decode(m)
        self._take(m, operands)
        decoded = Signal(self._decoded, name="decoded")
        m.d.comb += decoded.eq(record(self._decoded, fields))
        load, issued = self.load, named(m, "issued", held_valid & self.load)
        with m.If(load):
            m.d.sync += held_valid.eq(self.i.valid)
            m.d.sync += held.eq(decoded)
        m.d.comb += self.i.ready.eq(load)
        self._reserve(m, issued)
        must_wait = self._must_wait(m, decoded, issued & held.is_sound)
        m.d.sync += load.eq(~(Mux(load, self.i.valid, held_valid) & must_wait))
        self._issue(m, issued)
        return m

    def _take(self, m: Module, operands: dict[str, list[Any]]) -> None:
        """Register the operands of every cycle; a cycle later, keep them if their beat was taken.

        ::

            i -> decode --+--> decoded, held, issue     with `load`
                          +--> taken --> a, b, initial  with `stays`, a copy for each group

        So `load`, which is decided late, has a whole cycle to reach the operands of all rows and columns.
        """
        for number, (name, places) in enumerate(self.groups):
            group = copied(m, f"{name}_{places[0]}_stays", ~self.load, self.parameters.multiplier)
            m.d.comb += self.stays[number].eq(group)
            for place in places:
                port, taken = getattr(self, name)[place], self.taken[name][place]
                arrived = Signal(port.shape(), name=f"{name}_{place}_arrived", reset_less=True)
                m.d.sync += taken.eq(operands[name][place])
                with m.If(~group):
                    m.d.sync += arrived.eq(taken)
                m.d.comb += port.eq(arrived)

    def _decode(self, m: Module) -> tuple[dict[str, list[Value]], dict[str, Value]]:
        """Return the operands of the offered beat, and the fields of its control."""
        parameters, beat = self.parameters, self.i.payload
        layout = split_layout(parameters.formats)
        splits = {
            name: [split_code(m, parameters.operands, beat.format, code) for code in beat[name]] for name in ("a", "b")
        }
        fields = decode_control(m, parameters, beat, C(0, 1))
        initial = self._load_initial(m, splits, fields) if parameters.initial else []
        return {
            **{name: [record(layout, vars(each)) for each in split] for name, split in splits.items()},
            "initial": initial,
        }, fields

    def _load_initial(self, m: Module, splits: dict[str, list[Any]], fields: dict[str, Value]) -> list[Value]:
        """Change the operands and the fields of a beat that loads, and return the numbers."""
        formats, beat = self.parameters.formats, self.i.payload
        loads, fp32 = beat.loads, len(formats.accumulators) - 1
        index = named(m, "initial_format", Mux(fields["wide_total"], fp32, beat.format))
        initial = [split_initial(m, formats, index, code) for code in beat.initial]
        one = one_as_code(formats, beat.format)
        splits["a"] = [either_of(loads, one, split) for split in splits["a"]]
        splits["b"] = [either_of(loads, its, split) for (_, its), split in zip(initial, splits["b"], strict=True)]
        fields |= {
            "loads": loads,
            "row": beat.row,
            # It starts a total by itself, and no beat of products that follows is the first one.
            "is_chain": fields["is_chain"] | loads,
            "first": beat.first | loads,
            "last": beat.last & ~loads,
            "gives_result": fields["gives_result"] & ~(loads & fields["is_sound"]),
        }
        layout = number_layout(formats)
        return [record(layout, vars(number)) for number, _ in initial]

    def _reserve(self, m: Module, issued: Value) -> None:
        """Mark the tile of an issued beat that gives a result, until that has left the lanes."""
        parameters, held = self.parameters, self.held
        tiles = range(parameters.registers)
        if parameters.shares_promotions:
            # No other beat of the tile is issued before it is known whether a product ends a chunk.
            ended, refused = self.at[parameters.chunk_delay + 1], issued & ~held.is_sound
            taken = Cat(
                ((held.register == tile) & refused) | ((ended.register == tile) & ended.promote) for tile in tiles
            )
        else:
            taken = Cat((held.register == tile) & issued & held.gives_result for tile in tiles)
        freed = Cat((self.leaving_tile == tile) & self.leaving for tile in tiles)
        # The way out, which is far away, has the same register.
        leaving = copied(m, "freed_before", self.freed, parameters.multiplier, resets=True)
        m.d.comb += [self.leaving.eq(leaving), self.will_pend.eq((self.pending & ~freed) | taken)]
        m.d.sync += [
            self.leaving_tile.eq(self.freed_tile),
            self.pending.eq(self.will_pend),
        ]

    def _must_wait(self, m: Module, decoded: Any, writes: Value) -> Value:
        """Return whether the beat that is held in the next cycle must wait.

        If the held beat has the same tile, the offered one waits a cycle. Whether it waits longer is decided then.
        """
        parameters, held, register = self.parameters, self.held, self.i.payload.register
        writing, may_end = self.chunks.writing, C(0, 1)
        if parameters.shares_promotions:
            may_end = named(m, "any_may_end", self.chunk == 1)
        for tile, (cycles, bit) in enumerate(zip(self.recent, self.ending, strict=True)):
            here = named(m, f"writes_{tile}", writes & (held.register == tile))
            closed = here | cycles[:-1].any()
            m.d.sync += cycles.eq(Cat(here, cycles))
            if parameters.shares_promotions:
                is_its = writing.en & (writing.addr == tile)
                ends = named(m, f"ends_{tile}", Mux(is_its, writing.data.is_last & writing.data.open, bit))
                m.d.sync += bit.eq(ends)
                closed |= self.will_pend[tile] & ends
            m.d.sync += self.closed[tile].eq(closed)
        offered = self.held_valid & (held.register == register)
        offered |= _bit_of(self.closed, register) | (_bit_of(self.pending, register) & (decoded.gives_result | may_end))
        remains = _bit_of(self.closed, held.register)
        remains |= _bit_of(self.pending, held.register) & (held.gives_result | may_end)
        must_wait: Value = named(m, "tile_must_wait", Mux(self.load, offered, remains))
        if parameters.has_chunks and not parameters.shares_promotions:
            must_wait |= self.at[parameters.returning_position - 1].promote
            if parameters.has_chains:
                is_chain = Mux(self.load, decoded.is_chain, held.is_chain)
                must_wait |= is_chain & (self.others | self._offers_chunk)
                self._settle(m)
        return must_wait

    @property
    def _offers_chunk(self) -> Value:
        return self.held_valid & ~self.held.is_chain & self.held.is_sound

    def _settle(self, m: Module) -> None:
        """Determine whether operations of levels other than 0 may be in flight, for a product of level 0."""
        newest, left = self.at[1], self.cycles_of_others
        recent = named(m, "other_issued", newest.writes & (newest.partial | ~newest.is_product))
        m.d.sync += [
            left.eq(Mux(recent, self.parameters.stages, left - (left != 0))),
            self.others.eq(self._offers_chunk | recent | (left > 1)),
        ]

    def _issue(self, m: Module, issued: Value) -> None:
        parameters, held, flight = self.parameters, self.held, self.flight
        fp32 = len(parameters.accumulators) - 1
        # A lane that has no totals has no format for them.
        is_wide, loads = C(0, 1) if parameters.shares_promotions else held.is_chain, C(0, 1)
        if parameters.initial:
            is_wide, loads = is_wide & held.wide_total, named(m, "loads", issued & held.loads & held.is_sound)
        counts = named(m, "counts", issued & ~held.is_chain & held.is_sound)
        product = Signal(self._operation, name="product_operation")
        m.d.comb += [
            self.format.eq(flight.issued.format),
            self.accumulator_format.eq(flight.issued.accumulator_format),
            product.register.eq(held.register),
            product.format.eq(held.format),
            product.accumulator_format.eq(Mux(is_wide, fp32, held.format)),
            product.wide.eq(is_wide),
            product.fresh.eq(held.first),
            product.last.eq(held.last),
            product.is_product.eq(product.writes),
            product.partial.eq(counts if parameters.has_chunks else 0),
            product.wide_total.eq(held.wide_total),
            product.writes.eq(issued & held.is_sound),
            product.error.eq(Mux(issued, held.error, Error.NONE)),
            *(product[name].eq(held[name]) for name in (*rounding_fields(parameters), *initial_fields(parameters))),
        ]
        if not parameters.has_chunks:
            m.d.comb += flight.issued.eq(product)
            return
        m.submodules.chunks = chunks = self.chunks
        length = self.chunk
        if parameters.shares_promotions:
            # The chunk length of the cycle before, in which it was decided that the beat need not wait.
            m.d.sync += self.length.eq(length)
            # A product that a reset clears is not counted: the next one in its place might end a chunk unforeseen.
            length, counts = self.length, counts & ~ResetSignal(allow_reset_less=True)
        m.d.comb += [
            # A load counts as a finished chunk: products start the next chunk, and their total continues.
            chunks.counts.eq(counts | loads if parameters.initial else counts),
            chunks.register.eq(held.register),
            chunks.first.eq(held.first),
            chunks.last.eq(held.last | loads if parameters.initial else held.last),
            chunks.chunk.eq(length),
            flight.facts.eq(chunks.facts),
        ]
        if parameters.shares_promotions:
            m.d.comb += flight.issued.eq(product)
            return
        ended = self.at[parameters.returning_position]
        promotion = Signal(self._operation, name="promotion")
        m.d.comb += [
            self.promotes.eq(ended.promote),
            promotion.register.eq(ended.register),
            promotion.format.eq(ended.format),
            promotion.accumulator_format.eq(Mux(ended.wide_total, fp32, ended.format)),
            promotion.wide.eq(ended.wide_total),
            promotion.fresh.eq(ended.fresh_total),
            promotion.last.eq(ended.last),
            promotion.writes.eq(1),
            *(promotion[name].eq(ended[name]) for name in rounding_fields(parameters)),
            flight.issued.eq(Mux(ended.promote, promotion.as_value(), product.as_value())),
        ]


def _bit_of(tiles: Value, tile: Value) -> Value:
    return Cat(bit & (tile == number) for number, bit in enumerate(tiles)).any()
