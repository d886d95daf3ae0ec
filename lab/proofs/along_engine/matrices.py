"""The bytes of the matrices that a command describes, as exact integers.

A byte's address contains products of registers. No solver multiplies words of 20 and 32 bits here: models of the engine
go through a matrix step by step, and a proof assumes only arithmetic about their places. See `Place`.
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
#: Bits of an exact address, for any values of the registers.
EXACT = 68


def ends_layout() -> data.StructLayout:
    """Return the end of each matrix: see `Matrix`."""
    return data.StructLayout(dict.fromkeys(SIZES, EXACT))


def all_of(*conditions: Any) -> Value:
    """Return the conjunction of Booleans."""
    return reduce(and_, (Value.cast(each).bool() for each in conditions), C(1, 1))


class Matrix:
    """A stored matrix of a command, and the other matrices of its batch.

    Parameters
    ----------
    command : View of command_layout
    end : Value
        The address behind the last byte of the whole batch.
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
        # At level 2 the outer format is the format of the operands.
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
        """Return whether no byte belongs to both."""
        return (self.end <= other.address) | (other.end <= self.address)


def accepted(command: Any, matrices: Mapping[str, Matrix], parameters: EngineParameters) -> Iterator[Condition]:
    """Yield the conditions that later parts may rely on, for an accepted command with work to do."""
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

    Both change together: when an index grows by some rows, the address grows by as many strides. So the address is
    always ``matrix.address + batch * batch_stride + row * row_stride + column * element size``, as an exact integer.
    The end of the matrix is the same sum for the largest indices, so a place with indices within the matrix lies before
    it. `is_inside` states this arithmetic, which a proof may assume; `is_exact` is proven for small sizes.
    """

    def __init__(self, parameters: EngineParameters, matrix: Matrix, name: str) -> None:
        self.matrix = matrix
        self.batch, self.row, self.column = (
            Signal(parameters.size_bits + 1, name=f"{name}_{index}") for index in ("batch", "row", "column")
        )
        self.address = Signal(EXACT, name=f"{name}_address")

    def begin(self) -> list[Any]:
        """Return the statements that move it to the first element."""
        return [each.eq(0) for each in (self.batch, self.row, self.column)] + [self.address.eq(self.matrix.address)]

    def becomes(self, other: Place, *, rows: Any = 0, columns: Any = 0, batches: int = 0) -> list[Any]:
        """Return the statements that move it to some rows, columns and batches beyond another place."""
        matrix = self.matrix
        further = times(rows, matrix.row_stride) + matrix.in_bytes(Value.cast(columns)) + batches * matrix.batch_stride
        return [
            self.batch.eq(other.batch + batches),
            self.row.eq(other.row + rows),
            self.column.eq(other.column + columns),
            self.address.eq(other.address + further),
        ]

    def becomes_along(self, other: Place, by_rows: Value, count: int) -> list[Any]:
        """Return the statements that move it `count` rows, or columns, beyond another place."""
        return self.becomes(other, rows=Mux(by_rows, count, 0), columns=Mux(by_rows, 0, count))

    def is_same(self, other: Place) -> Value:
        """Return whether both are the same place."""
        return all_of(*(getattr(self, name) == getattr(other, name) for name in ("batch", "row", "column", "address")))

    def is_within(self, rows: Value, columns: Value) -> Value:
        """Return whether a range of rows and columns that starts here lies within the matrix."""
        matrix = self.matrix
        return all_of(
            self.batch < matrix.batches, self.row + rows <= matrix.rows, self.column + columns <= matrix.columns,
            rows != 0, columns != 0,
        )  # fmt: skip

    def ends_before(self, rows: Value, columns: Value, *, address: Value | None = None) -> Value:
        """Return whether a range of rows and columns, from an address on, lies between the ends of the matrix."""
        matrix, begin = self.matrix, self.address if address is None else address
        end = begin + times((rows - 1)[: len(rows)], matrix.row_stride) + matrix.in_bytes(columns)
        return (begin >= matrix.address) & (end <= matrix.end)

    def is_inside(self, rows: Value, columns: Value) -> Value:
        """Return the condition that a range within the matrix lies between its ends."""
        return ~self.is_within(rows, columns) | self.ends_before(rows, columns)

    def is_exact(self) -> Value:
        """Return the condition that the address follows from the indices."""
        matrix = self.matrix
        products = self.batch * matrix.batch_stride + self.row * matrix.row_stride
        return self.address == matrix.address + products + matrix.in_bytes(self.column)


def times(count: Any, stride: Value) -> Value:
    """Return the product of a stride and a number of few bits."""
    word, total = Value.cast(count), Value.cast(C(0, 1))
    for bit in range(len(word)):
        total = total + Mux(word[bit], stride << bit, 0)
    return total


class Bounds(wiring.Component):
    """A part of the engine beside its model.

    Parameters
    ----------
    ports : dict
        Inputs, which may take any value.

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
