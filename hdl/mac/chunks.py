"""Counting the products of chunks: which product starts one, which ends it, and which promotion starts a total."""

from __future__ import annotations

from typing import Any

from amaranth import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory

from hdl.cores.words import named
from hdl.mac.parameters import MacParameters

__all__ = ["Chunks"]


class Chunks(Elaboratable):
    """Keep, for every register, how many products are left of its chunk.

    ::

        operation -> state of its register | one product less | state written back

    The ranks between these steps are there if the unit has as many ranks ahead of the accumulator; products of the same
    register are then far enough apart. What is found is of the operation `delay` ranks after its issue.

    Parameters
    ----------
    parameters : MacParameters
    operation : operation_layout
        As issued; products of refused or level-0 beats, and promotions, do not count.
    counts : Value
        Whether the operation is a product of a chunk.
    first, last : Value
        As in the beat.
    chunk : unsigned(chunk_bits)
        Products in a chunk; 0 is one chunk of any length.

    Attributes
    ----------
    delay : int
        Cycles.
    starts, ends, is_first : Signal, out
        The product starts or ends a chunk; no chunk of the reduction has ended before.
    """

    def __init__(
        self, parameters: MacParameters, operation: Any, counts: Any, first: Any, last: Any, chunk: Any
    ) -> None:
        self.parameters, self.operation, self.counts = parameters, operation, counts
        self.first, self.last, self.chunk = first, last, chunk
        self.delay = parameters.chunk_delay
        self.starts, self.ends, self.is_first = Signal(), Signal(), Signal()

    def settle(self, operation: Any) -> dict[str, Value]:
        """Return what is known of an operation `delay` ranks after its issue."""
        is_chunk = operation.partial
        return {
            "fresh": Mux(is_chunk, self.starts, operation.fresh),
            "promote": is_chunk & self.ends & operation.writes,
            "fresh_total": is_chunk & self.is_first,
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        # All zeros is a register that was never used: no chunk of it is open, and none has been promoted.
        state = data.StructLayout({"left": parameters.chunk_bits, "is_last": 1, "open": 1, "is_later": 1})
        m.submodules.states = memory = Memory(shape=state, depth=parameters.registers, init=[])
        read, write = memory.read_port(domain="comb"), memory.write_port()
        length = named(m, "length", self.chunk)
        is_one, is_unlimited = named(m, "is_one", length == 1), named(m, "is_unlimited", length == 0)
        if self.delay:
            length, is_one, is_unlimited = (self._later(m, value) for value in (length, is_one, is_unlimited))

        m.d.comb += read.addr.eq(self.operation.register)
        held, counts, register = read.data, self.counts, self.operation.register
        first, last = self.first, self.last
        if self.delay:
            held, counts, register, first, last = (self._later(m, v) for v in (held, counts, register, first, last))

        starts = named(m, "starts_now", first | ~held.open)
        ends = named(m, "ends_now", last | Mux(starts, is_one, held.is_last & ~is_unlimited))
        is_first = named(m, "is_first_now", first | ~held.is_later)
        before = named(m, "left_before", Mux(starts, length, held.left))
        if self.delay:
            m.d.sync += [self.starts.eq(starts), self.ends.eq(ends), self.is_first.eq(is_first)]
            before, counts, register = (self._later(m, value) for value in (before, counts, register))
        else:
            m.d.comb += [self.starts.eq(starts), self.ends.eq(ends), self.is_first.eq(is_first)]
        m.d.comb += [
            write.addr.eq(register),
            write.en.eq(counts),
            write.data.left.eq(before - 1),
            write.data.is_last.eq(before == 2),
            write.data.open.eq(~self.ends),
            write.data.is_later.eq(~self.is_first | self.ends),
        ]
        return m

    def _later(self, m: Module, value: Any) -> Signal:
        register = Signal(value.shape(), reset_less=True)
        m.d.sync += register.eq(value)
        return register
