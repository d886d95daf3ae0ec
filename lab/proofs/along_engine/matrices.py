"""The bytes of the matrices that a command describes, as exact integers.

A byte's address contains products of registers. No solver multiplies words of 20 and 32 bits here: models of the engine
go through a matrix step by step, and what a proof assumes of their places is arithmetic. See `Place`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_
from typing import Any

from amaranth import C, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.registers import FORMAT_CODES, Initial
from lab.proofs.along_model.induction import MOST
from lab.proofs.along_model.record import Condition

__all__ = ["EXACT", "SIZES", "Bounds", "Matrix", "Place", "accepted", "all_of", "ends_layout", "times"]

#: Rows and columns of each matrix, in the order of the checker's codes. The others must lie apart from D.
SIZES = {"d": ("m", "n"), "a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}
#: Bits of an exact address, whatever the registers hold.
EXACT = 68


def ends_layout() -> data.StructLayout:
    """Return the end of each matrix: see `Matrix`."""
    return data.StructLayout(dict.fromkeys(SIZES, EXACT))


def all_of(*conditions: Any) -> Value:
    """Return the conjunction of Booleans."""
    return reduce(and_, (Value.cast(each).bool() for each in conditions), C(1, 1))


class Matrix:
    """A stored matrix of a command, and the other ones of its batch.

    Parameters
    ----------
    command : View of command_layout
    end : Value
        One byte beyond its last one, and beyond those of the other ones of its batch.
    name : str
        Of `SIZES`.

    Attributes
    ----------
    address : Value
        Of its first byte.
    rows, columns : Value
        As stored.
    row_stride, batch_stride : Value
    is_transposed, is_wide : Value
        Its elements have 4 bytes, otherwise 2.
    is_unused : Value
        The command has no elements of it.
    """

    def __init__(self, command: Any, end: Value, name: str) -> None:
        options = command.options
        of_rows, of_columns = SIZES[name]
        # The outer format of level 2 is that of the operands.
        outer_is_wide = options.level != 2
        self.is_transposed: Value = C(0, 1)
        self.is_unused: Value = C(0, 1)
        if name == "d":
            converted = options.d_format == FORMAT_CODES["float32"]
            self.is_wide: Value = Mux(options.d_converted, converted, outer_is_wide)
        elif name == "c":
            self.is_wide, self.is_unused = outer_is_wide, options.initial == Initial.NONE
        else:
            self.is_transposed = options[f"{name}_transposed"]
            self.is_wide, self.is_unused = options[f"{name}_float32"], command.k == 0
        self.address = Cat(command[f"{name}_address"], command[f"{name}_address_high"])
        self.row_stride, self.batch_stride = command[f"{name}_row_stride"], command[f"{name}_batch_stride"]
        self.rows = Mux(self.is_transposed, command[of_columns], command[of_rows])
        if name == "c":
            self.rows = Mux(options.initial == Initial.ROW, 1, self.rows)
        self.columns = Mux(self.is_transposed, command[of_rows], command[of_columns])
        self.end, self.batches = end, command.batches

    def in_bytes(self, elements: Value) -> Value:
        """Return the bytes of some elements."""
        return Mux(self.is_wide, elements << 2, elements << 1)

    def is_apart(self, other: Matrix) -> Value:
        """Return whether no byte lies between the ends of both."""
        return (self.end <= other.address) | (other.end <= self.address)


def accepted(command: Any, matrices: Mapping[str, Matrix], parameters: EngineParameters) -> Iterator[Condition]:
    """Yield what the parts behind the checker may rely on, of a command with something to do."""
    for size in ("m", "n", "k", "batches"):
        yield f"{size} fits", command[size] < 1 << parameters.size_bits
        if size != "k":
            yield f"{size} is not 0", command[size] != 0
    yield "kind of c", command.options.initial <= Initial.ROW
    for name, matrix in matrices.items():
        yield f"{name} within memory", matrix.is_unused | (matrix.end <= 1 << parameters.address_bits)
        if name != "d":
            yield f"{name} apart from d", matrix.is_unused | matrix.is_apart(matrices["d"])


class Place:
    """An element of a matrix, by its indices and by its address.

    Both change together: whenever an index grows by some rows, the address grows by so many strides. So the address is
    always ``matrix.address + batch * batch_stride + row * row_stride + column * element size``, as an exact integer.
    A place whose indices are within the matrix then lies before its end, which is the same sum for the largest indices.
    That is the arithmetic which `is_inside` tells, and which a proof may assume; `is_exact` is proven for small sizes.
    """

    def __init__(self, parameters: EngineParameters, matrix: Matrix, name: str) -> None:
        self.matrix = matrix
        self.batch, self.row, self.column = (
            Signal(parameters.size_bits + 1, name=f"{name}_{index}") for index in ("batch", "row", "column")
        )
        self.address = Signal(EXACT, name=f"{name}_address")

    def begin(self) -> list[Any]:
        """Return the statements by which it becomes the first element."""
        return [each.eq(0) for each in (self.batch, self.row, self.column)] + [self.address.eq(self.matrix.address)]

    def becomes(self, other: Place, *, rows: Any = 0, columns: Any = 0, batches: int = 0) -> list[Any]:
        """Return the statements by which it becomes a place so much further on than another one."""
        matrix = self.matrix
        further = times(rows, matrix.row_stride) + matrix.in_bytes(Value.cast(columns)) + batches * matrix.batch_stride
        return [
            self.batch.eq(other.batch + batches),
            self.row.eq(other.row + rows),
            self.column.eq(other.column + columns),
            self.address.eq(other.address + further),
        ]

    def becomes_along(self, other: Place, by_rows: Value, count: int) -> list[Any]:
        """Return the statements for so many rows, or columns."""
        return self.becomes(other, rows=Mux(by_rows, count, 0), columns=Mux(by_rows, 0, count))

    def is_same(self, other: Place) -> Value:
        """Return whether both are one."""
        return all_of(*(getattr(self, name) == getattr(other, name) for name in ("batch", "row", "column", "address")))

    def is_within(self, rows: Value, columns: Value) -> Value:
        """Return whether so many rows and columns from here on are elements of the matrix."""
        matrix = self.matrix
        return all_of(
            self.batch < matrix.batches, self.row + rows <= matrix.rows, self.column + columns <= matrix.columns,
            rows != 0, columns != 0,
        )  # fmt: skip

    def ends_before(self, rows: Value, columns: Value, *, address: Value | None = None) -> Value:
        """Return whether so many rows and columns, from an address on, are between the ends of the matrix."""
        matrix, begin = self.matrix, self.address if address is None else address
        end = begin + times((rows - 1)[: len(rows)], matrix.row_stride) + matrix.in_bytes(columns)
        return (begin >= matrix.address) & (end <= matrix.end)

    def is_inside(self, rows: Value, columns: Value) -> Value:
        """Return that elements of the matrix lie between its ends."""
        return ~self.is_within(rows, columns) | self.ends_before(rows, columns)

    def is_exact(self) -> Value:
        """Return that the address is that of the indices."""
        matrix = self.matrix
        products = self.batch * matrix.batch_stride + self.row * matrix.row_stride
        return self.address == matrix.address + products + matrix.in_bytes(self.column)


def times(count: Any, stride: Value) -> Value:
    """Return a product with a number of few bits."""
    word, total = Value.cast(count), Value.cast(C(0, 1))
    for bit in range(len(word)):
        total = total + Mux(word[bit], stride << bit, 0)
    return total


class Bounds(wiring.Component):
    """A part of the engine beside its model.

    Parameters
    ----------
    ports : dict
        Inputs that are left to chance.

    Ports
    -----
    legal, conditions, claims : out
        As of `lab.proofs.along_model.induction.ControlWithModel`.
    """

    def __init__(self, ports: dict[str, Any]) -> None:
        self.names: dict[str, list[str]] = {}
        super().__init__({**ports, "legal": Out(1), "conditions": Out(MOST), "claims": Out(MOST)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        legal, conditions, claims = self.observe(m, platform)
        for name, found in (("conditions", list(conditions)), ("claims", list(claims))):
            self.names[name] = [each for each, _ in found]
            values = [Value.cast(value).bool() for _, value in found]
            m.d.comb += getattr(self, name).eq(Cat(*values, Const(-1, MOST - len(values))))
        m.d.comb += self.legal.eq(all_of(*legal))
        return m

    def observe(self, m: Module, platform: object) -> tuple[Any, Any, Any]:
        """Add the part and its model; return premises, conditions and claims."""
        raise NotImplementedError
