"""Amaranth's simulator, two to eight times as fast: it evaluates what an event concerns, not all of a module.

Amaranth makes one process of all combinational statements of a module. A change of any input runs all of them, and a
chain of signals within the module runs them once more for each link. Here each signal's statements are a module of
their own, only processes that have been woken are looked at, and combinational ones run in the order in which signals
depend on each other, so that most run once where they would run after each change of an input. The compiled
statements, the clocks and the testbenches are Amaranth's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple
from unittest.mock import patch

from amaranth.hdl import Elaboratable, Fragment
from amaranth.hdl._ast import SignalKey, Statement, Switch
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim import Simulator, _pyrtl, pysim
from amaranth.sim.pysim import PySimEngine, _PySignalState, _run_wakers

from tools.elaboration import quick_elaboration

__all__ = ["simulator_of"]

_UPDATE = re.compile(r"slots\[(\d+)\]\.update\(next_\1(?:, -?\d+)?\)")
_NUMBERED = re.compile(r"\b(?:slots\[(\d+)\]|next_(\d+)\b)")
_HELPERS = _pyrtl._ValueCompiler.helpers | _pyrtl._StatementCompiler.helpers


def simulator_of(design: Elaboratable) -> Simulator:
    """Return a simulator of a design; it writes no waveforms.

    Parameters
    ----------
    design : Elaboratable
        It is elaborated here. Its signals are those that a testbench reads and sets.
    """
    with quick_elaboration():
        fragment = Fragment.get(design, platform=None)
        _split(fragment)
        simulator = Simulator(fragment, engine=_Engine)
        _forget(simulator._design)
    return simulator


def _forget(design: Any) -> None:
    """Drop the statements of a design that is compiled: most of its memory, through which garbage collection goes."""
    for fragment in design.fragments:
        fragment.statements, fragment.subfragments, fragment.origins = {}, [], ()
    design.fragments.clear()
    design.signal_lca.clear()
    design.elaboratables.clear()


def _split(fragment: Fragment) -> None:
    """Give each signal that a fragment drives combinationally a fragment of its own, in all fragments below, too."""
    for below, *_ in fragment.subfragments:
        _split(below)
    statements = fragment.statements.pop("comb", []) if type(fragment) is Fragment else []
    groups = _groups([leaf for statement in statements for leaf in _leaves(statement)])
    parts: dict[Hashable, list[Statement]] = defaultdict(list)
    for statement in statements:
        for group in dict.fromkeys(groups[id(leaf)] for leaf in _leaves(statement)):
            parts[group].append(_part(statement, groups, group))
    for part in parts.values():
        alone = Fragment()
        alone.add_statements("comb", *part)
        fragment.add_subfragment(alone)


def _leaves(statement: Statement) -> Iterator[Statement]:
    """Return all statements within one that are no switches."""
    if isinstance(statement, Switch):
        for _, inner, _ in statement.cases:
            for each in inner:
                yield from _leaves(each)
    else:
        yield statement


def _groups(leaves: list[Statement]) -> dict[int, Hashable]:
    """Return the group of each statement by its id: those that drive the same signal are in one group."""
    joined: dict[Hashable, Hashable] = {}

    def group_of(key: Hashable) -> Hashable:
        while joined.setdefault(key, key) != key:
            key = joined[key]
        return key

    # A statement that drives nothing, such as an assertion, is alone.
    driven = {id(leaf): [SignalKey(signal) for signal in leaf._lhs_signals()] or [id(leaf)] for leaf in leaves}
    for keys in driven.values():
        for key in keys:
            joined[group_of(key)] = group_of(keys[0])
    return {leaf: group_of(keys[0]) for leaf, keys in driven.items()}


def _part(statement: Statement, groups: dict[int, Hashable], group: Hashable) -> Statement | None:
    """Return what of a statement belongs to a group. A case without such a statement stays: the first match wins."""
    if not isinstance(statement, Switch):
        return statement if groups[id(statement)] == group else None
    cases = [
        (patterns, [part for each in inner if (part := _part(each, groups, group)) is not None], place)
        for patterns, inner, place in statement.cases
    ]
    return Switch(statement.test, cases, src_loc=statement.src_loc) if any(inner for _, inner, _ in cases) else None


class _Process:
    """A process of compiled statements that puts itself into a queue when it is to run."""

    __slots__ = ("critical", "is_comb", "is_queued", "outputs", "queue", "run")

    def __init__(self, queue: list[_Process], *, is_comb: bool) -> None:
        self.queue, self.is_comb = queue, is_comb
        self.outputs: list[_Slot] | None = None
        self.run: Callable[[], None]
        self.reset()

    def reset(self) -> None:
        self.critical = self.is_queued = False
        self.runnable = self.is_comb

    @property
    def runnable(self) -> bool:
        return self.is_queued

    @runnable.setter
    def runnable(self, value: bool) -> None:
        if value and not self.is_queued:
            self.queue.append(self)
        self.is_queued = value


class _Reader(NamedTuple):
    """In place of a function that wakes a combinational process: a signal that changes wakes it by itself."""

    process: _Process


class _Slot(_PySignalState):
    """The state of a signal."""

    curr: int
    next: int

    def __init__(self, signal: Any, pending: Any) -> None:
        super().__init__(signal, pending)
        self.readers: list[_Process] = []

    def add_waker(self, waker: Any) -> None:
        if isinstance(waker, _Reader):
            self.readers.append(waker.process)
        else:
            super().add_waker(waker)

    def commit(self) -> bool:
        before, after = self.curr, self.next
        if before == after:
            return False
        if self.wakers:
            _run_wakers(self.wakers, before, after)
        self.curr = after
        for process in self.readers:
            if not process.is_queued:
                process.is_queued = True
                process.queue.append(process)
        return True


class _Wire(_Slot):
    """The state of a signal that is combinational and nothing else: whoever reads it sees a new value at once."""

    def update(self, value: int, mask: int = ~0) -> None:
        before = self.curr
        self.next = after = (self.next & ~mask) | (value & mask)
        if before != after:
            if self.wakers:
                _run_wakers(self.wakers, before, after)
            self.curr = after
            for process in self.readers:
                if not process.is_queued:
                    process.is_queued = True
                    process.queue.append(process)


class _Emitter(_pyrtl._PythonEmitter):
    """Writes the code of a process so that it calls nothing for a signal that stays as it is."""

    def append(self, code: str) -> None:
        if updated := _UPDATE.fullmatch(code):
            code = f"if next_{updated[1]} != slots[{updated[1]}].next: {code}"
        super().append(code)


def _link(code: str, names: dict[str, Any]) -> None:
    """Make the function ``run`` of a process, in place of executing its code.

    Signals are numbered anew in each process: lanes, and units that are built again, have the same code. The function
    gets its signals as defaults of its parameters, which it reaches faster than through a list.
    """
    numbers: dict[str, int] = {}

    def named(found: re.Match[str]) -> str:
        kind = "slot" if found[1] else "next"
        return f"{kind}_{numbers.setdefault(found[1] or found[2], len(numbers))}"

    compiled = _compiled(_NUMBERED.sub(named, code), len(numbers))
    slots = names["slots"]
    names["run"] = FunctionType(compiled, _HELPERS, "run", tuple(slots[int(number)] for number in numbers))


@lru_cache(20_000)
def _compiled(code: str, signals: int) -> CodeType:
    """Return what a function does, of so many signals."""
    names: dict[str, Any] = {}
    parameters = ", ".join(f"slot_{number}" for number in range(signals))
    exec(code.replace("def run():", f"def run({parameters}):", 1), names)
    compiled: CodeType = names["run"].__code__
    return compiled


class _Compiler(_pyrtl._FragmentCompiler):
    """Notes which signals each combinational process drives, and which ones a clock does."""

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        self.clocked: set[_Slot] = set()

    def __call__(self, fragment: Fragment) -> set[_Process]:
        processes: set[_Process] = super().__call__(fragment)
        own = next((each for each in processes if each.is_comb and each.outputs is None), None)
        if own:
            own.outputs = self._driven(fragment, is_comb=True)
        self.clocked.update(self._driven(fragment, is_comb=False))
        return processes

    def _driven(self, fragment: Fragment, *, is_comb: bool) -> list[_Slot]:
        found = LHSMaskCollector()
        for domain, statements in fragment.statements.items():
            if (domain == "comb") == is_comb:
                found.visit_stmt(statements)
        for port in fragment._read_ports if isinstance(fragment, MemoryInstance) else ():
            if (port._domain == "comb") == is_comb:
                found.visit_value(port._data, ~0)
        return [self.state.slots[self.state.get_signal(signal)] for signal, _ in found.masks()]


def _in_levels(processes: Iterable[_Process]) -> list[list[_Process]]:
    """Sort combinational processes into levels, each process behind all that drive what it reads."""
    waits = {process: 0 for process in processes}
    followers = {process: [reader for slot in process.outputs or () for reader in slot.readers] for process in waits}
    for process, below in followers.items():
        for each in below:
            waits[each] += each is not process
    levels: list[list[_Process]] = []
    while waits:
        # In a loop no process is free: one goes ahead, and is woken again by those that it should have waited for.
        level = [process for process, count in waits.items() if not count] or [min(waits, key=waits.__getitem__)]
        for process in level:
            del waits[process]
        for process in level:
            for each in followers[process]:
                if each in waits and each is not process:
                    waits[each] -= 1
        levels.append(level)
    return levels


class _Engine(PySimEngine):
    """Amaranth's engine with queues of processes in place of a search for them in every delta cycle."""

    def __init__(self, design: Any) -> None:
        self._queue: list[_Process] = []
        compilers = []

        def compiler(state: Any) -> _Compiler:
            compilers.append(_Compiler(state))
            return compilers[0]

        with (
            patch.multiple(
                _pyrtl, PyRTLProcess=partial(_Process, self._queue), comb_waker=_Reader, _PythonEmitter=_Emitter
            ),
            patch.multiple(_pyrtl, create=True, compile=lambda code, *_: code, exec=_link),
            patch.multiple(pysim, _FragmentCompiler=compiler, _PySignalState=_Slot),
        ):
            super().__init__(design)
        self._compiled: set[Any] = self._processes
        self._processes: set[Any] = set()  # those of clocks are looked for, as ever
        for slot in self._state.slots:
            if isinstance(slot, _Slot) and slot.is_comb and slot not in compilers[0].clocked:
                slot.__class__ = _Wire
        self._queue.clear()
        self._levels: list[list[_Process]] = []
        for level in _in_levels([each for each in self._compiled if each.is_comb]):
            self._levels.append([])
            for process in level:
                process.queue = self._levels[-1]
        self._wake_all()

    def _wake_all(self) -> None:
        for queue in (self._queue, *self._levels):
            queue.clear()
        for process in self._compiled:
            process.reset()

    def reset(self) -> None:
        super().reset()
        self._wake_all()

    def step_design(self) -> None:
        converged = False
        while not converged:
            for trigger in self._active_triggers:
                trigger.run()
            self._active_triggers.clear()
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            woken = self._queue[:]
            self._queue.clear()
            for process in woken:
                process.is_queued = False
                process.run()
            self._state.commit()
            self._settle()
            converged = not (self._queue or self._active_triggers or self._state.pending)
            self._delta_cycles += 1

    def _settle(self) -> None:
        """Run combinational processes, level by level, until none is woken any more."""
        is_settled = False
        while not is_settled:
            is_settled = True
            for level in self._levels:
                if level:
                    is_settled = False
                    for process in level:  # also those that join the level meanwhile
                        process.is_queued = False
                        process.run()
                    level.clear()

    def write_vcd(self, **_: Any) -> Any:
        raise NotImplementedError("simulator_of: writes no waveforms; use amaranth.sim.Simulator")
