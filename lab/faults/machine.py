"""Simulating 511 faults and the unit itself at once, with the stimulus of ``make sim``."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.faults.gates import Gates
from sim.fields import Fields, to_limbs
from sim.port import Port
from sim.scenario import Scenario
from tools.sliced.gates import ZERO, circuit, compiled, planes

__all__ = ["COPIES", "Cause", "Machine", "Wires"]

COPIES = 512
#: A copy may take this multiple of the unit's own cycles, plus some more. Then it is given up.
_SLOWER, _MORE = 50, 5000


class Cause(IntEnum):
    """How a copy was caught; as in planes.cpp."""

    SAME = 0
    WRONG = 1
    UNEXPECTED = 2
    MISSING = 3
    STUCK = 4
    UNSTEADY = 5
    CYCLES = 6


@dataclass(frozen=True)
class Wires:
    """The map from a unit's nets to the bench's signals.

    Parameters
    ----------
    payload, answer, chunk : list of int
        Lowest bit first.
    valid, ready, answered, take, reset : int
    inverted : bool
        Reset is active low.
    """

    payload: list[int]
    answer: list[int]
    chunk: list[int]
    valid: int
    ready: int
    answered: int
    take: int
    reset: int
    inverted: bool

    @classmethod
    def of(cls, ports: Mapping[str, list[int]], *, axi_stream: bool) -> Wires:
        """Return the wires of a unit, as `sim.bench.shell` connects them."""
        chunk = ports.get("chunk", [])
        if axi_stream:
            inputs, outputs = (
                [*ports[f"{side}_tdata"], *ports[f"{side}_tuser"], *ports[f"{side}_tlast"]]
                for side in ("s_axis", "m_axis")
            )
            names = ("s_axis_tvalid", "s_axis_tready", "m_axis_tvalid", "m_axis_tready", "aresetn")
        else:
            inputs, outputs = ports["i__payload"], ports["o__payload"]
            names = ("i__valid", "i__ready", "o__valid", "o__ready", "rst")
        valid, ready, answered, take, reset = (ports[name][0] for name in names)
        return cls(inputs, outputs, chunk, valid, ready, answered, take, reset, axi_stream)


class _Ports(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("payloads", "answers", "chunks", "reset", "inverted")),
        *((name, ctypes.c_uint32) for name in ("valid", "ready", "answered", "take")),
        *((name, ctypes.c_void_p) for name in ("payload", "answer", "chunk")),
        *((name, ctypes.c_uint32) for name in ("registers", "errors")),
        *((name, ctypes.c_void_p) for name in ("in_register", "in_error")),
    ]


_COUNTS = (
    "start", "payloads", "payload_limbs", "answers", "answer_limbs", "offers", "takes", "queues", "cycles", "cut",
    "longest",
)  # fmt: skip
_ARRAYS = ("payload", "answer", "chunk", "gap", "pause", "end", "offer", "take", "first", "order")


class _Scenario(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in _COUNTS),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
    ]


class Machine:
    """512 copies of a unit; copy 0 is the unit itself.

    Parameters
    ----------
    gates : Gates
    port : Port
    copies : dict of int to int
        The copy of each fault, by the number of the fault.
    axi_stream : bool

    Attributes
    ----------
    caught : array of int
        For each copy, how it was caught: see `Cause`.
    cycles : int
        Cycles simulated so far.
    """

    def __init__(self, gates: Gates, port: Port, copies: Mapping[int, int], *, axi_stream: bool = False) -> None:
        self._code = _library()
        self._port = port
        self.caught = np.zeros(COPIES, np.uint32)
        self.cycles = 0
        self._registers = registers = np.ascontiguousarray(gates.registers, np.uint32)
        self._circuit = circuit(gates.nets, gates.gates)
        self._machine = self._code.make(ctypes.byref(self._circuit), len(registers), _at(registers))
        wires = Wires.of(gates.ports, axi_stream=axi_stream)
        self._kept: list[NDArray[Any]] = [
            np.array(nets, np.uint32) for nets in (wires.payload, wires.answer, wires.chunk)
        ]
        self._kept += [np.array(_places(port.answer, name), np.uint32) for name in ("register", "error")]
        payload, answer, chunk, register, error = self._kept
        reset = wires.reset if wires.reset != ZERO else 0
        self._code.connect(
            self._machine,
            ctypes.byref(
                _Ports(
                    *(len(payload), len(answer), len(chunk), reset, wires.inverted),
                    *(wires.valid, wires.ready, wires.answered, wires.take),
                    *(_at(array) for array in (payload, answer, chunk)),
                    *(len(register), len(error), _at(register), _at(error)),
                )
            ),
        )
        for number, copy in copies.items():
            if number in gates.selects:
                self._code.select_copy(self._machine, gates.selects[number], copy)

    def __del__(self) -> None:
        if hasattr(self, "_machine"):
            self._code.destroy(self._machine)

    def watch(self, guards: Sequence[tuple[int, bool]], most: int) -> None:
        """Remember from now on which registers of which copies differ from copy 0, and under which guards.

        Parameters
        ----------
        guards : sequence of (int, bool)
            Registers, by their index in `Gates.registers`, and the value that makes the guard true.
        most : int
            Cycles for which the guards themselves are kept.
        """
        registers = len(self._registers)
        pairs = np.array([(self._registers[register, 0], value) for register, value in guards], np.uint32)
        self._differed = planes((len(guards) + 1) * registers).reshape(len(guards) + 1, registers, 8)
        self._differed[:] = 0
        self._trace = np.zeros((most, -(-len(guards) // 64)), np.uint64)
        self._kept += [pairs]
        self._code.observe(self._machine, len(guards), _at(pairs), self._differed.ctypes.data, most, _at(self._trace))
        self._since = self.cycles

    def seen(self, copy: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for each register, and for each guard and register, whether this copy has never differed."""
        differed = self._differed[:, :, copy // 64] >> np.uint64(copy % 64) & np.uint64(1) != 0
        return ~differed[0], ~differed[1:]

    def trace(self) -> NDArray[np.bool_]:
        """Return which guards were true, cycle by cycle."""
        cycles = min(self.cycles - self._since, len(self._trace))
        bits = np.unpackbits(self._trace[:cycles].view(np.uint8), axis=1, bitorder="little")
        return bits[:, : self._differed.shape[0] - 1].astype(np.bool_)

    def run(self, scenario: Scenario, *, cut: int = 0) -> None:
        """Power all copies up and run a scenario, reset by reset, for those that have not been caught yet.

        Parameters
        ----------
        scenario : Scenario
        cut : int
            If it is not 0, run at most this number of cycles of each episode, and ignore answers.

        Raises
        ------
        RuntimeError
            If the unit itself gives a wrong result.
        """
        if not len(scenario.answers):
            raise ValueError(f"scenario: got no answers in {scenario.name}, must have some: nothing would be compared")
        self._code.power_up(self._machine)
        self._code.reset(self._machine, 3)
        # A scenario that is cut off does not judge answers.
        caught = self.caught.copy() if cut else self.caught
        for episode in range(len(scenario.episodes)):
            self._episode(scenario, episode, cut, caught)
            self._code.reset(self._machine, 1)
        if self.caught[0]:
            cause = Cause(int(self.caught[0])).name.lower()
            raise RuntimeError(f"{scenario.name}: the unit without faults fails ({cause}): run `make sim` first")

    def _episode(self, scenario: Scenario, episode: int, cut: int, caught: NDArray[np.uint32]) -> None:
        driven, span = scenario.payload_span(episode), scenario.answer_span(episode)
        within = slice(span.start, span.stop)
        answers = _limbs(scenario.answers[within], self._port.answer.width)
        payloads = _limbs(scenario.payloads, self._port.request.width)
        queues = self._port.queue_of(scenario.answers[within]) if len(span) else np.zeros(0, np.int64)
        order = np.argsort(queues, kind="stable").astype(np.uint64)
        count = int(queues.max()) + 1 if len(span) else 1
        first = np.searchsorted(queues[order.astype(np.int64)], np.arange(count + 1)).astype(np.uint64)
        chunks = _words(np.zeros(len(payloads)) if scenario.chunks is None else scenario.chunks)
        gaps = chunks if scenario.gaps is None else _words(scenario.gaps)
        pauses = None if scenario.pauses is None else _words(scenario.pauses)
        ends = None if scenario.ends is None else _words(scenario.ends[within])
        offers, takes = (np.ascontiguousarray(pattern, np.uint8) for pattern in (scenario.offers, scenario.takes))
        ends_at = int(scenario.episodes[episode][2])
        counts = (
            *(driven.start, driven.stop, payloads.shape[1], len(answers), answers.shape[1], len(offers), len(takes)),
            *(count, scenario.cycles, min(cut or ends_at, ends_at or cut), _SLOWER * len(driven) + _MORE),
        )
        arrays = (payloads, answers, chunks, gaps, pauses, ends, offers, takes, first, order)
        given = _Scenario(*counts, *(None if array is None else _at(array) for array in arrays))
        self.cycles += self._code.run(self._machine, ctypes.byref(given), _at(caught))


def _library() -> Any:
    code = compiled(Path(__file__).with_name("planes.cpp"))
    code.make.restype = ctypes.c_void_p
    code.make.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    code.connect.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    code.select_copy.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32]
    code.observe.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p),
        *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p),
    ]
    code.destroy.argtypes = [ctypes.c_void_p]
    code.power_up.argtypes = [ctypes.c_void_p]
    code.reset.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    code.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    code.run.restype = ctypes.c_uint64
    return code


def _at(array: NDArray[Any]) -> Any:
    return array.ctypes.data


def _places(fields: Fields, name: str) -> list[int]:
    low = 0
    for field, width in fields.widths.items():
        if field == name:
            return list(range(low, low + width))
        low += width
    return []


def _words(values: NDArray[Any]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values, np.uint64)


def _limbs(words: NDArray[Any], width: int) -> NDArray[np.uint64]:
    limbs = to_limbs(words)
    limbs = limbs.reshape(len(words), -1).astype(np.uint64)
    missing = max(1, -(-width // 64)) - limbs.shape[1]
    return np.ascontiguousarray(np.pad(limbs, ((0, 0), (0, missing))))
