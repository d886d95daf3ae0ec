"""Which commands compute a product: blocks of batches, rows, columns and products that fit the engine's memory.

A part of the products is a whole number of chunks, and goes on from the total of the part before, so that the order of
the sums is kept (NUMERICS section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

__all__ = ["Block", "Plan", "Shape", "Sizes", "planned", "row_stride"]


#: Bytes of the widest total.
_TOTAL = 4


class Block(NamedTuple):
    """A part of a product: ranges of batches, of rows and columns of D, of products of each element."""

    batches: range
    rows: range
    columns: range
    products: range


class Shape(NamedTuple):
    """Batches, M, N and K."""

    batches: int
    rows: int
    columns: int
    products: int


@dataclass(frozen=True)
class Sizes:
    """What a block takes of memory.

    Parameters
    ----------
    a, b, c, d : int
        Bytes of an element; 0 for a C that is absent.
    c_is_row : bool
        C is one row.
    a_is_shared, b_is_shared, c_is_shared : bool
        One matrix serves all batches.
    a_transposed, b_transposed : bool
        Stored as K x M, as N x K.
    word : int
        Bytes of a word on the bus: rows begin at a multiple.
    """

    a: int
    b: int
    c: int
    d: int
    c_is_row: bool
    a_is_shared: bool
    b_is_shared: bool
    c_is_shared: bool
    a_transposed: bool
    b_transposed: bool
    word: int

    def parts(self, shape: Shape) -> tuple[int, int, int, int]:
        """Return the bytes of A, B, C and D of a block."""
        batches, m, n, k = shape

        def matrix(rows: int, columns: int, size: int, shared: bool) -> int:
            return (1 if shared else batches) * rows * row_stride(columns, size, self.word)

        a = matrix(*((k, m) if self.a_transposed else (m, k)), self.a, self.a_is_shared)
        b = matrix(*((n, k) if self.b_transposed else (k, n)), self.b, self.b_is_shared)
        c = matrix(1 if self.c_is_row else m, n, self.c, self.c_is_shared) if self.c else 0
        return a, b, c, matrix(m, n, self.d, False)

    def carrying(self) -> Sizes:
        """Return the sizes of blocks that take totals from the block before, in C, and leave them in D."""
        size = max(self.c, self.d, _TOTAL)
        return replace(self, c=size, d=size, c_is_row=False, c_is_shared=False)


def row_stride(length: int, size: int, word: int) -> int:
    """Return the bytes from one row to the next."""
    return -(-length * size // word) * word


@dataclass(frozen=True)
class Plan:
    """The blocks of a product, and the memory of A, B, C and D, which is the same for all.

    Parameters
    ----------
    whole, block : Shape
        The product, and its largest block.
    places : tuple of int
        Where A, B, C and D begin, and where D ends, counted from the beginning of the memory.
    """

    whole: Shape
    block: Shape
    places: tuple[int, ...]

    @property
    def carries(self) -> bool:
        """Whether totals go from one block to the next."""
        return self.block.products < self.whole.products

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks. All parts of one result follow each other, in the order of their products."""
        for batches in _parts(self.whole.batches, self.block.batches):
            for rows in _parts(self.whole.rows, self.block.rows):
                for columns in _parts(self.whole.columns, self.block.columns):
                    for products in _parts(self.whole.products, self.block.products):
                        yield Block(batches, rows, columns, products)


def planned(whole: Shape, sizes: Sizes, memory: int, most: int, unit: int | None, advice: str) -> Plan:
    """Return the plan of a product.

    Parameters
    ----------
    whole : Shape
        None of its numbers but the products is 0.
    sizes : Sizes
    memory : int
        Bytes that a block may take.
    most : int
        The largest number of batches, rows, columns and products of a command.
    unit : int or None
        Products that must not be cut: 1 for a chain, else the chunk; None allows no cut at all.
    advice : str
        The end of the error's message.

    Raises
    ------
    ValueError
        If even the smallest block does not fit.
    """
    block, parts = _fitting(whole, sizes, memory, most, unit, advice)
    return Plan(whole, block, tuple(accumulate(parts, initial=0)))


def _parts(length: int, size: int) -> Iterator[range]:
    for begin in range(0, max(length, 1), max(size, 1)):
        yield range(begin, min(begin + size, length))


def _fitting(
    whole: Shape, sizes: Sizes, memory: int, most: int, unit: int | None, advice: str
) -> tuple[Shape, tuple[int, int, int, int]]:
    """Return the size of a block and its memory: halve batches, then rows and columns, then products."""
    size = Shape(*(min(each, most) for each in whole))
    if size.products < whole.products:
        if unit is None or unit > most:
            raise ValueError(
                f"a, b: got {whole.products} products a result, must be at most {most}, as the engine is built; "
                f"{advice}"
            )
        size = size._replace(products=size.products - size.products % unit)
    while True:
        is_cut = size.products < whole.products
        taken = sizes.carrying() if is_cut else sizes
        parts = taken.parts(size)
        # A register holds the bytes from one matrix of a batch to the next.
        is_far = size.batches > 1 and max(taken.parts(size._replace(batches=1))) >> 32
        if sum(parts) <= memory and not is_far:
            return size, parts
        can_cut = unit is not None and size.products > unit
        half = -(-size.products // 2)
        side = max(size.rows, size.columns)
        if size.batches > 1:
            size = size._replace(batches=-(-size.batches // 2))
        elif side > (_LEAST if can_cut else 1):
            larger = "rows" if size.rows >= size.columns else "columns"
            size = size._replace(**{larger: -(-side // 2)})
        elif unit is not None and can_cut:
            size = size._replace(products=max(unit, half - half % unit))
        else:
            raise ValueError(
                f"a, b: got {whole.products} products a result; even a part of them for one result takes "
                f"{sum(parts)} bytes of the engine's memory, must take at most {memory}; {advice}"
            )


#: Fewer rows and columns than this leave lanes idle: rather cut the products.
_LEAST = 64
