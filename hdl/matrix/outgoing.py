# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The base of both ways out of an array: it queues the tiles that ended, and the rows for the receiver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.mac.ports import Error
from hdl.matrix.initial import array_operation_layout
from hdl.matrix.lane import taken_layout
from hdl.matrix.parameters import GROUP, MatrixParameters
from hdl.matrix.ports import matrix_result_layout, result_width
from hdl.queue import Queue, Ring

__all__ = ["ANSWER", "WAY", "Outgoing"]

#: Cycles from the order to take a tile until its first row has arrived: group, lane, chain.
WAY = 3
#: The fields of a row of results that do not come through the chains.
ANSWER = ("error", "register", "row", "last_row")


class Column(Ring):
    """Hold the results of a column for the rows that wait. Columns are far apart: each has its own positions.

    A result is removed in the cycle after its row, in which the next result is offered already. So the receiver, which
    decides late, has a cycle to reach every column.

    Ports
    -----
    w_data, w_en, r_data, r_en
        As of `Ring`.
    has_result : in
        The row is not a refusal, which has zeros.

    Attributes
    ----------
    following : Signal
        State that proofs refer to: the position behind `consume`, so that `r_en` only chooses between two.
    """

    def __init__(self, width: int, depth: int) -> None:
        super().__init__(width, depth, has_result=In(1))
        self.following = Signal(range(depth), init=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(self.consume.shape())
        self._hold(m, self.w_data & self.has_result.replicate(len(self.w_data)), first)
        m.d.comb += first.eq(Mux(self.r_en, self.following, self.consume))
        m.d.sync += [self.consume.eq(first), self.following.eq(first + 1)]
        return m


class Outgoing(wiring.Component):
    """Take tiles in the order in which they ended, and queue rows of results.

    Parameters
    ----------
    parameters : MatrixParameters
    lanes : MatrixParameters
        The parameters as the lanes have them.
    chains, length : int
        Chains through which results arrive, and the results of a tile that come through each.
    step : mapping of shape
        What is known of a tile in the queue beside its register and its error.

    Ports
    -----
    ended : array_operation_layout, in
        The operation behind the rank ``pack``.
    taken : taken_layout, out
        The tile whose results go into the chains.
    arrived : array of unsigned, in
        The result at the end of each chain.
    o : stream of matrix_result_layout, out

    Attributes
    ----------
    tiles, lines : Queue
        State that proofs refer to: the tiles, and the refusals, that wait; the rows that wait, without their results.
    columns : list of Column
        The results of the rows that wait, column by column, in step with `lines`.
    head, head_valid : Signal
        State that proofs refer to: the first of the tiles, and whether there is one.
    left, spare, removed : Signal
        State that proofs refer to: results of the last tile that have not left the chains yet; places of `lines` less
        the rows under way to them; whether a row left `lines` in the cycle before, whose place is not counted yet.
    took, has_places, has_more : Signal
        State that proofs refer to: whether a tile was taken in the cycle before; whether `spare` was enough then for
        all rows of a tile, or of two.
    comes, is_sound : list of Signal
        State that proofs refer to, for each group of columns: whether a row comes in the next cycle, and whether that
        is no refusal.
    """

    def __init__(
        self, parameters: MatrixParameters, lanes: MatrixParameters, chains: int, length: int, **step: Any
    ) -> None:
        self.parameters = parameters
        answer = matrix_result_layout(parameters)
        super().__init__(
            {
                "ended": In(array_operation_layout(lanes)),
                "taken": Out(taken_layout(parameters)),
                "arrived": In(result_width(lanes)).array(chains),
                "o": Out(stream.Signature(answer)),
            }
        )
        entry = data.StructLayout({"error": Error, "is_refused": 1, "register": parameters.register_width, **step})
        self.tiles, self.head, self.head_valid = Queue(entry, parameters.registers), Signal(entry), Signal()
        self.answer = {name: answer[name].shape for name in ANSWER}
        self.lines = Queue(data.StructLayout(self.answer), parameters.places)
        width = result_width(parameters)
        self.columns = [Column(width, parameters.places) for _ in range(parameters.columns)]
        self.left, self.spare = Signal(range(length)), Signal(range(parameters.places + 1), init=parameters.places)
        self.removed, self.took, self.has_places, self.has_more = Signal(), Signal(), Signal(), Signal()
        groups = range(-(-parameters.columns // GROUP))
        self.comes = [Signal(name=f"row_comes_{group}") for group in groups]
        self.is_sound = [Signal(name=f"row_is_sound_{group}") for group in groups]

    def _enter(self, m: Module, ends: Value) -> None:
        """Queue a tile that ends, or a refusal."""
        ended, tiles = self.ended, self.tiles
        m.submodules.tiles, m.submodules.lines = tiles, self.lines
        is_refused = ended.error != Error.NONE
        m.d.comb += [
            tiles.w_data.error.eq(ended.error),
            tiles.w_data.is_refused.eq(is_refused),
            tiles.w_data.register.eq(ended.register),
            tiles.w_en.eq(is_refused | ends),
        ]

    def _take(self, m: Module, is_free: Value, coming: Value | int) -> Signal:
        """Take the first of the tiles, or none, and keep places for the rows that will come; return whether it does."""
        tiles, head, rows = self.tiles, self.head, self.parameters.rows
        takes, load = Signal(), Signal()
        m.d.comb += [
            takes.eq(self.head_valid & is_free & Mux(self.took, self.has_more, self.has_places)),
            load.eq(~self.head_valid | takes),
            tiles.r_en.eq(load),
            self.taken.takes.eq(takes),
            self.taken.tile.eq(head.register),
        ]
        with m.If(load):
            m.d.sync += [head.eq(tiles.r_data), self.head_valid.eq(tiles.r_rdy)]
        m.d.sync += [
            # Whether the receiver takes a row is known late.
            self.removed.eq(self.lines.r_rdy & self.lines.r_en),
            self.spare.eq(self.spare - Mux(takes, Mux(head.is_refused, 1, coming), 0) + self.removed),
            # Compared before the last tile's rows are subtracted: if there was one, there must be places for both.
            self.took.eq(takes),
            self.has_places.eq(self.spare >= rows),
            self.has_more.eq(self.spare >= 2 * rows),
        ]
        return takes

    def _queue(self, m: Module, completes: Value, is_sound: Value, row: Any, results: Sequence[Value]) -> None:
        """Queue a row of results, and offer the first row; a refusal has none.

        Parameters
        ----------
        completes, is_sound : Value
            Whether what arrives two cycles later completes a row, and whether that is no refusal.
        row : data.View
            What arrives in this cycle.
        results : sequence of Value
            The result of each column in this cycle.
        """
        lines, payload, enters = self.lines, self.o.payload, Signal(name="row_enters")
        width, kind = self.parameters.formats.accumulator_width, self.parameters.multiplier
        for group, (comes, sound) in enumerate(zip(self.comes, self.is_sound, strict=True)):
            m.d.comb += [
                comes.eq(copied(m, f"group_{group}_comes", completes, kind, resets=True)),
                sound.eq(copied(m, f"group_{group}_is_sound", is_sound, kind)),
            ]
        for number, (column, result) in enumerate(zip(self.columns, results, strict=True)):
            m.submodules[f"column_{number}"] = column
            group = number // GROUP
            # Both are far from the columns, and the receiver decides late: each gets there without logic on its way.
            is_ready = copied(m, f"is_ready_{number}", self.o.ready, kind, resets=True)
            has_row = copied(m, f"has_row_{number}", lines.r_rdy, kind, resets=True)
            m.d.comb += [
                column.w_data.eq(result),
                column.has_result.eq(copied(m, f"has_result_{number}", self.is_sound[group], kind)),
                column.w_en.eq(copied(m, f"comes_{number}", self.comes[group], kind, resets=True)),
                column.r_en.eq(is_ready & has_row),
                payload.result[number].eq(column.r_data[:width]),
            ]
            if self.parameters.flags:
                m.d.comb += payload.flags[number].eq(column.r_data[width:])
        m.d.sync += enters.eq(self.comes[0])
        m.d.comb += [
            *(lines.w_data[name].eq(row[name]) for name in ANSWER),
            lines.w_en.eq(enters),
            *(payload[name].eq(lines.r_data[name]) for name in ANSWER),
            self.o.valid.eq(lines.r_rdy),
            lines.r_en.eq(self.o.ready),
        ]
