"""A multiply-accumulate unit whose lane is left out and whose registers can be seen, for a proof by induction.

Nothing of the unit is changed: what its parts make of signals and memories is noted while they make it, and memories
get further read ports, one for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from amaranth import Module, Signal
from amaranth.hdl import Fragment
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.memory import Memory

from hdl.mac.chunks import Chunks
from hdl.mac.issue import Issue
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.mac.results import ResultQueue
from lab.proofs.left_out import OpenLane

__all__ = ["OpenedUnit", "SeenMemory", "Signals"]


class SeenMemory(Memory):
    """A memory with a read port for every row, and its own ports at hand."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.rows = [super(SeenMemory, self).read_port(domain="comb") for _ in range(self.depth)]
        self.writing: Any = None
        self.reading: Any = None

    def write_port(self, **given: Any) -> Any:
        self.writing = super().write_port(**given)
        return self.writing

    def read_port(self, **given: Any) -> Any:
        self.reading = super().read_port(**given)
        return self.reading


class Signals:
    """Makes signals and keeps those that have names."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}
        self.all: list[Any] = []

    def __call__(self, *shape: Any, **given: Any) -> Any:
        return self._kept(Signal(*shape, src_loc_at=1, **given))

    def like(self, other: Any, **given: Any) -> Any:
        """As of `Signal`."""
        return self._kept(Signal.like(other, **given))

    def _kept(self, made: Any) -> Any:
        self.all.append(made)
        if isinstance(made, Signal):
            self.by_name[made.name] = made
        return made


class OpenedUnit:
    """A unit, elaborated, and what is in it.

    Parameters
    ----------
    unit : MultiplyAccumulate
        With chunks.
    platform : object

    Attributes
    ----------
    fragment : Fragment
        The unit, to be made a submodule.
    lane, issue, results, queue
        Its parts.
    banks : dict
        Memories of the register file by ``even``, ``odd``, ``even_class``, ``odd_class``.
    states, storage
        Memories of the chunks and the queue.
    counting : dict
        What the chunks hold of the operation behind the first rank.
    rows : list of Signal
        Of hazards.
    others, cycles_of_others, reserving, taking, beyond_one, beyond_two : Signal
    """

    def __init__(self, unit: MultiplyAccumulate, platform: object) -> None:
        parts: dict[type, Any] = {}
        memories: list[SeenMemory] = []
        later: list[Signal] = []
        hazards, issue, results = Signals(), Signals(), Signals()
        chunks_later = Chunks._later

        def noted(kind: type, make: Callable[..., Any]) -> Callable[..., Any]:
            def made(*given: Any, **named: Any) -> Any:
                parts[kind] = make(*given, **named)
                return parts[kind]

            return made

        def memory(**given: Any) -> SeenMemory:
            memories.append(SeenMemory(**given))
            return memories[-1]

        def noted_later(chunks: Chunks, m: Module, value: Any) -> Signal:
            later.append(chunks_later(chunks, m, value))
            return later[-1]

        with ExitStack() as stack:
            for target, replacement in (
                ("hdl.mac.multiply_accumulate.Lane", noted(OpenLane, OpenLane)),
                ("hdl.mac.multiply_accumulate.Issue", noted(Issue, Issue)),
                ("hdl.mac.multiply_accumulate.ResultQueue", noted(ResultQueue, ResultQueue)),
                ("hdl.mac.results.SyncFIFO", noted(SyncFIFO, SyncFIFO)),
                ("hdl.mac.chunks.Memory", memory),
                ("hdl.mac.register_file.Memory", memory),
                ("amaranth.lib.fifo.Memory", memory),
                ("hdl.mac.hazards.Signal", hazards),
                ("hdl.mac.issue.Signal", issue),
                ("hdl.mac.results.Signal", results),
                ("hdl.mac.chunks.Chunks._later", noted_later),
            ):
                stack.enter_context(patch(target, replacement))
            self.fragment = Fragment.get(unit, platform)
        self.lane, self.issue = parts[OpenLane], parts[Issue]
        self.results, self.queue = parts[ResultQueue], parts[SyncFIFO]
        # In the order in which the parts are elaborated.
        self.states, *banks, self.storage = memories
        self.banks = dict(zip(("even", "odd", "even_class", "odd_class"), banks, strict=True))
        names = ("length", "is_one", "is_unlimited", "held", "counts", "register", "first", "last")
        self.counting = dict(zip(names, later, strict=False))
        self.rows = hazards.all
        self.others = issue.by_name["others_in_flight"]
        self.cycles_of_others = issue.by_name["cycles_of_others"]
        self.beyond_two, self.beyond_one = results.by_name["beyond_two"], results.by_name["beyond_one"]
        at = next(place for place, one in enumerate(results.all) if one is self.beyond_two)
        self.reserving, self.taking = results.all[at - 2 : at]
