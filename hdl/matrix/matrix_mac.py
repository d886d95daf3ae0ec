# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The array of lanes for products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from amaranth import C, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.copies import copied
from hdl.cores.words import named
from hdl.mac.widen import widened
from hdl.matrix.control import MatrixControl
from hdl.matrix.drain import Drain
from hdl.matrix.lane import MatrixLane, lane_control, lane_control_layout, rows_written
from hdl.matrix.operands import Operand
from hdl.matrix.parameters import GROUP, MatrixParameters
from hdl.matrix.ports import matrix_beat_layout, matrix_result_layout
from hdl.matrix.promoting_drain import PromotingDrain
from hdl.parameters import built_from, documented
from hdl.pipeline import rank

__all__ = ["MatrixMac"]


@documented(MatrixParameters)
class MatrixMac(wiring.Component):
    """Multiply matrices tile by tile, each element bit for bit as `golden.matmul` computes it (NUMERICS section 5).

    ::

                         column 0    column 1
                            |           |
        row 0 ---------- lane 0,0 -- lane 0,1 --      a beat: one code for each row and one for each column;
                            |           |             lane (r, c) adds a[r] * b[c] to its accumulator of the tile
        row 1 ---------- lane 1,0 -- lane 1,1 --
                            |           |             results leave along the columns, row 0 first,
                            v           v             while the next tiles are computed

    A tile is an accumulator in every lane: `rows` by `columns` elements of a product. K beats of a tile multiply K
    columns of the first matrix by K rows of the second. ``first``, ``last``, continuations, empty reductions, chunks
    and rounding modes are as in `hdl.MultiplyAccumulate`, the same in all lanes. Any tile serves any level.

    Throughput: one beat a cycle over at least `accumulate_latency` tiles in rotation, less one cycle for each chunk of
    a tile, which ends with a promotion. The rows of a tile take one cycle each on `o`. Tiles may end in any order and
    one right after the other: every lane keeps the results of all tiles until they leave. A beat with ``last`` waits
    only for the earlier results of its own tile. A product of level 0 also waits until all products of other levels
    have left the pipeline.

    At level 1, without level 0 and initial values, and with up to 32 rows, promotions take no cycles of the lanes. A
    lane only has partial sums, and a column of lanes, or several columns of up to 12 lanes, share a unit that promotes
    one of them in a cycle. So rows leave some cycles apart, and a beat that may end a chunk waits until the partial
    sums of its tile from before have left the lanes. With 4 x 4 lanes and 8 tiles in rotation, none waits if
    chunks have 12 products; the shorter the chunks, the more beats wait. Rows of short reductions may also wait for
    places in their queue: with 8 rows, reductions of 8 products take 1.6 times as long, those of 32 products no longer.

    Initial values are loaded row by row, a beat for each, of any tiles in turn. Such a beat waits as level 0 does.

    A reset clears the pipeline and the queues. A tile without operations in flight keeps its value. Start all others
    with ``first``.

    Attributes
    ----------
    latency : int
        Cycles from the last beat of a tile to its first row at level 0, if no other rows are in the way; at any level
        where lanes share promotions.
    accumulate_latency : int
        Cycles until the same tile can take its next beat.
    i : stream of matrix_beat_layout, in
        - ``a[rows]``: first factors, codes of the operand format
        - ``b[columns]``: second factors
        - ``format``: index into `operands`
        - ``level``: precision level, 0 to 2
        - ``register``: the tile
        - ``first``: start a new reduction from +0 in every lane
        - ``last``: end the reductions and send their results
        - ``rounding``: code of the mode in every lane; absent with a single mode
        - ``initial[columns]``, ``loads``, ``row``: absent without initial values. With ``loads``, the lanes of ``row``
          start a reduction from these codes of the outer format; the other fields but ``format``, ``level``,
          ``register`` and ``rounding`` count for nothing, and there is no result. Products follow without ``first``.
    o : stream of matrix_result_layout, out
        The rows of a tile follow one another. Results of one tile keep their order, refusals included; results of
        different tiles leave in the order in which the reductions end.

        - ``result[columns]``: codes of the outer format, in the low bits
        - ``flags[columns]``: OR of the flags of all steps and promotions of a lane; absent in a unit without flags
        - ``error``: 0, or the reason for a refusal, which has no other rows
        - ``register``: the tile
        - ``row``: the row of the tile; absent with a single one
        - ``last_row``: 1 in the last beat of a tile or refusal
    chunk : unsigned(chunk_bits), in
        Products of a lane in a chunk; 0 is one chunk of any length. Keep it stable from the first beat of a reduction
        until its last one is accepted.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: Comments in the generated Verilog for ports that are not structs.
    port_notes: ClassVar[dict[str, str]] = {"chunk": "products of a lane in a chunk; 0: one chunk of any length"}
    #: Classes of parts that a subclass may replace.
    lane_type: ClassVar[type[Any]] = MatrixLane
    control_type: ClassVar[type[MatrixControl]] = MatrixControl

    @built_from(MatrixParameters)
    def __init__(self, parameters: MatrixParameters) -> None:
        self.latency, self.accumulate_latency = parameters.latency, parameters.accumulate_latency
        super().__init__(
            {
                "i": In(stream.Signature(matrix_beat_layout(parameters))),
                "o": Out(stream.Signature(matrix_result_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
            }
        )

    @cached_property
    def control(self) -> MatrixControl:
        """The control. Like every part, it is created on first use."""
        return self.control_type(self.parameters.core)

    @cached_property
    def drain(self) -> Drain | PromotingDrain:
        """The way out."""
        core = self.parameters.core
        return PromotingDrain(core) if core.shares_promotions else Drain(core)

    @cached_property
    def lane_parts(self) -> list[list[Any]]:
        """The lanes, by row and column."""
        core = self.parameters.core
        return [[self.lane_type(core.lanes) for _ in range(core.columns)] for _ in range(core.rows)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        core = self.parameters.core
        m.submodules.control, m.submodules.drain = control, drain = self.control, self.drain
        i, chunk = widened(m, self.parameters, self.i, self.chunk, control.i.payload.shape())
        m.d.comb += [
            control.i.payload.eq(i.payload),
            control.i.valid.eq(i.valid),
            i.ready.eq(control.i.ready),
            control.chunk.eq(chunk),
            control.freed.eq(drain.taken.takes),
            control.freed_tile.eq(drain.taken.tile),
            drain.ended.eq(control.at[-1]),
            self.o.payload.eq(drain.o.payload),
            self.o.valid.eq(drain.o.valid),
            drain.o.ready.eq(self.o.ready),
        ]
        rows, columns = (self._factors(m, name) for name in ("a", "b"))
        if core.initial:
            # They arrive in front of the rank `read`; the copies of the groups are the last rank.
            self._initial = list(control.initial)
            for place in range(core.position("product") - 2):
                self._initial = [rank(m, f"initial_{at}_{place}", each, C(1)) for at, each in enumerate(self._initial)]
        ahead = Signal(lane_control_layout(core.lanes), name="ahead")
        for name, value in lane_control(core.lanes, control.at, drain.taken, ahead=2).items():
            m.d.comb += Value.cast(ahead[name]).eq(value)
        for row in range(0, core.rows, GROUP):
            for column in range(0, core.columns, GROUP):
                self._group(m, rows, columns, ahead, row, column)
        for row, lanes in enumerate(self.lane_parts):
            for column, lane in enumerate(lanes):
                m.submodules[f"lane_{row}_{column}"] = lane
                if core.shares_promotions:
                    self._chain(m, row, column)
                elif row + 1 < core.rows:
                    m.d.comb += lane.below.eq(self.lane_parts[row + 1][column].drained)
        ends = self.lane_parts[0][:: core.sharing_columns if core.shares_promotions else 1]
        m.d.comb += [arrived.eq(lane.drained) for arrived, lane in zip(drain.arrived, ends, strict=True)]
        return m

    def _chain(self, m: Module, row: int, column: int) -> None:
        """Connect a lane to the next one of its promotion unit, row by row."""
        core, next_row, next_column = self.parameters.core, row, column + 1
        if next_column % core.sharing_columns == 0:
            next_row, next_column = row + 1, next_column - core.sharing_columns
        if next_row < core.rows:
            m.d.comb += self.lane_parts[row][column].below.eq(self.lane_parts[next_row][next_column].drained)

    def _factors(self, m: Module, name: str) -> list[Any]:
        """Return the factors of all rows or of all columns, behind the rank ``normal``."""
        control, factors = self.control, []
        for number, operand in enumerate(getattr(control, name)):
            m.submodules[f"{name}_{number}"] = factor = Operand(self.parameters.core.lanes, is_second=name == "b")
            m.d.comb += [
                factor.i.eq(operand),
                factor.format.eq(control.format),
                factor.accumulator_format.eq(control.accumulator_format),
                factor.promotes.eq(control.promotes),
            ]
            factors.append(factor.o)
        return factors

    def _group(self, m: Module, rows: list[Any], columns: list[Any], ahead: Any, row: int, column: int) -> None:
        """Give a group of lanes separate copies of its factors and of the control."""
        core = self.parameters.core
        kind, name = core.multiplier, f"{row}_{column}"
        its_rows, its_columns = range(core.rows)[row:][:GROUP], range(core.columns)[column:][:GROUP]
        a = {at: copied(m, f"a_{at}_of_{name}", rows[at], kind) for at in its_rows}
        b = {at: copied(m, f"b_{at}_of_{name}", columns[at], kind) for at in its_columns}
        control = copied(m, f"control_of_{name}", ahead, kind)
        for at in its_rows:
            for across in its_columns:
                lane = self.lane_parts[at][across]
                m.d.comb += [lane.a.eq(a[at]), lane.b.eq(b[across]), lane.control.eq(control)]
        if core.initial:
            self._load(m, name, its_rows, its_columns)

    def _load(self, m: Module, name: str, its_rows: Sequence[int], its_columns: Sequence[int]) -> None:
        """Give a group of lanes copies of the initial values, and each of its rows a separate ``writes``."""
        core, kind = self.parameters.core, self.parameters.core.multiplier
        initial = {at: copied(m, f"initial_{at}_of_{name}", self._initial[at], kind) for at in its_columns}
        written = rows_written(core, self.control.at, ahead=2)
        for at in its_rows:
            writes = copied(m, f"writes_{at}_of_{name}", named(m, f"row_{at}_writes", written[at]), kind)
            for across in its_columns:
                lane = self.lane_parts[at][across]
                m.d.comb += [lane.control.writes.eq(writes), lane.initial.eq(initial[across])]
