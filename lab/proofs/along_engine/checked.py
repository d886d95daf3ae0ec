# amaranth: UnusedElaboratable=no
# A part is elaborated by hand, so that its state is at hand.
"""The checker beside the exact ends of the matrices: a command that it accepts stays within memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

from amaranth import C, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In

from hdl.matrix_engine.checker import Checker
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import command_layout
from hdl.matrix_engine.registers import Initial
from lab.proofs.along_engine.matrices import EXACT, SIZES, Bounds, Matrix, accepted
from lab.proofs.along_model.record import Condition

__all__ = ["Checked"]

#: The order in which the checker looks at the matrices.
_ORDER = ("d", "c", "a", "b")


class Checked(Bounds):
    """A checker, and the remainders of its multiplications.

    The end of a matrix contains two products: rows - 1 times the row stride, and batches - 1 times the batch stride.
    They are inputs, as any numbers of their width. The remainder of a multiplication, factor * moved, begins as the
    product. Each step subtracts `moved` if the lowest bit of the factor is set, so the remainder is 0 when the factor
    is 0: the proof assumes this fact of arithmetic. See `lab.proofs.along_engine.arithmetic`.

    Ports
    -----
    command, products, offers : in
        The next command, which waits until it is taken, and its products.
    takes : in
        The checked command is taken.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters, self.checker = parameters, Checker(parameters)
        super().__init__(
            {
                "command": In(command_layout()),
                "products": In(_products(parameters)),
                "offers": In(1),
                "takes": In(1),
            }
        )

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        parameters, checker = self.parameters, self.checker
        m.submodules.checker = checker.elaborate(platform)
        self.held, self.held_products = Signal(command_layout()), Signal(_products(parameters))
        offers = Signal()
        with m.If(~offers | checker.i.ready):
            m.d.sync += [self.held.eq(self.command), self.held_products.eq(self.products), offers.eq(self.offers)]
        m.d.comb += [
            checker.i.payload.eq(self.held),
            checker.i.valid.eq(offers),
            checker.o.ready.eq(self.takes),
        ]
        self.matrices = {name: self._matrix(name) for name in SIZES}
        width = len(self.held_products.d.rows)
        left, moved, steps = Signal(width), Signal(width + 1), Signal(range(parameters.size_bits + 2))
        factor = Signal(32)
        on = {name: checker.fsm.ongoing(name) for name in ("MATRIX", "ROWS", "BATCHES")}
        begins_batches = on["ROWS"] & (checker.factor == 0)
        with m.If(on["MATRIX"] | begins_batches):
            m.d.sync += [
                left.eq(Mux(on["MATRIX"], self._of("rows"), self._of("batches"))),
                factor.eq(Mux(on["MATRIX"], self._rows(), self.held.batches) - 1),
                moved.eq(Mux(on["MATRIX"], self._stride("row_stride"), self._stride("batch_stride"))),
                steps.eq(0),
            ]
        with m.Elif(on["ROWS"] | on["BATCHES"]):
            m.d.sync += [left.eq(left - Mux(factor[0], moved, 0)), factor.eq(factor >> 1), moved.eq(moved << 1)]
            m.d.sync += steps.eq(steps + 1)
        multiplies = on["ROWS"] | on["BATCHES"]
        # The remainder is 0 when the factor is 0.
        legal = [~multiplies | (factor != 0) | (left == 0)]
        conditions = [
            *self._states(offers),
            *self._multiplication(left, factor, moved, steps),
            *self._so_far(),
        ]
        o = checker.o
        is_accepted = o.valid & (o.payload.error == 0) & ~o.payload.is_void
        claims = [
            ("the command itself", ~o.valid | (o.payload.command.as_value() == self.held.as_value())),
            ("width of d", ~o.valid | (o.payload.is_wide == self.matrices["d"].is_wide)),
            *(
                (name, ~is_accepted | value)
                for name, value in accepted(self.held, self.matrices, parameters)
            ),
        ]  # fmt: skip
        return legal, conditions, claims

    def _matrix(self, name: str) -> Matrix:
        matrix, products = Matrix(self.held, C(0, EXACT), name), self.held_products[name]
        matrix.end = matrix.address + products.rows + products.batches + matrix.in_bytes(matrix.columns)
        return matrix

    def _is_at(self, name: str) -> Value:
        return Value.cast(self.checker.which) == list(SIZES).index(name)

    def _of(self, kind: str) -> Value:
        """Return a product of the matrix that the checker looks at."""
        return reduce(or_, (Mux(self._is_at(name), self.held_products[name][kind], 0) for name in SIZES))

    def _rows(self) -> Value:
        return reduce(or_, (Mux(self._is_at(name), each.rows, 0) for name, each in self.matrices.items()))

    def _stride(self, kind: str) -> Value:
        return reduce(or_, (Mux(self._is_at(name), getattr(each, kind), 0) for name, each in self.matrices.items()))

    def _states(self, offers: Signal) -> Iterator[Condition]:
        checker, held = self.checker, self.held
        works = ~checker.fsm.ongoing("IDLE")
        yield "works on a command", ~works | offers
        looks = works & ~checker.fsm.ongoing("FIRST") & ~checker.fsm.ongoing("END")
        for size in ("m", "n", "k", "batches"):
            fits = held[size] < 1 << self.parameters.size_bits
            yield f"{size} fits", ~works | (checker.error != 0) | fits
            if size != "k":
                yield f"{size} is not 0", ~looks | (held[size] != 0)
        yield "kind of c", ~works | (checker.error != 0) | (held.options.initial <= Initial.ROW)
        yield "no error yet", ~looks | (checker.error == 0)
        yield "d comes first", ~checker.fsm.ongoing("FIRST") | self._is_at("d")
        yield "a matrix", ~looks | reduce(or_, map(self._is_at, SIZES))
        for name in _ORDER[1:]:
            yield f"{name} is used", ~looks | ~self._is_at(name) | ~self.matrices[name].is_unused

    def _multiplication(self, left: Signal, factor: Signal, moved: Signal, steps: Signal) -> Iterator[Condition]:
        checker, size_bits = self.checker, self.parameters.size_bits
        rows, batches = checker.fsm.ongoing("ROWS"), checker.fsm.ongoing("BATCHES")
        multiplies, judges = rows | batches, checker.fsm.ongoing("JUDGE")
        total = (checker.total + left)[: len(left)]
        yield "rest of the rows", ~rows | (total == self._of("rows"))
        yield "rest of the batches", ~batches | (total == self._of("batches"))
        yield "rows", ~(batches | judges) | (checker.rows_total == self._of("rows"))
        yield "batches", ~judges | (checker.total == self._of("batches"))
        # The factor becomes 0 before a bit of the other one is lost.
        for step in range(size_bits + 1):
            here = multiplies & (steps == step)
            yield f"factor after {step}", ~here | (factor < 1 << size_bits - step)
            yield f"other factor after {step}", ~here | (moved < 1 << 32 + step)
        yield "steps", ~multiplies | (steps <= size_bits)
        yield "factor", ~multiplies | (checker.factor == factor)
        yield "other factor", ~multiplies | (checker.factor == 0) | (checker.moved == moved)

    def _so_far(self) -> Iterator[Condition]:
        """Yield the findings about the matrices that the checker has passed."""
        checker, limit = self.checker, 1 << self.parameters.address_bits
        looks = ~checker.fsm.ongoing("IDLE") & ~checker.fsm.ongoing("FIRST")
        is_over = checker.fsm.ongoing("NEXT") | checker.fsm.ongoing("END")
        d = self.matrices["d"]
        is_good = looks & (checker.error == 0) & ~checker.o.payload.is_void
        for place, name in enumerate(_ORDER):
            matrix = self.matrices[name]
            is_beyond = reduce(or_, map(self._is_at, _ORDER[place + 1 :]), C(0, 1))
            was_seen = is_good & (is_beyond | (self._is_at(name) & is_over))
            fits = matrix.end <= limit
            if name == "d":
                found = fits & (checker.d_start == matrix.address) & (checker.d_end == matrix.end)
            else:
                found = matrix.is_unused | (fits & matrix.is_apart(d))
            yield f"{name} was judged", ~was_seen | found
        last = is_good & checker.fsm.ongoing("END")
        yield "all were judged", ~last | self._is_at(_ORDER[-1]) | (self._is_at("a") & (self.held.k == 0))


def _products(parameters: EngineParameters) -> data.StructLayout:
    width = parameters.size_bits + 32
    return data.StructLayout({name: data.StructLayout({"rows": width, "batches": width}) for name in SIZES})
