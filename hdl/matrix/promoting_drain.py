# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The way out of an array whose lanes only have partial sums: they are promoted on the way."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data

from hdl.cores.copies import copied
from hdl.cores.words import select_width
from hdl.mac.ports import Error, rounding_fields
from hdl.matrix.outgoing import WAY, Outgoing
from hdl.matrix.parameters import GROUP, PROMOTION_DELAY, MatrixParameters
from hdl.matrix.promotion import Promotion, promotion_layout

__all__ = ["PromotingDrain"]


class PromotingDrain(Outgoing):
    """Order chunks of tiles into the chains, promote the partial sums that arrive, and queue rows of totals.

    ::

        ended -> queue of chunks -> taken: the partial sums of a tile go into the chains
                                      |
        partial sums -----------------+-> promotion units, one for each chain -> rows -> queue of rows -> o

    A chain leads through all lanes of the columns that share a promotion unit, row by row. A chunk is taken when the
    one before has left the lanes, and only if the queue has places for all rows of a tile, so that the chains never
    stop. Totals of a reduction that goes on are not queued. `Outgoing` has the ports; its tiles are chunks here.

    Parameters
    ----------
    parameters : MatrixParameters

    Attributes
    ----------
    is_free : Signal
        State that proofs refer to: whether `left` is 0.
    on_way : list of Signal
        State that proofs refer to: for each cycle of the way, what arrives at its end.
    order : Signal
        State that proofs refer to: the order to promote what arrives from the chains in the next cycle.
    orders : list of Signal
        State that proofs refer to: for each group of promotion units, the order to promote what arrives in this cycle.
    completes, is_no_refusal : Signal
        State that proofs refer to: whether what arrives at the queue of rows two cycles later completes a row, and
        whether that is no refusal.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        self._units = parameters.columns // parameters.sharing_columns
        self._length = parameters.rows * parameters.sharing_columns
        order = promotion_layout(parameters)
        step = {name: order[name].shape for name in ("format", "accumulator_format", *rounding_fields(parameters))}
        super().__init__(parameters, parameters.lanes, self._units, self._length, last=1, fresh=1, **step)
        self.is_free = Signal(init=1)
        row = {
            "valid": 1, "gives": 1, "is_end": 1, "column": select_width(parameters.sharing_columns),
            **self.answer,
        }  # fmt: skip
        coming, leaving = data.StructLayout(row | {"fresh": 1, **step}), data.StructLayout(row)
        self.on_way = [Signal(coming, name=f"on_way_{cycle}") for cycle in range(WAY)]
        # The last one is the rank that collects the totals of a row.
        self.on_way += [Signal(leaving, name=f"on_way_{WAY + cycle}") for cycle in range(PROMOTION_DELAY + 1)]
        self.promotions = [Promotion(parameters) for _ in range(self._units)]
        self.order = Signal(order)
        self.orders = [Signal(order, name=f"order_{group}") for group in range(-(-self._units // GROUP))]
        self.completes, self.is_no_refusal = Signal(name="row_completes"), Signal(reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ended, entry = self.ended, self.tiles.w_data
        index = ended.format
        if self.parameters.has_fp32:
            index = Mux(ended.wide_total, len(self.parameters.accumulators) - 1, ended.format)
        self._enter(m, ended.writes & ended.promote)
        m.d.comb += [
            entry.last.eq(ended.last),
            entry.fresh.eq(ended.fresh_total),
            entry.format.eq(ended.format),
            entry.accumulator_format.eq(index),
            *(entry[name].eq(ended[name]) for name in rounding_fields(self.parameters)),
        ]
        self._order(m)
        self._promote(m)
        self._collect(m)
        return m

    def _order(self, m: Module) -> None:
        """Take the next chunk when the partial sums of the one before have moved on; a refusal has one row."""
        head, left, rows, now = self.head, self.left, self.parameters.rows, self.on_way[0]
        takes = self._take(m, self.is_free, Mux(head.last, rows, 0))
        m.d.sync += self.is_free.eq(Mux(takes, head.is_refused | (self._length == 1), left <= 1))
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
        """Promote the partial sums at the ends of the chains. Their orders, which have a long way, are made ahead."""
        parameters, behind, order = self.parameters, self.on_way[WAY - 3], self.order
        names = ("format", "accumulator_format", "fresh", *rounding_fields(parameters))
        row = behind.row * parameters.sharing_columns if parameters.rows > 1 else 0
        shift = promotion_layout(parameters)["place"].width - parameters.register_width
        m.d.sync += [order[name].eq(behind[name]) for name in names]
        m.d.sync += [
            order.writes.eq(behind.valid & (behind.error == Error.NONE)),
            order.place.eq((behind.register << shift) + row + behind.column),
        ]
        for group, its in enumerate(self.orders):
            m.d.comb += its.eq(copied(m, f"group_{group}_order", order, parameters.multiplier, resets=True))
        for number, promotion in enumerate(self.promotions):
            m.submodules[f"promotion_{number}"] = promotion
            m.d.comb += [promotion.order.eq(self.orders[number // GROUP]), promotion.partial.eq(self.arrived[number])]

    def _collect(self, m: Module) -> None:
        """Queue a row when the total of its last column arrives: the other columns come first."""
        totals = dict[int, Signal]()
        columns = self.parameters.sharing_columns
        for number, promotion in enumerate(self.promotions):
            total = promotion.total
            for column in reversed(range(number * columns, (number + 1) * columns)):
                collected = Signal(len(total), name=f"total_{column}", reset_less=True)
                m.d.sync += collected.eq(total)
                totals[column] = total = collected
        ahead = self.on_way[-4]
        m.d.sync += [
            self.completes.eq(ahead.valid & ahead.gives & ahead.is_end),
            self.is_no_refusal.eq(ahead.error == Error.NONE),
        ]
        results = [totals[column] for column in sorted(totals)]
        self._queue(m, self.completes, self.is_no_refusal, self.on_way[-1], results)
