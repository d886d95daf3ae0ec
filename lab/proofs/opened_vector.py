"""The signals and memories of a vector unit without its lanes, for proofs: see `lab.proofs.along_model.opened`."""

from __future__ import annotations

from typing import Any

from lab.proofs.along_model.opened import SeenMemory
from lab.proofs.left_out import OpenVectorMac

__all__ = ["OpenedVector"]


class OpenedVector:
    """A unit, not yet elaborated, and its parts.

    Parameters
    ----------
    unit : OpenVectorMac
        With chunks.

    Attributes
    ----------
    parameters : VectorParameters
    operations : list of View
        As issued and behind each rank.
    issue, promotions
        Its parts.
    beat_valid : Signal
        Whether a beat is held.
    states, counting
        As of `lab.proofs.along_model.opened.OpenedUnit`.
    queue, row_queue, answers : SeenMemory
        Memories of the queues of promotions, of their rows, and of results.
    level, row_level : Signal
        Levels of the first two queues.
    queues : list of Queue
        The queues of promotions, of their rows, of results.
    results : Queue
        The last one of them.
    reserved, reserving, taken, packed, answered
        Of the queue of results: places taken or promised, how many of them since the last cycle, whether one becomes
        free; the operation behind the rank ``pack``, if there is such a rank.
    held, held_valid, is_second, row, row_valid, issuing, change, left, unsettled : Signal
        Of the promotions.
    pending, pending_before : Value
        Products of chunks in flight and promotions that wait; the same before the last change.
    rows_of_beats, rows_of_promotions : list of Signal
        Of hazards.
    lanes : list of OpenLane
    words, classes : list of SeenMemory
        The banks of the register file, of every lane.
    low_ends : list of SeenMemory
        Its banks with the ends of fp32 numbers, of every pair of lanes.
    groups : list of LaneGroup
        The lanes with their registers.
    operands : list of Operands
        Operands of the held beat, by group.
    waiting_operands, kept_operands : list of WaitingOperands, of SeenMemory
        Operands of promotions, and their memories, by group.
    flags : dict of (int, int) to Signal
        Flags raised on the operation behind a rank, by lane and rank.
    """

    def __init__(self, unit: OpenVectorMac) -> None:
        self.parameters = unit.parameters
        control = unit.control
        self.operations: list[Any] = list(control.flight.at)
        self.lanes = list(unit.lane_parts.values())
        self.issue, self.promotions = control.issue, control.promotions
        self.beat_valid = control.issue.held_valid
        chunks = control.chunks
        self.states, self.counting = SeenMemory(chunks.states, chunks.writing, chunks.reading), chunks.counting
        p, places = control.promotions, control.places
        self.queues = [p.queue, p.rows, control.results.queue]
        self.queue, self.row_queue, self.answers = map(SeenMemory.of_queue, self.queues)
        self.results = control.results.queue
        self.level, self.row_level = p.queue.level, p.rows.level
        self.row, self.row_valid, self.issuing = p.row, p.row_valid, p.issuing
        self.held, self.held_valid, self.is_second = p.held, p.held_valid, p.is_second
        self.change, self.left, self.unsettled = p.change, p.left, p.unsettled
        self.pending_before = unit.parameters.promotions - 2 - p.spare
        self.pending = self.pending_before + p.change
        self.reserved = unit.parameters.results - places.margin - places.spare + places.reserving
        self.taken, self.reserving = places.taken, places.reserving
        self.answered: Any = control.results.packed
        self.packed: Any = control.results.packed if "pack" in unit.parameters.ranks else None
        self.rows_of_beats = control.issue.waiting.rows if control.issue.waiting else []
        self.rows_of_promotions = p.waiting.rows
        files = [group.register_file for group in unit.groups]
        self.words = [SeenMemory.of_bank(bank) for file in files for bank in file.words]
        self.low_ends = [SeenMemory.of_bank(bank) for file in files for bank in file.low_ends]
        self.classes = [SeenMemory.of_bank(bank) for file in files for bank in file.classes]
        self.groups, self.operands, self.waiting_operands = unit.groups, control.operands, p.waiting_operands
        self.kept_operands = [SeenMemory(each.storage, each.writing, each.reading) for each in p.waiting_operands]
        # Signals with the flags of an operation: as its operands leave the control, and then behind each rank.
        delay = unit.parameters.operand_delay
        self.flags = {
            (lane, place): behind
            for lane, part in unit.flag_parts.items()
            for place, behind in enumerate([part.issued.as_value(), *part.behind][1 - delay :], 1)
        }
