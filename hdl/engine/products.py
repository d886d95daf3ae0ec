"""A product on the engine: its blocks written into memory, their commands, and the results read back."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.engine.arguments import Matrices, Operands, dtype_of, result_shape
from hdl.engine.conversion import to_codes
from hdl.engine.device import Device
from hdl.engine.plan import Block, Plan, Shape, Sizes, planned, row_stride
from hdl.matrix_engine.registers import FORMAT_CODES, Initial, register_named

__all__ = ["Product", "converts", "multiply"]

_PATIENCE = 2.0
_LOW, _WORD_BITS = 0xFFFFFFFF, 32


class Product(NamedTuple):
    """What is computed of matrices.

    Parameters
    ----------
    operand : FloatFormat
    level : int
    chunk : int or None
        None is one chunk.
    rounding : Rounding
    outer, result : FloatFormat
        Format of the totals, and of D.
    converts : bool
        Totals are converted to the format of D (`converts`).
    """

    operand: FloatFormat
    level: int
    chunk: int | None
    rounding: Rounding
    outer: FloatFormat
    result: FloatFormat
    converts: bool


def converts(outer: FloatFormat, out: FloatFormat | None, totals: object, length: int) -> bool:
    """Return whether a conversion to `out` may change totals.

    One to their own format makes the NaN of that format of every NaN. So do steps: it matters to initial values alone
    to which nothing is added.
    """
    return out is not None and (out != outer or (totals is not None and not length))


def multiply(
    device: Device, product: Product, given: Operands, totals: NDArray[Any] | None
) -> tuple[NDArray[Any], int]:
    """Return the codes of a product, and the OR of its flags.

    Parameters
    ----------
    device : Device
    product : Product
    given : Operands
        Checked, with values or codes.
    totals : array, optional
        Codes of the outer format that broadcast to the results.
    """
    shape = result_shape(given)
    result = np.zeros(shape, dtype_of(product.result))
    if not result.size:
        return result, 0
    *batch, rows, columns = shape
    whole = Shape(prod(batch), rows, columns, given.length)
    run = _Run(
        device, product, _stored(device, product, given, tuple(batch)), _as_matrices(totals, tuple(batch)), whole
    )
    return result, run.into(result.reshape(whole.batches, rows, columns))


def _stored(device: Device, product: Product, given: Operands, batch: tuple[int, ...]) -> Operands:
    """Return the operands as the engine takes them: three axes, the first of length 1 if one matrix serves all."""
    found = []
    for each in given:
        if each.is_float32 and not device.features.has_float32:
            each = each._replace(codes=to_codes(each.codes.view(np.float32), product.operand), is_float32=False)
        each = each.by_rows()
        found.append(each._replace(codes=_flat(each.codes, batch)))
    return Operands(*found)


def _flat(array: NDArray[Any], batch: tuple[int, ...]) -> NDArray[Any]:
    leading, matrix = array.shape[:-2], array.shape[-2:]
    if prod(leading) == 1:
        return array.reshape(1, *matrix)
    return np.broadcast_to(array, (*batch, *matrix)).reshape(prod(batch), *matrix)


def _as_matrices(totals: NDArray[Any] | None, batch: tuple[int, ...]) -> NDArray[Any] | None:
    return None if totals is None else _flat(np.atleast_2d(totals), batch)


@dataclass
class _Run:
    """A product that is computed block by block."""

    device: Device
    product: Product
    given: Operands
    totals: NDArray[Any] | None
    whole: Shape

    def __post_init__(self) -> None:
        if self.totals is not None and self.totals.shape[-1] != self.whole.columns:
            self.totals = np.broadcast_to(self.totals, (*self.totals.shape[:-1], self.whole.columns))
        features = self.device.features
        self._word = features.bus_width // 8
        self._base = -(-self.device.memory.base // self._word) * self._word
        self._plan = self._planned()
        # What A and B hold; the addresses of all blocks are the same, so that equal parts stay.
        self._held: dict[str, Any] = {}
        self._since, self._done, self._has_shown = time.monotonic(), 0, False

    def _planned(self) -> Plan:
        product, (a, b), features = self.product, self.given, self.device.features
        totals = self.totals
        sizes = Sizes(
            a=a.codes.itemsize,
            b=b.codes.itemsize,
            c=0 if totals is None else totals.itemsize,
            d=np.dtype(dtype_of(product.result)).itemsize,
            c_is_row=totals is not None and totals.shape[-2] == 1,
            a_is_shared=len(a.codes) == 1,
            b_is_shared=len(b.codes) == 1,
            c_is_shared=totals is not None and len(totals) == 1,
            a_transposed=a.is_transposed,
            b_transposed=b.is_transposed,
            word=self._word,
        )
        unit = 1 if product.level == 0 else product.chunk
        available = self.device.memory.size - (self._base - self.device.memory.base)
        advice = "shorter chunks, or level 0, make the parts smaller"
        if not features.has_initial:
            unit, advice = None, "an engine built with initial=False cannot go on from a partial sum"
        return planned(self.whole, sizes, available, features.most, unit, advice)

    def into(self, result: NDArray[Any]) -> int:
        """Compute all blocks; return the OR of their flags."""
        flags = 0
        for block in self._plan:
            flags |= self._compute(block, result)
        if self._has_shown:
            print(file=sys.stderr)
        return flags

    def _compute(self, block: Block, result: NDArray[Any]) -> int:
        begins, ends = block.products.start == 0, block.products.stop == self.whole.products
        at_a, at_b, at_c, at_d, _ = (self._base + place for place in self._plan.places)
        if self._plan.carries and block.products.start // self._plan.block.products % 2:
            at_c, at_d = at_d, at_c  # the total of the block before is C of this one
        command, options = self._sizes_of(block), self._options(ends)
        rows, columns = block.rows, block.columns
        options |= self._put(command, "A", self.given.a, (block.batches, rows, block.products), at_a)
        options |= self._put(command, "B", self.given.b, (block.batches, block.products, columns), at_b)
        if begins:
            options |= self._put_totals(command, block, at_c)
        else:
            self._place(command, "C", at_c, row_stride(len(columns), self._outer_size(), self._word), len(rows))
            options["initial"] = Initial.MATRIX
        fmt = self.product.result if ends else self.product.outer
        size = np.dtype(dtype_of(fmt)).itemsize
        stride = row_stride(len(columns), size, self._word)
        self._place(command, "D", at_d, stride, len(rows))
        command["OPTIONS"] = register_named("OPTIONS").word(**options)
        flags = self.device.run(command, lambda: self._show(block))
        if ends:
            found = self._read(at_d, len(block.batches) * len(rows), stride, dtype_of(fmt))
            part = found[:, : len(columns)].reshape(len(block.batches), len(rows), len(columns))
            result[_slice(block.batches), _slice(rows), _slice(columns)] = part
        self._done += len(block.batches) * len(rows) * len(columns) * len(block.products)
        return flags

    def _outer_size(self) -> int:
        return np.dtype(dtype_of(self.product.outer)).itemsize

    def _sizes_of(self, block: Block) -> dict[str, int]:
        names = ("BATCHES", "M", "N", "K")
        return dict(zip(names, map(len, block), strict=True)) | {"CHUNK": self.product.chunk or 0}

    def _options(self, ends: bool) -> dict[str, int]:
        product = self.product
        options = {
            "format": FORMAT_CODES[product.operand.name],
            "level": product.level,
            "rounding": product.rounding.value,
        }
        if ends and product.converts:
            options |= {"d_converted": 1, "d_format": FORMAT_CODES[product.result.name]}
        return options

    def _put(
        self, command: dict[str, int], name: str, matrices: Matrices, ranges: tuple[range, range, range], at: int
    ) -> dict[str, int]:
        """Write a part of an operand unless it is there; return the options that describe it."""
        batches, *both = ranges
        shared = len(matrices.codes) == 1
        parts = (range(1) if shared else batches, *(reversed(both) if matrices.is_transposed else both))
        array = matrices.codes[tuple(map(_slice, parts))]
        stride = row_stride(array.shape[-1], array.itemsize, self._word)
        if self._held.get(name) != parts:
            self._held.pop(name, None)  # not known while it is written
            self._write(at, array, stride)
            self._held[name] = parts
        self._place(command, name, at, stride, 0 if shared else array.shape[-2])
        small = name.lower()
        return {f"{small}_transposed": int(matrices.is_transposed), f"{small}_float32": int(matrices.is_float32)}

    def _put_totals(self, command: dict[str, int], block: Block, at: int) -> dict[str, int]:
        if self.totals is None:
            return {}
        shared, is_row = len(self.totals) == 1, self.totals.shape[-2] == 1
        batches, rows = range(1) if shared else block.batches, range(1) if is_row else block.rows
        array = self.totals[_slice(batches), _slice(rows), _slice(block.columns)]
        stride = row_stride(array.shape[-1], array.itemsize, self._word)
        self._write(at, array, stride)
        self._place(command, "C", at, stride, 0 if shared else len(rows))
        return {"initial": Initial.ROW if is_row else Initial.MATRIX}

    def _place(self, command: dict[str, int], name: str, at: int, stride: int, rows: int) -> None:
        """Say where a matrix lies; the next of its batch lies `rows` rows further on."""
        command |= {
            f"{name}_ADDRESS": at & _LOW,
            f"{name}_ADDRESS_HIGH": at >> _WORD_BITS,
            f"{name}_ROW_STRIDE": stride,
            f"{name}_BATCH_STRIDE": rows * stride if command["BATCHES"] > 1 else 0,
        }

    def _write(self, at: int, array: NDArray[Any], stride: int) -> None:
        filled = np.zeros((*array.shape[:-1], stride // array.itemsize), array.dtype.newbyteorder("<"))
        filled[..., : array.shape[-1]] = array
        if filled.size:
            self.device.transport.write_memory(at, filled.reshape(-1).view(np.uint8).data)

    def _read(self, at: int, rows: int, stride: int, dtype: Any) -> NDArray[Any]:
        content = self.device.transport.read_memory(at, rows * stride)
        return np.frombuffer(content, np.dtype(dtype).newbyteorder("<")).reshape(rows, -1)

    def _show(self, block: Block) -> None:
        """Show on a terminal how far a long product is."""
        if time.monotonic() - self._since < _PATIENCE or not sys.stderr.isatty():
            return
        self._has_shown = True
        share = 100 * self._done // max(prod(self.whole), 1)
        print(
            f"\rproduct of {self.whole.rows} x {self.whole.products} x {self.whole.columns}: {share} % of it done, "
            f"rows {block.rows.start} to {block.rows.stop - 1} run",
            end="",
            file=sys.stderr,
            flush=True,
        )


def _slice(part: range) -> slice:
    return slice(part.start, part.stop)
