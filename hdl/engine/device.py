"""The engine's registers, by the table of `hdl.matrix_engine.registers`: properties, commands and results."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any

from golden.rounding import Rounding
from hdl.engine.transport import Region, Transport, TransportError
from hdl.matrix_engine.registers import (
    FORMAT_CODES,
    IDENTITY,
    REGISTERS,
    VERSION,
    EngineError,
    Register,
    register_named,
)

__all__ = ["CommandFailed", "Device", "EngineStuck", "Features", "describe"]

_CAUSES = {
    EngineError.FORMAT: "operand, out: the engine was not built for this format",
    EngineError.LEVEL: "level: the engine was not built for this level",
    EngineError.ROUNDING: "rounding: the engine was not built for this mode",
    EngineError.CHUNK: "chunk: the length has more bits than the engine takes",
    EngineError.SIZE: "a, b: a size has more bits than the engine takes",
    EngineError.INITIAL: "initial: the engine takes none",
    EngineError.ALIGNMENT: "an address or a stride is no multiple of its element size",
    EngineError.STRIDE: "rows or matrices of a batch overlap each other",
    EngineError.RANGE: "a matrix ends beyond the engine's addresses",
    EngineError.OVERLAP: "the result overlaps an operand",
    EngineError.READ: "the bus answered a read with an error: is the memory where the driver was told?",
    EngineError.WRITE: "the bus answered a write with an error: is the memory where the driver was told?",
    EngineError.ABORTED: "it was aborted",
}


class CommandFailed(RuntimeError):
    """The engine refused a product, or ended it early.

    Attributes
    ----------
    error : EngineError
        The code that the engine gave.
    """

    def __init__(self, error: int) -> None:
        known = error in set(EngineError)
        self.error: EngineError | int = EngineError(error) if known else error
        cause = _CAUSES.get(EngineError(error), "") if known else "a code that this driver does not know"
        name = EngineError(error).name if known else "unknown"
        super().__init__(f"the engine ended the product with error {error} ({name}): {cause}")


class EngineStuck(RuntimeError):
    """The engine makes no progress."""


#: Between two looks at ``RESULT``, in seconds; an interrupt ends it earlier.
_POLL = 0.05
_COMMAND = tuple(each for each in REGISTERS if each.is_command)
#: Cycles that a result takes at most if nothing is multiplied, some times over; where counters wrap around.
_CYCLES, _WRAP = 100, 1 << 32
_TAGS = 1 << register_named("SUBMIT").field("tag").width


@dataclass(frozen=True)
class Features:
    """What an engine was built for.

    Parameters
    ----------
    rows, columns : int
        Lanes.
    tiles : int
        Tiles that take turns.
    bus_width : int
        Bits of the memory bus.
    operands, results : tuple of str
        Names of the operand formats, and of formats that results can be converted into.
    levels : tuple of int
    roundings : tuple of Rounding
    has_float32 : bool
        float32 operands are rounded on the way in.
    has_initial, has_flags, flushes : bool
        C may be added; the flags of results are collected; subnormals become zeros.
    chunk_bits, size_bits, address_bits : int
        Bits of a chunk length, of a size, of an address.
    queue : int
        Commands that wait besides the one that runs.
    """

    rows: int
    columns: int
    tiles: int
    bus_width: int
    operands: tuple[str, ...]
    results: tuple[str, ...]
    levels: tuple[int, ...]
    roundings: tuple[Rounding, ...]
    has_float32: bool
    has_initial: bool
    has_flags: bool
    flushes: bool
    chunk_bits: int
    size_bits: int
    address_bits: int
    queue: int

    @property
    def lanes(self) -> int:
        """Products in a beat."""
        return self.rows * self.columns

    @property
    def most(self) -> int:
        """The largest M, N, K and number of batches."""
        return (1 << self.size_bits) - 1


def describe(read: Callable[[Register], dict[str, int]]) -> Features:
    """Return the features that the registers tell.

    Parameters
    ----------
    read : callable
        Returns the fields of a register.

    Raises
    ------
    TransportError
        If something else answers, or an engine with another table of registers.
    """
    found = read(register_named("ID"))
    if found["identity"] != IDENTITY:
        raise TransportError(
            f"ID: got {found['identity']:#06x} in its upper half, must be {IDENTITY:#06x}: no matrix engine is here"
        )
    if found["version"] != VERSION:
        raise TransportError(
            f"ID: got version {found['version']} of the registers, must be {VERSION}: this driver and the engine differ"
        )
    shape, formats = read(register_named("SHAPE")), read(register_named("FORMATS"))
    features, limits = read(register_named("FEATURES")), read(register_named("LIMITS"))

    def names(bits: int) -> tuple[str, ...]:
        return tuple(name for name, code in FORMAT_CODES.items() if bits >> code & 1)

    return Features(
        rows=shape["rows"],
        columns=shape["columns"],
        tiles=shape["tiles"],
        bus_width=8 * shape["bus_bytes"],
        operands=tuple(name for name in names(formats["operands"]) if name != "float32"),
        results=names(formats["results"]),
        levels=tuple(level for level in range(3) if features["levels"] >> level & 1),
        roundings=tuple(mode for mode in Rounding if features["roundings"] >> mode.value & 1),
        has_float32="float32" in names(formats["operands"]),
        has_initial=bool(features["initial"]),
        has_flags=bool(features["flags"]),
        flushes=bool(features["subnormals_flush"]),
        chunk_bits=limits["chunk_bits"],
        size_bits=limits["size_bits"],
        address_bits=limits["address_bits"],
        queue=features["queue"],
    )


@dataclass
class Device:
    """An engine behind a transport.

    Parameters
    ----------
    transport : Transport
    patience : float
        Seconds without a product after which a command is given up. One that only writes initial values has more time,
        as many cycles as its results need.

    Attributes
    ----------
    features : Features
    memory : Region
        The transport's, as far as the engine's addresses reach.

    Raises
    ------
    TypeError, ValueError
        If `patience` is no number above 0, or the engine's addresses reach none of the memory.
    TransportError
        If no engine answers.
    """

    transport: Transport
    patience: float = 10.0
    features: Features = field(init=False)
    memory: Region = field(init=False)
    _written: dict[str, int] = field(default_factory=dict)
    # Drivers that count from the same tag would take each other's results.
    _tag: int = field(default_factory=lambda: secrets.randbelow(_TAGS))
    _is_unsure: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.patience, int | float) or isinstance(self.patience, bool):
            raise TypeError(f"patience: got {self.patience!r}, must be a number of seconds above 0")
        if not self.patience > 0:
            raise ValueError(f"patience: got {self.patience}, must be above 0 seconds")
        self.features = describe(self.fields)
        (base, size), end = self.transport.memory, 1 << self.features.address_bits
        if base >= end:
            raise ValueError(f"memory: got address {base:#x}, must be below {end:#x}, as the engine is built")
        self.memory = Region(base, min(size, end - base))  # of which the engine reaches no more
        # Whoever had the engine before may have left results.
        self.write("CONTROL", reset=1)
        self._until_idle()
        self.write("INTERRUPT", enable=1)

    def fields(self, register: Register | str) -> dict[str, int]:
        """Return the fields of a register."""
        known = register_named(register) if isinstance(register, str) else register
        return known.fields_of(self.transport.read(known.address))

    def value(self, name: str) -> int:
        """Return a register of one field."""
        return self.fields(name)["value"]

    def write(self, name: str, **fields: int) -> None:
        """Write a register, with 0 in the fields that are not given."""
        register = register_named(name)
        self.transport.write(register.address, register.word(**fields))

    def run(self, command: dict[str, int], note: Callable[[], Any] = lambda: None) -> int:
        """Run one command; return the OR of its flags.

        Parameters
        ----------
        command : dict of str to int
            Words of the command registers by name; those that are left out are 0.
        note : callable
            Called again and again while the command runs.

        Raises
        ------
        CommandFailed
            If the engine refuses it, or a bus gives an error.
        EngineStuck
            If it makes no progress.
        """
        if self._is_unsure:  # the last command ended without an answer, and so did the reset after it
            self._stop()
        self._is_unsure = True
        try:
            self._submit(command)
            sizes = (command.get(name, 0) for name in ("BATCHES", "M", "N"))
            result = self._result(note, 0 if command.get("K") else _CYCLES * prod(sizes))
        except BaseException:  # Ctrl-C, too: the engine must not write into memory that others take
            with suppress(TransportError, EngineStuck):  # the next command tries it again
                self._stop()
            raise
        if result["tag"] != self._tag:
            raise TransportError(f"RESULT: got tag {result['tag']}, must be {self._tag}: somebody else uses the engine")
        self._is_unsure = False
        if result["error"]:
            raise CommandFailed(result["error"])
        return result["flags"]

    def _submit(self, command: dict[str, int]) -> None:
        """Write the registers that differ from those of the last command, and submit."""
        for register in _COMMAND:
            word = command.get(register.name, 0)
            if word >> 32:
                raise ValueError(f"a, b, initial: {register.name} would be {word:#x}, must fit the register's 32 bits")
            if self._written.pop(register.name, None) != word:  # unknown until the write is answered
                self.transport.write(register.address, word)
            self._written[register.name] = word
        self._tag = (self._tag + 1) % _TAGS
        self.write("SUBMIT", tag=self._tag)

    def _result(self, note: Callable[[], Any], without: int) -> dict[str, int]:
        """Wait for the result; remove it. The first so many cycles are progress without products."""
        seen, since = (-1, 0), time.monotonic()
        passed, last = 0, self.value("CYCLES") if without else 0
        while True:
            result = self.fields("RESULT")
            if result["valid"]:
                self.transport.write(register_named("RESULT").address, 0)
                return result
            if without:
                now = self.value("CYCLES")
                passed, last = passed + (now - last) % _WRAP, now
            progress = self.value("PRODUCTS"), min(passed, without)
            if progress != seen:
                seen, since = progress, time.monotonic()
            elif time.monotonic() - since > self.patience:
                raise EngineStuck(
                    f"no product in {self.patience:g} s; STATUS: {self.fields('STATUS')}; is its memory there?"
                )
            note()
            self.transport.wait(_POLL)

    def _stop(self) -> None:
        """End all commands, and forget their results."""
        self._written.clear()
        self.write("CONTROL", reset=1)
        self._until_idle()
        self.write("INTERRUPT", enable=1)
        self._is_unsure = False

    def _until_idle(self) -> None:
        begin = time.monotonic()
        while self.fields("STATUS")["busy"]:
            if time.monotonic() - begin > self.patience:
                raise EngineStuck(f"STATUS: busy for {self.patience:g} s after a reset: does its bus answer?")
            self.transport.wait(_POLL)
