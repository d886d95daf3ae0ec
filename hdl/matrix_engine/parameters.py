"""The parameters of a matrix engine, checked when it is constructed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from golden.formats import FP32, FloatFormat, format_named
from golden.rounding import Rounding
from hdl.definitions import Formats, PowerOfTwo, Switch, Whole
from hdl.matrix.parameters import MatrixParameters
from hdl.matrix_engine.registers import FORMAT_CODES, register_named

__all__ = ["CODE_WIDTH", "EngineParameters", "code_of"]

#: Bits of an operand in block RAM.
CODE_WIDTH = 16
_MOST = 64
#: The greatest power of two that ``SHAPE.tiles`` holds.
_MOST_TILES = 1 << (register_named("SHAPE").field("tiles").width - 1)
_MATRIX = MatrixParameters.definitions()


def code_of(fmt: FloatFormat) -> int | None:
    """Return the number of a format in the registers, None if it has none."""
    return next((code for name, code in FORMAT_CODES.items() if format_named(name) == fmt), None)


@dataclass(frozen=True)
class _Named(Formats):
    """Operand formats that the registers name."""

    def check(self, name: str, value: Any, given: Any) -> tuple[FloatFormat, ...]:
        formats = super().check(name, value, given)
        for fmt in formats:
            if fmt.width != CODE_WIDTH or code_of(fmt) is None:
                names = ", ".join(name for name in FORMAT_CODES if format_named(name).width == CODE_WIDTH)
                raise ValueError(f"{name}: got {fmt}, must be some of {names}: the registers name no others")
        return formats


@dataclass(frozen=True, kw_only=True)
class EngineParameters(MatrixParameters):
    """Parameters of `hdl.MatrixEngine`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    rows: Annotated[int, PowerOfTwo("rows of lanes", 1, _MOST)] = 4
    columns: Annotated[int, PowerOfTwo("columns of lanes", 1, _MOST)] = 4
    operands: Annotated[Sequence[FloatFormat], _Named(**vars(_MATRIX["operands"]))] = MatrixParameters.operands
    registers: Annotated[int, replace(_MATRIX["registers"], most=_MOST_TILES)] = MatrixParameters.registers
    bus_width: Annotated[int, PowerOfTwo("data bits of the AXI4 bus", 64, 128)] = 64
    address_bits: Annotated[int, Whole("bits of a byte address in memory", 16, 64)] = 32
    size_bits: Annotated[int, Whole("bits of M, N, K and of the number of batches", 4, 31)] = 20
    depth: Annotated[int, PowerOfTwo("products of an element in a slice: block RAM holds two slices", 8, 1024)] = 64
    reads: Annotated[int, PowerOfTwo("bursts that may be read at once", 2, 64)] = 32
    initial: Annotated[bool, Switch("path of initial values, C in D = C + A B,")] = True
    conversions: Annotated[bool, Switch("converters of float32 operands, and of results to another format")] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.widened:
            raise ValueError(f"inner: got {self.widened}, must be None: the engine takes operands of 16 bits")
        if self.line_most > 64 * self.group:
            raise ValueError(
                f"depth: got {self.depth}, with blocks of {self.block_rows} x {self.block_columns}: none must be above "
                f"{64 * self.group} with a bus of {self.bus_width} bits, whose bursts have at most 256 words"
            )

        if self.initial and self.depth < 2 * self.block_rows:
            raise ValueError(
                f"depth: got {self.depth}, with blocks of {self.block_rows} rows: must be at least "
                f"{2 * self.block_rows} with initial values, of which a slice holds all rows of a block"
            )

    @property
    def array(self) -> dict[str, Any]:
        """The arguments of the `hdl.MatrixMac` within."""
        return {name: getattr(self, name) for name in _MATRIX}

    @property
    def modes(self) -> tuple[int, ...]:
        """The codes of the rounding modes."""
        modes: tuple[Rounding, ...] = self.roundings  # type: ignore[assignment]  # checked
        return tuple(mode.value for mode in modes)

    @property
    def bus_bytes(self) -> int:
        """Bytes of a word on the AXI4 bus."""
        return self.bus_width // 8

    @property
    def group(self) -> int:
        """Codes in a bus word: they enter block RAM together."""
        return self.bus_width // CODE_WIDTH

    @property
    def tile_rows(self) -> int:
        """Tiles of a block, one below the other."""
        return 1 << (self.register_width // 2)

    @property
    def tile_columns(self) -> int:
        """Tiles of a block, side by side."""
        return self.registers // self.tile_rows

    @property
    def block_rows(self) -> int:
        """Rows of D that are computed at once."""
        return self.rows * self.tile_rows

    @property
    def block_columns(self) -> int:
        """Columns of D that are computed at once."""
        return self.columns * self.tile_columns

    @property
    def line_most(self) -> int:
        """Most elements that lie side by side in memory and are read together."""
        return max(self.depth, self.block_rows, self.block_columns)

    @property
    def result_formats(self) -> tuple[FloatFormat, ...]:
        """The formats that results can be converted to."""
        return (*self.operands, FP32) if self.conversions else ()

    def of(self, **changes: Any) -> EngineParameters:
        """Return these parameters with changes."""
        return replace(self, **changes)
