"""Random commands for the engine, the memory that they find, and the memory that they must leave."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import golden
from golden.formats import FP32, FloatFormat
from golden.rounding import Rounding
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.registers import FORMAT_CODES, Initial, register_named

__all__ = ["Command", "Matrix", "changed", "memory_with", "random_command", "words_of"]


@dataclass(frozen=True)
class Matrix:
    """The place of a matrix in memory: stored rows x columns in each of `batches` matrices."""

    address: int
    rows: int
    columns: int
    size: int
    row_stride: int
    batch_stride: int
    batches: int

    def bytes_of(self) -> np.ndarray:
        """The address of every byte: (batches, rows, columns * size)."""
        start = self.address + np.arange(self.batches)[:, None, None] * self.batch_stride
        return start + np.arange(self.rows)[:, None] * self.row_stride + np.arange(self.columns * self.size)

    def get(self, memory: np.ndarray) -> np.ndarray:
        """The codes: (batches, rows, columns)."""
        raw = memory[self.bytes_of()]
        return np.ascontiguousarray(raw).view(f"<u{self.size}").reshape(self.batches, self.rows, self.columns)

    def put(self, memory: np.ndarray, codes: np.ndarray) -> None:
        """Write codes."""
        whole = np.ascontiguousarray(codes.astype(f"<u{self.size}")).view(np.uint8)
        memory[self.bytes_of()] = whole.reshape(self.batches, self.rows, self.columns * self.size)

    @property
    def end(self) -> int:
        """The address behind its last byte; its own address if it has none."""
        if not self.batches * self.rows * self.columns:
            return self.address
        return int(self.bytes_of().max()) + 1


@dataclass(frozen=True)
class Command:
    """A command, as its registers describe it."""

    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    d: Matrix
    format: FloatFormat
    level: int
    chunk: int = 0
    rounding: Rounding = Rounding.NEAREST_EVEN
    a_transposed: bool = False
    b_transposed: bool = False
    d_format: FloatFormat | None = None
    tag: int = 0
    #: The initial values, a single row or a matrix; None without them.
    c: Matrix | None = None
    initial: Initial = Initial.NONE
    words: dict[str, int] = field(default_factory=dict)

    @property
    def outer(self) -> FloatFormat:
        """The format of totals, and of C."""
        return FP32 if self.level != 2 else self.format

    @property
    def read(self) -> list[Matrix]:
        """The matrices that the engine reads."""
        return [self.a, self.b, *([self.c] if self.c is not None else [])]

    @property
    def batches(self) -> int:
        return self.d.batches

    def registers(self) -> dict[str, int]:
        """The words to write."""
        options: dict[str, Any] = {
            "format": FORMAT_CODES[str(self.format)],
            "level": self.level,
            "rounding": self.rounding.value,
            "a_transposed": int(self.a_transposed),
            "b_transposed": int(self.b_transposed),
            "a_float32": int(self.a.size == 4),
            "b_float32": int(self.b.size == 4),
            "initial": self.initial,
        }
        if self.d_format is not None:
            options |= {"d_converted": 1, "d_format": FORMAT_CODES[str(self.d_format)]}
        words = {"M": self.m, "N": self.n, "K": self.k, "BATCHES": self.batches, "CHUNK": self.chunk}
        for name, matrix in (("A", self.a), ("B", self.b), ("C", self.c), ("D", self.d)):
            if matrix is None:
                continue
            words |= {
                f"{name}_ADDRESS": matrix.address & 0xFFFFFFFF,
                f"{name}_ADDRESS_HIGH": matrix.address >> 32,
                f"{name}_ROW_STRIDE": matrix.row_stride,
                f"{name}_BATCH_STRIDE": matrix.batch_stride,
            }
        return words | {"OPTIONS": register_named("OPTIONS").word(**options)} | self.words

    def run(self, memory: np.ndarray, subnormals: str = "keep") -> int:
        """Write D into the memory as golden computes it, and return the flags."""
        a, b = self.a.get(memory), self.b.get(memory)
        if self.a_transposed:
            a = a.transpose(0, 2, 1)
        if self.b_transposed:
            b = b.transpose(0, 2, 1)
        a, b = self._narrow(a), self._narrow(b)
        how: dict[str, Any] = {
            "operand": self.format, "level": self.level, "chunk": self.chunk or None, "rounding": self.rounding,
            "subnormals": subnormals, "out": self.d_format,
        }  # fmt: skip
        if self.c is not None:
            how["initial"] = self.c.get(memory)
        left, right = np.broadcast_arrays(a[:, :, None, :], b.transpose(0, 2, 1)[:, None, :, :])
        codes, flags = golden.dot(left, right, return_flags=True, **how)
        assert (golden.matmul(a, b, **how) == codes).all()
        self.d.put(memory, codes)
        return int(np.bitwise_or.reduce(flags, axis=None)) if flags.size else 0

    def _narrow(self, codes: np.ndarray) -> np.ndarray:
        return golden.convert(codes, FP32, self.format) if codes.dtype.itemsize == 4 else codes

    def allowed_words(self, width: int) -> set[int]:
        """Addresses of the words of `width` bytes that may be read."""
        return set().union(*(words_of(matrix, width) for matrix in self.read))


def words_of(matrix: Matrix, width: int) -> set[int]:
    """Return the addresses of the words of `width` bytes that hold a matrix."""
    return set((matrix.bytes_of() // width * width).ravel().tolist())


def memory_with(command: Command, memory: np.ndarray, rng: np.random.Generator) -> None:
    """Fill A, B and C with values of every kind: near one, of the whole range, and special codes."""
    for matrix in command.read:
        fmt = command.outer if matrix is command.c else FP32 if matrix.size == 4 else command.format
        shape = (matrix.batches, matrix.rows, matrix.columns)
        usual = golden.encode(rng.normal(size=shape), fmt)
        any_code = rng.integers(0, 1 << fmt.width, shape)
        special = rng.choice(
            [fmt.inf, fmt.nan, fmt.inf | 1, 0, 1, fmt.max_finite, 1 << fmt.width - 1, fmt.min_normal], shape
        )
        kind = rng.random(shape)
        # Many values of C may be special: each of them reaches only one result.
        share = rng.choice([0.0, 0.02, 0.3] if matrix is not command.c else [0.1, 0.5])
        codes = np.where(kind < share, any_code, np.where(kind < 1.2 * share, special, usual))
        matrix.put(memory, codes)


def random_command(
    rng: np.random.Generator, parameters: EngineParameters, memory_size: int, *, most: int = 24, tag: int = 0,
    **given: Any,
) -> Command:  # fmt: skip
    """Return a command whose matrices lie at random places of the memory, D apart from A, B and C."""
    while True:
        command = _attempt(rng, parameters, memory_size, most, tag, given)
        if command is not None:
            return command


def _attempt(
    rng: np.random.Generator, parameters: EngineParameters, memory_size: int, most: int, tag: int, given: dict[str, Any]
) -> Command | None:
    def choose(name: str, *values: Any) -> Any:
        return given[name] if name in given else values[rng.integers(len(values))]

    small = lambda: int(rng.integers(1, most + 1))  # noqa: E731
    m, n = (choose(name, small(), small(), 1, 2, 0 if rng.random() < 0.3 else small()) for name in "mn")
    k = choose("k", small(), small(), 3 * small(), 1, 0 if rng.random() < 0.5 else small())
    batches = choose("batches", 1, 1, 2, 3, 0 if rng.random() < 0.2 else 1)
    fmt = choose("format", *parameters.operands)
    level = choose("level", *parameters.levels)
    wide = (False, False, True) if parameters.conversions else (False,)
    a_float32, b_float32 = choose("a_float32", *wide), choose("b_float32", *wide)
    outer = FP32 if level != 2 else fmt
    d_format = choose("d_format", None, None, *parameters.result_formats)
    transposed = [choose(name, False, True) for name in ("a_transposed", "b_transposed")]
    initial = Initial(choose("initial", *(Initial if parameters.initial else (Initial.NONE,))))
    places = []
    for rows, columns, size, is_result in (
        ((k, m) if transposed[0] else (m, k)) + (4 if a_float32 else 2, False),
        ((n, k) if transposed[1] else (k, n)) + (4 if b_float32 else 2, False),
        (m if initial is not Initial.ROW else min(m, 1), n, outer.width // 8, False),
        (m, n, (d_format or outer).width // 8, True),
    ):
        gap = choose("gap", 0, 0, 1, int(rng.integers(0, 9)))
        row_stride = (columns + gap) * size
        batch_stride = (rows * row_stride) + size * choose("batch_gap", 0, int(rng.integers(0, 7)))
        if not is_result and rng.random() < 0.2:
            batch_stride = 0  # the same matrix in all products of the batch
        if rng.random() < 0.15:  # the matrices of a batch side by side
            batch_stride, row_stride = row_stride, row_stride * max(1, batches)
        span = batch_stride * max(0, batches - 1) + row_stride * rows + size
        if span >= memory_size:
            return None
        address = int(rng.integers(0, (memory_size - span) // size)) * size
        if rng.random() < 0.3:
            address = address // 4096 * 4096 + int(rng.integers(1, 16)) * 256  # often across a page
        # Strides without a use may be anything.
        row_stride = row_stride if rows > 1 else int(rng.integers(1 << 32))
        batch_stride = batch_stride if batches > 1 else int(rng.integers(1 << 32))
        matrix = Matrix(address, rows, columns, size, row_stride, batch_stride, batches)
        if matrix.end > memory_size:
            return None
        places.append(matrix)
    a, b, c, d = places
    for other in (*((a, b) if k else ()), *((c,) if initial else ())):
        if d.address < other.end and other.address < d.end:
            return None
    chunk = choose("chunk", 0, 1, 3, 32 if parameters.chunk_bits > 5 else 0)
    rounding = choose("rounding", *parameters.roundings)
    return Command(
        m, n, k, a, b, d, fmt, level, chunk, rounding, bool(transposed[0]), bool(transposed[1]), d_format, tag,
        c if initial else None, initial,
    )  # fmt: skip


def changed(command: Command, **words: int) -> Command:
    """Return a command with other words in some registers."""
    return replace(command, words=command.words | words)
