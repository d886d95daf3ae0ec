"""A vector unit whose lanes are left out and whose registers can be seen: see `lab.proofs.along_model.opened`."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from amaranth import Module, Signal, Value
from amaranth.hdl import Fragment
from amaranth.lib.fifo import SyncFIFO

from hdl.mac.chunks import Chunks
from hdl.vector.issue import VectorIssue
from hdl.vector.vector_mac import VectorMac
from lab.proofs.along_model.opened import SeenMemory, Signals
from lab.proofs.left_out import OpenLane

__all__ = ["OpenedVector"]


class OpenedVector:
    """A unit, elaborated, and what is in it.

    Parameters
    ----------
    unit : VectorMac
        With chunks.
    platform : object

    Attributes
    ----------
    fragment : Fragment
        The unit, to be made a submodule.
    parameters : VectorParameters
    operations : list of View
        As issued and behind each rank.
    issue, promotions
        Its parts.
    beat_valid : Signal
        Whether a beat is held.
    states, counting
        As of `lab.proofs.along_model.opened.OpenedUnit`.
    queue, row_queue
        Memories of the queue of promotions and of that of their rows.
    level, row_level : Signal
        Of these queues.
    queues : list of SyncFIFO
        Of promotions, of their rows, of results.
    reserved, taken, packed
        Of the queue of results; the operation behind the rank ``pack``, if there is one.
    held, held_valid, is_second, row, row_valid, pending, left, unsettled : Signal
        Of the promotions.
    rows_of_beats, rows_of_promotions : list of Signal
        Of hazards.
    lanes : list of OpenLane
    words, classes : list of SeenMemory
        The banks of the register file, of every lane.
    flags : dict of (int, int) to Signal
        Those raised on what stands behind a rank, by lane and rank.
    answers : SeenMemory
        The queue of results.
    """

    def __init__(self, unit: VectorMac, platform: object) -> None:
        lanes: list[OpenLane] = []
        issues: list[VectorIssue] = []
        queues: list[SyncFIFO] = []
        states: list[SeenMemory] = []
        memories: list[SeenMemory] = []
        banks: list[SeenMemory] = []
        later: list[Signal] = []
        hazards, issue, promotions, results, vector = Signals(), Signals(), Signals(), Signals(), Signals()
        chunks_later = Chunks._later

        def noted(kept: list[Any], make: Any) -> Any:
            def made(*given: Any, **named: Any) -> Any:
                kept.append(make(*given, **named))
                return kept[-1]

            return made

        def noted_later(chunks: Chunks, m: Module, value: Any) -> Signal:
            later.append(chunks_later(chunks, m, value))
            return later[-1]

        with ExitStack() as stack:
            for target, replacement in (
                ("hdl.vector.vector_mac.Lane", noted(lanes, OpenLane)),
                ("hdl.vector.vector_mac.VectorIssue", noted(issues, VectorIssue)),
                ("hdl.vector.promotions.SyncFIFO", noted(queues, SyncFIFO)),
                ("hdl.vector.results.SyncFIFO", noted(queues, SyncFIFO)),
                ("hdl.vector.results.Signal", results),
                ("hdl.mac.chunks.Memory", noted(states, SeenMemory)),
                ("amaranth.lib.fifo.Memory", noted(memories, SeenMemory)),
                ("hdl.vector.register_file.Memory", noted(banks, SeenMemory)),
                ("hdl.vector.vector_mac.Signal", vector),
                ("hdl.mac.hazards.Signal", hazards),
                ("hdl.vector.issue.Signal", issue),
                ("hdl.vector.promotions.Signal", promotions),
                ("hdl.mac.chunks.Chunks._later", noted_later),
            ):
                stack.enter_context(patch(target, replacement))
            self.fragment = Fragment.get(unit, platform)
        self.parameters = unit.parameters
        self.operations: list[Any] = list(lanes[0].operations)
        (self.issue,) = issues
        self.promotions = self.issue.promotions
        self.beat_valid = issue.by_name.get("held_valid")
        (self.states,) = states
        names = ("length", "is_one", "is_unlimited", "held", "counts", "register", "first", "last")
        self.counting = dict(zip(names, later, strict=False))
        # In the order in which they are made and elaborated.
        self.queue, self.row_queue, self.answers = memories
        self.lanes = lanes
        self.words, self.classes = banks[: len(lanes)], banks[len(lanes) :]
        places = itertools.product(range(len(lanes)), range(1, len(self.operations)))
        self.flags = {(lane, place): vector.by_name[f"flags_{lane}_{place}"] for lane, place in places}
        # Of promotions, of their rows, of results.
        self.queues = queues
        self.results = queues[2]
        self.level, self.row_level = (queue.level for queue in queues[:2])
        made = promotions.all
        at = next(place for place, one in enumerate(made) if getattr(Value.cast(one), "name", "") == "following")
        _, _, self.row, self.row_valid, _, self.held, self.held_valid, self.is_second = made[at : at + 8]
        self.pending, self.left = promotions.by_name["pending"], promotions.by_name["left"]
        self.unsettled = promotions.by_name["unsettled"]
        self.reserved, self.taken = results.by_name["reserved"], results.by_name["taken"]
        at = next(place for place, one in enumerate(results.all) if one is self.reserved)
        # Ahead of it the entry, and of that an operation with the flags of all lanes.
        has_pack = "pack" in unit.parameters.ranks
        self.packed: Any = results.all[at - 2 - unit.parameters.lanes] if has_pack else None
        count = len(hazards.all) // 2 if unit.parameters.has_input_rank else 0
        self.rows_of_beats, self.rows_of_promotions = hazards.all[:count], hazards.all[count:]
