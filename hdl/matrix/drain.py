# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The way out of an array: tiles leave in the order in which they ended, row by row."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.ports import Error
from hdl.matrix.initial import array_operation_layout
from hdl.matrix.lane import taken_layout
from hdl.matrix.parameters import MatrixParameters
from hdl.matrix.ports import matrix_result_layout, result_width
from hdl.queue import Queue

__all__ = ["WAY", "Drain"]

#: Cycles from the order to take a tile until its first row has arrived: group, lane, chain.
WAY = 3


class Drain(wiring.Component):
    """Order tiles into the chains of the columns, and queue the rows that arrive.

    ::

        ended -> queue of tiles -> taken: the kept results of a tile go into the chains
                                     |
        rows  -----------------------+-> queue of rows -> o

    A tile is taken every `rows` cycles at most, and only if the queue has places for all of its rows, so that the
    chains never stop.

    Parameters
    ----------
    parameters : MatrixParameters

    Ports
    -----
    ended : array_operation_layout, in
        The operation behind the rank ``pack``.
    taken : taken_layout, out
        The tile whose results go into the chains.
    arrived : array of unsigned, in
        The result at the end of each column's chain.
    o : stream of matrix_result_layout, out

    Attributes
    ----------
    tiles, lines : Queue
        State that proofs refer to: the tiles, and the refusals, that wait; the rows that wait.
    head, head_valid : Signal
        State that proofs refer to: the first of the tiles, and whether there is one.
    left, spare, removed : Signal
        State that proofs refer to: rows of the last tile that have not left the lanes of row 0 yet; places of `lines`
        less the rows under way to them; whether a row left `lines` in the cycle before, whose place is not counted yet.
    on_way : list of Signal
        State that proofs refer to: for each cycle of the way, what arrives at its end.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        self.parameters = parameters
        answer = matrix_result_layout(parameters)
        super().__init__(
            {
                "ended": In(array_operation_layout(parameters)),
                "taken": Out(taken_layout(parameters)),
                "arrived": In(result_width(parameters)).array(parameters.columns),
                "o": Out(stream.Signature(answer)),
            }
        )
        entry = data.StructLayout({"error": Error, "is_refused": 1, "register": parameters.register_width})
        self.tiles, self.head, self.head_valid = Queue(entry, parameters.registers), Signal(entry), Signal()
        self.lines = Queue(answer, parameters.places)
        self.left, self.spare = (
            Signal(range(parameters.rows)),
            Signal(range(parameters.places + 1), init=parameters.places),
        )
        self.removed = Signal()
        row = data.StructLayout(
            {"valid": 1, **{name: answer[name].shape for name in ("error", "register", "row", "last_row")}}
        )
        self.on_way = [Signal(row, name=f"on_way_{cycle}") for cycle in range(WAY)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ended, tiles, lines = self.ended, self.tiles, self.lines
        m.submodules.tiles, m.submodules.lines = tiles, lines
        is_refused = ended.error != Error.NONE
        m.d.comb += [
            tiles.w_data.error.eq(ended.error),
            tiles.w_data.is_refused.eq(is_refused),
            tiles.w_data.register.eq(ended.register),
            tiles.w_en.eq(is_refused | (ended.writes & ended.last & ~ended.promote)),
        ]
        self._take(m)
        self._queue(m)
        return m

    def _take(self, m: Module) -> None:
        """Take the next tile when the rows of the one before have moved on; a refusal has one row."""
        tiles, head, left, rows = self.tiles, self.head, self.left, self.parameters.rows
        takes, load, now = Signal(), Signal(), self.on_way[0]
        m.d.comb += [
            takes.eq(self.head_valid & (left == 0) & (self.spare >= rows)),
            load.eq(~self.head_valid | takes),
            tiles.r_en.eq(load),
            self.taken.takes.eq(takes),
            self.taken.tile.eq(head.register),
        ]
        with m.If(load):
            m.d.sync += [head.eq(tiles.r_data), self.head_valid.eq(tiles.r_rdy)]
        coming = Mux(takes, Mux(head.is_refused, 1, rows), 0)
        # Whether the receiver takes a row is known late.
        m.d.sync += [
            self.removed.eq(self.lines.r_rdy & self.lines.r_en),
            self.spare.eq(self.spare - coming + self.removed),
        ]
        with m.If(takes):
            m.d.sync += [left.eq(Mux(head.is_refused, 0, rows - 1)), now.error.eq(head.error)]
            m.d.sync += now.register.eq(head.register)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.sync += [
            now.valid.eq(takes | (left != 0)),
            now.last_row.eq(Mux(takes, head.is_refused | (rows == 1), left == 1)),
        ]
        if rows > 1:
            m.d.sync += now.row.eq(Mux(takes, 0, rows - left))
        m.d.sync += [later.eq(before) for before, later in zip(self.on_way, self.on_way[1:], strict=False)]

    def _queue(self, m: Module) -> None:
        """Queue the row at the end of the chains."""
        parameters, lines, row, width = (
            self.parameters,
            self.lines,
            self.on_way[-1],
            self.parameters.formats.accumulator_width,
        )
        entry: Any = lines.w_data
        with m.If(row.error == Error.NONE):
            for column, arrived in enumerate(self.arrived):
                m.d.comb += entry.result[column].eq(arrived[:width])
                if parameters.flags:
                    m.d.comb += entry.flags[column].eq(arrived[width:])
        m.d.comb += [entry[name].eq(row[name]) for name in ("error", "register", "row", "last_row")]
        m.d.comb += [
            lines.w_en.eq(row.valid),
            self.o.payload.eq(lines.r_data),
            self.o.valid.eq(lines.r_rdy),
            lines.r_en.eq(self.o.ready),
        ]
