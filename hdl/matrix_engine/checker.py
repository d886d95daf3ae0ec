"""The check of a command before it runs: nothing outside of its matrices can be touched afterwards."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters, code_of
from hdl.matrix_engine.ports import checked_layout, command_layout
from hdl.matrix_engine.registers import FORMAT_CODES, EngineError, Initial

__all__ = ["Checker"]


class _Which(enum.Enum, shape=2):  # type: ignore[call-arg]  # Amaranth's metaclass takes it
    D = 0
    A = 1
    B = 2
    C = 3


class Checker(wiring.Component):
    """Find the first reason to refuse a command, or none.

    ::

        options, sizes ---------------------------------------> FORMAT ... SIZE
        for D, C, A, B:
            row   = elements of a stored row * element size
            rows  = (stored rows - 1) * row stride             shift and add, a cycle for each bit of a factor
            batch = (batches - 1) * batch stride               likewise
            end   = address + batch + rows + row -------------> ALIGNMENT, STRIDE, RANGE, OVERLAP

    Every byte of a matrix lies from ``address`` to below ``end``. Matrices without elements are not looked at, nor A
    and B with K = 0, nor C unless it is used; a C that is a row has one stored row. The row stride of a single row and
    the batch stride of a single matrix may be any words. It takes at most 2 *
    `size_bits` + 5 cycles for each matrix, fewer for small sizes, while the command before it runs.

    Ports
    -----
    i : stream of command_layout, in
    o : stream of checked_layout, out
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "i": In(stream.Signature(command_layout())),
                "o": Out(stream.Signature(checked_layout(parameters))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        size_bits, address_bits = parameters.size_bits, parameters.address_bits
        command, options = self.i.payload, self.i.payload.options
        error = Signal(8)
        m.d.comb += [self.o.payload.command.eq(command), self.o.payload.error.eq(error)]

        # Checks without arithmetic. The last assignment wins, so the most important reason comes last.
        index, has_format = Signal(range(max(2, len(parameters.operands)))), Signal()
        with m.Switch(options.format):
            for number, fmt in enumerate(parameters.operands):
                with m.Case(code_of(fmt)):
                    m.d.comb += [index.eq(number), has_format.eq(1)]
        has_result = Signal()
        with m.Switch(options.d_format):
            for fmt in parameters.result_formats:
                with m.Case(code_of(fmt)):
                    m.d.comb += has_result.eq(1)
        has_level, has_mode = Signal(), Signal()
        with m.Switch(options.level):
            for level in parameters.levels:
                with m.Case(level):
                    m.d.comb += has_level.eq(1)
        with m.Switch(options.rounding):
            for mode in parameters.modes:
                with m.Case(mode):
                    m.d.comb += has_mode.eq(1)
        outer_is_wide, is_wide = options.level != 2, Signal()
        float32 = FORMAT_CODES["float32"]
        m.d.comb += [
            is_wide.eq(Mux(options.d_converted, options.d_format == float32, outer_is_wide)),
            self.o.payload.format.eq(index),
            self.o.payload.is_wide.eq(is_wide),
            self.o.payload.is_void.eq((command.m == 0) | (command.n == 0) | (command.batches == 0)),
            # A conversion to the outer format itself is none.
            self.o.payload.converts.eq(
                options.d_converted & (options.d_format != Mux(outer_is_wide, float32, options.format))
            ),
            self.o.payload.source.eq(Mux(outer_is_wide, float32, options.format)),
        ]
        too_large = Cat((command[name] >> size_bits).any() for name in ("m", "n", "k", "batches")).any()
        reasons = (
            (options.initial > (Initial.ROW if parameters.initial else Initial.NONE), EngineError.INITIAL),
            (too_large, EngineError.SIZE),
            ((command.chunk >> parameters.chunk_bits).any(), EngineError.CHUNK),
            (~has_mode, EngineError.ROUNDING),
            (~has_level, EngineError.LEVEL),
            (
                ~has_format
                | (options.d_converted & ~has_result)
                | ((options.a_float32 | options.b_float32) & (not parameters.conversions)),
                EngineError.FORMAT,
            ),
        )
        plain = Signal(8)
        for condition, reason in reasons:
            with m.If(condition):
                m.d.comb += plain.eq(reason)

        # The matrix that is looked at.
        which = Signal(_Which)
        wide, address, high = Signal(), Signal(address_bits), Signal()
        row_stride, batch_stride = Signal(32), Signal(32)
        stored_rows, stored_columns = Signal(size_bits), Signal(size_bits)
        choices = {
            _Which.D: ("d", is_wide, C(0, 1), "m", "n"),
            _Which.A: ("a", options.a_float32, options.a_transposed, "m", "k"),
            _Which.B: ("b", options.b_float32, options.b_transposed, "k", "n"),
            **({_Which.C: ("c", outer_is_wide, C(0, 1), "m", "n")} if parameters.initial else {}),
        }
        with m.Switch(which):
            for choice, (name, its_width, is_transposed, of_rows, of_columns) in choices.items():
                with m.Case(choice):
                    whole = Cat(command[f"{name}_address"], command[f"{name}_address_high"])
                    m.d.comb += [
                        wide.eq(its_width),
                        address.eq(whole),
                        high.eq((whole >> address_bits).any()),
                        row_stride.eq(command[f"{name}_row_stride"]),
                        batch_stride.eq(command[f"{name}_batch_stride"]),
                        stored_rows.eq(Mux(is_transposed, command[of_columns], command[of_rows])),
                        stored_columns.eq(Mux(is_transposed, command[of_rows], command[of_columns])),
                    ]
        if parameters.initial:
            with m.If((which == _Which.C) & (options.initial == Initial.ROW)):
                m.d.comb += stored_rows.eq(1)
        row = Signal(size_bits + 2)
        is_many_rows, is_many = stored_rows > 1, command.batches > 1
        low = Cat(address[:2], Mux(is_many_rows, row_stride[:2], 0), Mux(is_many, batch_stride[:2], 0))
        is_misaligned = Mux(wide, low.any(), (low & 0b010101).any())
        m.d.comb += row.eq(Mux(wide, stored_columns << 2, stored_columns << 1))

        product_bits = size_bits + 32
        # A multiplication bit by bit: the remaining bits of one factor, the other factor shifted, the sum.
        factor, moved, total = Signal(size_bits), Signal(product_bits), Signal(product_bits)
        rows_total = Signal(product_bits)
        end_bits = max(product_bits, address_bits) + 2
        end, start = Signal(end_bits), Signal(address_bits)
        d_start, d_end = Signal(address_bits), Signal(address_bits + 1)
        m.d.comb += [end.eq(address + rows_total + total + row), start.eq(address)]
        rows_overlap = is_many_rows & (row_stride < row)
        # Either each matrix begins behind the rows of the one before it, or all of them lie within a row's stride.
        apart = batch_stride >= rows_total + row
        interleaved = (batch_stride >= row) & (~is_many_rows | (row_stride >= total + row))
        batches_overlap = is_many & ~(apart | interleaved)

        self.which, self.error, self.d_start, self.d_end = which, error, d_start, d_end
        self.factor, self.moved, self.total, self.rows_total = factor, moved, total, rows_total
        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                m.d.sync += [error.eq(plain), which.eq(_Which.D)]
                with m.If(self.i.valid):
                    m.next = "FIRST"
            with m.State("FIRST"):
                m.next = "MATRIX"
                with m.If((error != 0) | self.o.payload.is_void):
                    m.next = "END"
            with m.State("MATRIX"):
                m.d.sync += [factor.eq(stored_rows - 1), moved.eq(row_stride), total.eq(0)]
                m.next = "ROWS"
            with m.State("ROWS"):
                _multiply(m, factor, moved, total)
                with m.If(factor == 0):
                    m.d.sync += [
                        rows_total.eq(total), factor.eq(command.batches - 1), moved.eq(batch_stride), total.eq(0)
                    ]  # fmt: skip
                    m.next = "BATCHES"
            with m.State("BATCHES"):
                _multiply(m, factor, moved, total)
                with m.If(factor == 0):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.next = "NEXT"
                with m.If(which == _Which.D):
                    m.d.sync += [d_start.eq(start), d_end.eq(end)]
                with m.Elif((start < d_end) & (d_start < end)):
                    m.d.sync += error.eq(EngineError.OVERLAP)
                    m.next = "END"
                with m.If(high | (end > (1 << address_bits))):
                    m.d.sync += error.eq(EngineError.RANGE)
                    m.next = "END"
                with m.If((which == _Which.D) & (rows_overlap | batches_overlap)):
                    m.d.sync += error.eq(EngineError.STRIDE)
                    m.next = "END"
                with m.If(is_misaligned):
                    m.d.sync += error.eq(EngineError.ALIGNMENT)
                    m.next = "END"
            with m.State("NEXT"):
                m.next = "MATRIX"
                with m.Switch(which):
                    with m.Case(_Which.D):
                        m.d.sync += which.eq(_Which.A)
                        with m.If(command.k == 0):
                            m.next = "END"
                        if parameters.initial:
                            with m.If(options.initial != Initial.NONE):
                                m.d.sync += which.eq(_Which.C)
                                m.next = "MATRIX"
                    with m.Case(_Which.C):
                        m.d.sync += which.eq(_Which.A)
                        with m.If(command.k == 0):
                            m.next = "END"
                    with m.Case(_Which.A):
                        m.d.sync += which.eq(_Which.B)
                    with m.Default():
                        m.next = "END"
            with m.State("END"):
                m.d.comb += [self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = "IDLE"
        return m


def _multiply(m: Module, factor: Signal, moved: Signal, total: Signal) -> None:
    """One step of a multiplication, from the lowest bit of the factor up."""
    m.d.sync += [factor.eq(factor >> 1), moved.eq(moved << 1)]
    with m.If(factor[0]):
        m.d.sync += total.eq(total + moved)
