# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The way out of an array whose lanes only have partial sums: they are promoted on the way."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import select_width
from hdl.mac.ports import Error, rounding_fields
from hdl.matrix.drain import WAY
from hdl.matrix.initial import array_operation_layout
from hdl.matrix.lane import taken_layout
from hdl.matrix.parameters import PROMOTION_DELAY, MatrixParameters
from hdl.matrix.ports import matrix_result_layout, result_width
from hdl.matrix.promotion import Promotion, promotion_layout
from hdl.queue import Queue

__all__ = ["PromotingDrain"]


class PromotingDrain(wiring.Component):
    """Order chunks of tiles into the chains, promote the partial sums that arrive, and queue rows of totals.

    ::

        ended -> queue of chunks -> taken: the partial sums of a tile go into the chains
                                      |
        partial sums -----------------+-> promotion units, one for each chain -> rows -> queue of rows -> o

    A chain leads through all lanes of the columns that share a promotion unit, row by row. A chunk is taken when the
    one before has left the lanes, and only if the queue has places for all rows of a tile, so that the chains never
    stop. Totals of a reduction that goes on are not queued.

    Parameters
    ----------
    parameters : MatrixParameters

    Ports
    -----
    ended : array_operation_layout, in
        The operation behind the rank ``pack``.
    taken : taken_layout, out
        The tile whose partial sums go into the chains.
    arrived : array of unsigned, in
        The partial sum at the end of each chain.
    o : stream of matrix_result_layout, out

    Attributes
    ----------
    tiles, lines : Queue
        State that proofs refer to: the chunks, and the refusals, that wait; the rows that wait.
    head, head_valid : Signal
        State that proofs refer to: the first of the chunks, and whether there is one.
    left, spare, removed : Signal
        State that proofs refer to: partial sums of the last chunk that have not left the chains yet; places of `lines`
        less the rows under way to them; whether a row left `lines` in the cycle before, whose place is not counted yet.
    is_free, has_places, took : Signal
        State that proofs refer to: whether `left` is 0; whether `spare` was enough in the cycle before; whether a chunk
        was taken then, so that it may not be enough now.
    on_way : list of Signal
        State that proofs refer to: for each cycle of the way, what arrives at its end.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        self.parameters = parameters
        answer, operation = matrix_result_layout(parameters), array_operation_layout(parameters.lanes)
        self._units = parameters.columns // parameters.sharing_columns
        self._length = parameters.rows * parameters.sharing_columns
        super().__init__(
            {
                "ended": In(operation),
                "taken": Out(taken_layout(parameters)),
                "arrived": In(result_width(parameters.lanes)).array(self._units),
                "o": Out(stream.Signature(answer)),
            }
        )
        order = promotion_layout(parameters)
        step = {name: order[name].shape for name in ("format", "accumulator_format", *rounding_fields(parameters))}
        entry = data.StructLayout(
            {"error": Error, "is_refused": 1, "register": parameters.register_width, "last": 1, "fresh": 1, **step}
        )
        self.tiles, self.head, self.head_valid = Queue(entry, parameters.registers), Signal(entry), Signal()
        self.lines = Queue(answer, parameters.places)
        self.left, self.spare = (
            Signal(range(self._length)),
            Signal(range(parameters.places + 1), init=parameters.places),
        )
        self.removed, self.took, self.has_places, self.is_free = Signal(), Signal(), Signal(), Signal(init=1)
        row = {
            "valid": 1, "gives": 1, "is_end": 1, "column": select_width(parameters.sharing_columns),
            **{name: answer[name].shape for name in ("error", "register", "row", "last_row")},
        }  # fmt: skip
        coming, leaving = data.StructLayout(row | {"fresh": 1, **step}), data.StructLayout(row)
        self.on_way = [Signal(coming, name=f"on_way_{cycle}") for cycle in range(WAY)]
        # The last one is the rank that collects the totals of a row.
        self.on_way += [Signal(leaving, name=f"on_way_{WAY + cycle}") for cycle in range(PROMOTION_DELAY + 1)]
        self.promotions = [Promotion(parameters) for _ in range(self._units)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ended, tiles, lines = self.ended, self.tiles, self.lines
        m.submodules.tiles, m.submodules.lines = tiles, lines
        is_refused = ended.error != Error.NONE
        index = ended.format
        if self.parameters.has_fp32:
            index = Mux(ended.wide_total, len(self.parameters.accumulators) - 1, ended.format)
        m.d.comb += [
            tiles.w_data.error.eq(ended.error),
            tiles.w_data.is_refused.eq(is_refused),
            tiles.w_data.register.eq(ended.register),
            tiles.w_data.last.eq(ended.last),
            tiles.w_data.fresh.eq(ended.fresh_total),
            tiles.w_data.format.eq(ended.format),
            tiles.w_data.accumulator_format.eq(index),
            *(tiles.w_data[name].eq(ended[name]) for name in rounding_fields(self.parameters)),
            tiles.w_en.eq(is_refused | (ended.writes & ended.promote)),
        ]
        self._take(m)
        self._promote(m)
        self._queue(m)
        return m

    def _take(self, m: Module) -> None:
        """Take the next chunk when the partial sums of the one before have moved on; a refusal has one row."""
        tiles, head, left, rows = self.tiles, self.head, self.left, self.parameters.rows
        takes, load, now = Signal(), Signal(), self.on_way[0]
        m.d.comb += [
            takes.eq(self.head_valid & self.is_free & self.has_places & ~self.took),
            load.eq(~self.head_valid | takes),
            tiles.r_en.eq(load),
            self.taken.takes.eq(takes),
            self.taken.tile.eq(head.register),
        ]
        with m.If(load):
            m.d.sync += [head.eq(tiles.r_data), self.head_valid.eq(tiles.r_rdy)]
        coming = Mux(takes, Mux(head.is_refused, 1, Mux(head.last, rows, 0)), 0)
        # Whether the receiver takes a row is known late.
        m.d.sync += [
            self.took.eq(takes),
            self.has_places.eq(self.spare >= rows),
            self.is_free.eq(Mux(takes, head.is_refused | (self._length == 1), left <= 1)),
            self.removed.eq(self.lines.r_rdy & self.lines.r_en),
            self.spare.eq(self.spare - coming + self.removed),
        ]
        with m.If(takes):
            m.d.sync += left.eq(Mux(head.is_refused, 0, self._length - 1))
            m.d.sync += [now[name].eq(head[name]) for name in head.shape().members if name in now.shape().members]
            m.d.sync += now.gives.eq(head.last | head.is_refused)
        with m.Elif(~self.is_free):
            m.d.sync += left.eq(left - 1)
        m.d.sync += now.valid.eq(takes | ~self.is_free)
        self._count(m, takes)
        m.d.sync += [
            there.eq(here)
            for before, later in zip(self.on_way, self.on_way[1:], strict=False)
            for there, here in ((later[name], before[name]) for name in later.shape().members)
        ]

    def _count(self, m: Module, takes: Signal) -> None:
        """Number the partial sums by row and column; rows end with the last column, or with a refusal."""
        now, left, columns = self.on_way[0], self.left, self.parameters.sharing_columns
        m.d.sync += now.last_row.eq(Mux(takes, self.head.is_refused | (self._length == 1), left == 1))
        if columns == 1:
            m.d.sync += now.is_end.eq(1)
            if self.parameters.rows > 1:
                m.d.sync += now.row.eq(Mux(takes, 0, now.row + 1))
            return
        m.d.sync += [
            now.column.eq(Mux(takes | now.is_end, 0, now.column + 1)),
            now.is_end.eq(Mux(takes, self.head.is_refused, ~now.is_end & (now.column == columns - 2))),
        ]
        if self.parameters.rows > 1:
            m.d.sync += now.row.eq(Mux(takes, 0, now.row + now.is_end))

    def _promote(self, m: Module) -> None:
        """Promote the partial sums at the ends of the chains."""
        parameters, at = self.parameters, self.on_way[WAY - 1]
        for number, promotion in enumerate(self.promotions):
            m.submodules[f"promotion_{number}"] = promotion
            order = promotion.order
            m.d.comb += [
                order[name].eq(at[name])
                for name in ("format", "accumulator_format", "fresh", *rounding_fields(parameters))
            ]
            m.d.comb += [
                order.writes.eq(at.valid & (at.error == Error.NONE)),
                promotion.partial.eq(self.arrived[number]),
            ]
            place = self._place(at)
            m.d.comb += order.place.eq(place)

    def _place(self, at: Any) -> Any:
        row = at.row * self.parameters.sharing_columns if self.parameters.rows > 1 else 0
        shift = promotion_layout(self.parameters)["place"].width - self.parameters.register_width
        return (at.register << shift) + row + at.column

    def _queue(self, m: Module) -> None:
        """Queue a row when the total of its last column is there; those of the others have come before."""
        parameters, lines, row, width = (
            self.parameters, self.lines, self.on_way[-1], self.parameters.formats.accumulator_width,
        )  # fmt: skip
        entry: Any = lines.w_data
        columns = parameters.sharing_columns
        for number, promotion in enumerate(self.promotions):
            total = promotion.total
            for column in reversed(range(number * columns, (number + 1) * columns)):
                collected = Signal(len(total), name=f"total_{column}", reset_less=True)
                m.d.sync += collected.eq(total)
                total = collected
                with m.If(row.error == Error.NONE):
                    m.d.comb += entry.result[column].eq(collected[:width])
                    if parameters.flags:
                        m.d.comb += entry.flags[column].eq(collected[width:])
        m.d.comb += [entry[name].eq(row[name]) for name in ("error", "register", "row", "last_row")]
        m.d.comb += [
            lines.w_en.eq(row.valid & row.gives & row.is_end),
            self.o.payload.eq(lines.r_data),
            self.o.valid.eq(lines.r_rdy),
            lines.r_en.eq(self.o.ready),
        ]
