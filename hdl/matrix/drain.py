# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The way out of an array: tiles leave in the order in which they ended, row by row."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data

from hdl.mac.ports import Error
from hdl.matrix.outgoing import WAY, Outgoing
from hdl.matrix.parameters import MatrixParameters

__all__ = ["Drain"]


class Drain(Outgoing):
    """Order tiles into the chains of the columns, and queue the rows that arrive.

    ::

        ended -> queue of tiles -> taken: the kept results of a tile go into the chains
                                     |
        rows  -----------------------+-> queue of rows -> o

    A tile is taken every `rows` cycles at most, and only if the queue has places for all of its rows, so that the
    chains never stop. `Outgoing` has the ports.

    Parameters
    ----------
    parameters : MatrixParameters

    Attributes
    ----------
    on_way : list of Signal
        State that proofs refer to: for each cycle of the way, what arrives at its end.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        super().__init__(parameters, parameters, parameters.columns, parameters.rows)
        row = data.StructLayout({"valid": 1, **self.answer})
        self.on_way = [Signal(row, name=f"on_way_{cycle}") for cycle in range(WAY)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._enter(m, self.ended.writes & self.ended.last & ~self.ended.promote)
        self._order(m)
        ahead = self.on_way[-3]
        self._queue(m, ahead.valid, ahead.error == Error.NONE, self.on_way[-1], self.arrived)
        return m

    def _order(self, m: Module) -> None:
        """Take the next tile when the rows of the one before have moved on; a refusal has one row."""
        head, left, rows, now = self.head, self.left, self.parameters.rows, self.on_way[0]
        takes = self._take(m, left == 0, rows)
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
