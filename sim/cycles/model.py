"""The Verilog of a unit and its shell as machine code, which runs scenarios."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdl.simulation.compiling import OPTIONS, headers
from sim.bench.episode import PATIENCE, SURPLUS, Ran
from sim.bench.shell import TOP
from sim.counts import COUNTERS
from sim.cycles.registers import never_seen, registers_of
from sim.fields import from_limbs, to_limbs
from sim.port import Port
from sim.scenario import Scenario
from tools.compiled import library
from tools.cxxrtl import translate

__all__ = ["Model"]

_DRIVER = Path(__file__).with_name("driver.cpp")
_WORD_BITS = 32
_NOTHING = (1 << 64) - 1
_POINTERS = ("payloads", "chunks", "gaps", "pauses", "offers", "takes", "clears")
_NUMBERS = (
    "next", "stop", "offer_count", "take_count", "clear_count", "expected", "cut", "patience", "surplus", "on_sight",
)  # fmt: skip
_RESULTS = (
    "answer_room", "answer_count", "accepted", "first_cycle", "last_cycle", "fell", "changed", "blocked", "answered",
    "met_clears",
)  # fmt: skip


class _Episode(ctypes.Structure):
    """As in the driver."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_uint64) for name in _NUMBERS),
        ("answers", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in _RESULTS),
    )


class Model:
    """A unit in its shell (`sim.bench.shell`), driven as `sim.bench` drives it in a simulator; no bit is unknown.

    Yosys reads the Verilog back and translates it into C++ (CXXRTL).

    Parameters
    ----------
    sources : sequence of Path
        Verilog of the unit and of the shell.
    port : Port
    folder : Path
        Working folder of Yosys.

    Attributes
    ----------
    registers : list of Register

    Raises
    ------
    tools.errors.ToolMissing, tools.errors.ToolFailed
        If Yosys is missing or fails.
    RuntimeError
        If there is no C++ compiler, or it fails.
    """

    def __init__(self, sources: Sequence[Path], port: Port, folder: Path) -> None:
        self._port = port
        self._answer_words = -(-port.answer.width // _WORD_BITS)
        source = translate("\n".join(each.read_text(encoding="utf-8") for each in sources), TOP, folder)
        self.registers = registers_of(source, TOP)
        complete = source + self._constants() + _DRIVER.read_text("utf-8")
        self._library = ctypes.CDLL(str(library(complete, headers(), OPTIONS)))
        self._library.create.restype = ctypes.c_void_p
        self._library.seen.restype = ctypes.POINTER(ctypes.c_uint32)
        for function in (self._library.destroy, self._library.reset, self._library.run):
            function.restype = None

    def _constants(self) -> str:
        """Return the driver's constants for the unit: the widths of its ports, and its registers."""
        watch, read, at = [], [], 0
        for register in self.registers:
            if register.depth:
                each = f"note(top.{register.member}.data[word], {at});"
                read.append(f"for (size_t word = 0; word < {register.depth}; word++) {each}")
            else:
                watch.append(f"note(top.{register.member}.curr, {at});")
            at += register.words
        lines = [
            "#include <cstdint>",
            f"#define TOP cxxrtl_design::p_{TOP}",
            f"#define WATCHED {max(at, 1)}",
            f"#define WATCH {' '.join(watch)}",
            f"#define READ {' '.join(read)}",
            f"#define CHUNKS {int(self._port.chunk_bits > 0)}",
            f"#define COUNTERS {len(COUNTERS) if self._port.counters == 'ports' else 0}",
            f"#define ANSWER_WORDS {self._answer_words}",
            f"#define PAYLOAD_STRIDE {2 * -(-self._port.request.width // 64)}",
        ]
        return "\n".join(["", *lines, ""])

    def run(self, scenario: Scenario) -> list[Ran]:
        """Run a scenario from power-up; return the record of each of its episodes."""
        bench = ctypes.c_void_p(self._library.create())
        try:
            self._library.reset(bench, 3)
            ran = []
            payloads = np.ascontiguousarray(_limbs(scenario.payloads, self._port.request.width)).view(np.uint32)
            for at in range(len(scenario.episodes)):
                ran.append(self._episode(bench, scenario, payloads, at))
                self._library.reset(bench, 1)
        finally:
            self._library.destroy(bench)
        return ran

    def never_seen(self) -> Mapping[str, tuple[list[int], list[int]]]:
        """Return the bits of registers that were never 0, and those that were never 1, in all runs so far."""
        count = sum(register.words for register in self.registers)
        zeros, ones = (np.ctypeslib.as_array(self._library.seen(value), (max(count, 1),)) for value in (0, 1))
        return never_seen(self.registers, zeros, ones)

    def _episode(self, bench: ctypes.c_void_p, scenario: Scenario, payloads: NDArray[np.uint32], at: int) -> Ran:
        span, expected, cut = scenario.payload_span(at), scenario.answer_span(at), int(scenario.episodes[at][2])
        room = len(scenario.answers) + 64
        answers = np.zeros((room, 2 * -(-self._port.answer.width // 64)), np.uint32)
        words = np.zeros((room, self._answer_words), np.uint32)
        counts = np.zeros(len(COUNTERS), np.uint64)
        clears = np.zeros(1, np.bool_) if scenario.clears is None else scenario.clears
        # In a list, so that they live as long as the call.
        arrays = [
            payloads,
            _words(scenario.chunks), _words(scenario.chunks if scenario.gaps is None else scenario.gaps),
            _words(scenario.pauses),
            scenario.offers.astype(np.uint8), scenario.takes.astype(np.uint8), clears.astype(np.uint8),
        ]  # fmt: skip
        pointers = dict(zip(_POINTERS, (None if a is None else a.ctypes.data for a in arrays), strict=True))
        episode = _Episode(
            **pointers, next=span.start, stop=span.stop, offer_count=len(scenario.offers),
            take_count=len(scenario.takes), clear_count=len(clears), expected=len(expected), cut=cut,
            patience=PATIENCE, surplus=SURPLUS, on_sight=scenario.on_sight,
            answers=words.ctypes.data, counts=counts.ctypes.data, answer_room=room,
        )  # fmt: skip
        self._library.run(bench, ctypes.byref(episode))
        came = min(episode.answer_count, room)
        answers[:came, : self._answer_words] = words[:came]
        limbs = answers[:came].view(np.uint64)
        codes = limbs[:, 0] if self._port.answer.width <= 64 else from_limbs(limbs)
        ran = Ran(
            codes.tolist(), episode.accepted, is_blocked=bool(episode.blocked), is_answered=bool(episode.answered)
        )
        if self._port.counters == "ports":
            ran.counts, ran.met_clears = counts.tolist(), episode.met_clears
        ran.cycles = episode.last_cycle - episode.first_cycle + 1
        fell, changed = "valid fell before the answer was taken", "the answer changed before it was taken"
        for cycle, what in ((episode.fell, fell), (episode.changed, changed)):
            if cycle != _NOTHING:
                ran.broken_promises.append(f"cycle {cycle}: {what}")
        return ran


def _limbs(words: NDArray[Any], width: int) -> NDArray[np.uint64]:
    if width <= 64:
        return words.astype(np.uint64)
    limbs, wanted = to_limbs(words), -(-width // 64)
    return np.pad(limbs, ((0, 0), (0, wanted - limbs.shape[1])))


def _words(values: NDArray[Any] | None) -> NDArray[np.uint32] | None:
    return None if values is None else np.ascontiguousarray(values, np.uint32)
