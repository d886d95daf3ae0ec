"""The Verilog of the multiply-accumulate unit as machine code, for the many millions of products of a training run."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat
from hdl import MultiplyAccumulate
from hdl.simulation.compiling import headers
from hdl.verilog import to_verilog
from sim.counts import COUNTERS
from tools.compiled import library
from tools.cxxrtl import translate

__all__ = ["Netlist"]

_DRIVER = Path(__file__).with_name("driver.cpp")
_TOP = "mac"
#: The Verilog and its translation stay here for inspection.
FOLDER = Path(__file__).resolve().parents[2] / "build" / "replay"


class Netlist:
    """Compute matrix products with the Verilog of a unit, one product after another through its streams.

    The Verilog, as `make verilog` writes it, is read back by Yosys and translated into C++ (CXXRTL): about 800,000
    cycles a second.

    Parameters
    ----------
    unit : MultiplyAccumulate
        Of at most 16 bits of operand; its chunk length is that of each product.

    Raises
    ------
    tools.errors.ToolMissing, tools.errors.ToolFailed
        If Yosys is missing or fails.
    RuntimeError
        If there is no C++ compiler, or it fails.
    """

    def __init__(self, unit: MultiplyAccumulate) -> None:
        self.unit = unit
        source = self._constants() + translate(to_verilog(unit, _TOP), _TOP, FOLDER) + _DRIVER.read_text("utf-8")
        self._stream = ctypes.CDLL(str(library(source, headers()))).stream
        array = np.ctypeslib.ndpointer
        self._stream.argtypes = [
            *[array(np.uint16, flags="C_CONTIGUOUS")] * 2, *[ctypes.c_size_t] * 3, *[ctypes.c_uint] * 3,
            array(np.uint32, flags="C_CONTIGUOUS"), ctypes.c_size_t,
            *(array(kind, flags="C_CONTIGUOUS") for kind in (np.uint32, np.uint8, np.uint32)),
        ]  # fmt: skip
        self._stream.restype = ctypes.c_uint64

    def _constants(self) -> str:
        """Return the layout of the payloads as C++ constants for the driver."""
        beat, answer = self.unit.i.payload.shape(), self.unit.o.payload.shape()
        offsets: dict[str, int] = {name.upper(): field.offset for name, field in beat}
        offsets |= {name.upper(): answer[name].offset for name in ("result", "flags", "error")}
        offsets["ANSWER_REGISTER"] = answer["register"].offset
        offsets["REGISTER_BITS"] = beat["register"].width
        offsets["MOST_SILENT_CYCLES"] = 1000
        lines = [f"static const unsigned {name} = {value};" for name, value in offsets.items()]
        lines += [f"#define TOP cxxrtl_design::p_{_TOP}", f"#define COUNTERS {len(COUNTERS) * self.unit.counters}"]
        return "\n".join(["#include <cstdint>", *lines, ""])

    def matmul(
        self, a: NDArray[np.uint16], b: NDArray[np.uint16], *, operand: FloatFormat, level: int, chunk: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8], int]:
        """Multiply as `counted_matmul` does, without the counts."""
        codes, flags, cycles, _ = self.counted_matmul(a, b, operand=operand, level=level, chunk=chunk)
        return codes, flags, cycles

    def counted_matmul(
        self, a: NDArray[np.uint16], b: NDArray[np.uint16], *, operand: FloatFormat, level: int, chunk: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint8], int, list[int]]:
        """Multiply.

        Parameters
        ----------
        a, b : uint16 arrays of shapes (M, K) and (K, N), K at least 1
            Codes in `operand`.
        operand : FloatFormat
            One of the unit's.
        level : int
            One of the unit's.
        chunk : int
            Products in a chunk.

        Returns
        -------
        codes, flags : uint32, uint8 arrays of shape (M, N)
            Codes in the outer format of the level.
        cycles : int
        counts : list of int
            Values of the unit's counters in the order of `sim.counts.COUNTERS`; zeros without counters.

        Raises
        ------
        RuntimeError
            If the unit stops answering, names a register to which nothing was sent, or reports an error.
        """
        (m, k), (_, n) = a.shape, b.shape
        codes, flags, counts = (
            np.zeros((m, n), np.uint32),
            np.zeros((m, n), np.uint8),
            np.zeros(len(COUNTERS), np.uint32),
        )
        # fp32 totals take even-aligned pairs of registers.
        registers = np.arange(0, self.unit.registers, 1 if level == 2 else 2, dtype=np.uint32)
        cycles = self._stream(
            np.ascontiguousarray(a), np.ascontiguousarray(b), m, k, n, self.unit.operands.index(operand), level, chunk,
            registers, registers.size, codes, flags, counts,
        )  # fmt: skip
        if not cycles and codes.size:
            raise RuntimeError(f"the unit does not answer {m} × {k} × {n} products of {operand} at level {level}")
        return codes, flags, cycles, counts.tolist()
