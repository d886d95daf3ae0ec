"""The signals and memories of a multiply-accumulate unit without its lane, by name, for proofs by induction."""

from __future__ import annotations

from typing import Any

from lab.proofs.left_out import OpenMac, rows_of

__all__ = ["OpenedUnit", "SeenMemory"]


class SeenMemory:
    """A memory with a read port for every row, and its own ports at hand.

    Parameters
    ----------
    memory : Memory
    writing, reading
        Its ports.
    """

    def __init__(self, memory: Any, writing: Any, reading: Any) -> None:
        self.depth, self.writing, self.reading = memory.depth, writing, reading
        self.rows = rows_of(memory)

    @classmethod
    def of_bank(cls, bank: Any) -> SeenMemory:
        """Return the memory of a `hdl.mac.bank.Bank`."""
        return cls(bank.memory, bank.writing, bank.reading)

    @classmethod
    def of_queue(cls, queue: Any) -> SeenMemory:
        """Return the memory of a `hdl.queue.Queue`."""
        return cls(queue.storage, queue.writing, queue.reading)


class OpenedUnit:
    """A unit, not yet elaborated, and its parts.

    Parameters
    ----------
    unit : OpenMac
        With chunks.

    Attributes
    ----------
    operations : list of View
        As issued and behind each rank.
    lane, issue, operands, results, queue
        Its parts.
    flags : list of View
        Flags raised on the operation that is issued, and on the operation behind each rank.
    banks : dict
        Memories of the register file by ``even``, ``odd``, ``even_class``, ``odd_class``.
    states, storage
        Memories of the chunks and the queue.
    counting : dict
        The chunks' data about the operation behind the first rank.
    rows : list of Signal
        Of hazards.
    passed_by : Signal
        See `hdl.mac.passing.Passing`.
    reading : dict of str to Signal
        See `hdl.mac.accumulator.Accumulator`.
    others, cycles_of_others, reserving, spare : Signal
    """

    def __init__(self, unit: OpenMac) -> None:
        control = unit.control
        self.operations: list[Any] = list(control.flight.at)
        self.lane, self.issue, (self.operands,) = unit.accumulator.lane, control.issue, control.operands
        self.results, self.queue = control.results, control.results.queue
        self.flags: list[Any] = list(unit.accumulator.its_flags.at) if unit.accumulator.its_flags else []
        registers, chunks = unit.accumulator.registers, control.chunks
        banks = dict(
            zip(("even", "odd", "even_class", "odd_class"), registers.numbers + registers.classes, strict=True)
        )
        self.banks = {name: SeenMemory.of_bank(bank) for name, bank in banks.items()}
        self.states = SeenMemory(chunks.states, chunks.writing, chunks.reading)
        self.storage = SeenMemory.of_queue(self.queue)
        self.counting = chunks.counting
        self.passed_by, self.reading = unit.accumulator.passing.passed_by, unit.accumulator.reading
        self.rows = control.issue.waiting.rows if control.issue.waiting else []
        self.others, self.cycles_of_others = control.promotions.others, control.promotions.cycles_of_others
        places = control.places
        self.reserving, self.spare = places.reserving, places.spare
