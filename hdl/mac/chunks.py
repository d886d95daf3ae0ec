# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The product counters of chunks: they find the products that start and end one, and promotions that start a total."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named
from hdl.mac.parameters import MacParameters

__all__ = ["Chunks", "chunk_facts_layout"]


def chunk_facts_layout() -> data.StructLayout:
    """Return the layout of the facts about a product's place in its chunk.

    ``starts``, ``ends``
        The product starts or ends a chunk.
    ``is_first``
        No chunk of the reduction has ended yet.
    """
    return data.StructLayout({"starts": 1, "ends": 1, "is_first": 1})


class Chunks(wiring.Component):
    """Count, for every register, the products left in its chunk.

    ::

        operation -> state of its register | one product less | state written back

    There are ranks between these steps if the unit has as many ranks ahead of the accumulator; products of the same
    register are then far enough apart. The facts belong to the operation `chunk_delay` ranks after its issue.

    Parameters
    ----------
    parameters : MacParameters

    Ports
    -----
    counts : in
        A product of a chunk is issued; products of refused or level-0 beats, and promotions, do not count.
    register, first, last : in
        The fields of its beat.
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length.
    facts : chunk_facts_layout, out
        Facts about the product issued `chunk_delay` cycles earlier.

    Attributes
    ----------
    states : Memory
        State that proofs refer to, for every register: the number of products ``left`` in its chunk, whether it is one
        (``is_last``), whether a chunk is ``open``, and whether one has ended before (``is_later``). A register that was
        never used is all zeros. A reset does not clear it.
    reading, writing
        Its ports.
    counting : dict of str to Signal
        State that proofs refer to: the first of two cycles of counting. Empty without a delay.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        super().__init__({
            "counts": In(1), "register": In(parameters.register_width), "first": In(1), "last": In(1),
            "chunk": In(parameters.chunk_bits), "facts": Out(chunk_facts_layout()),
        })  # fmt: skip
        state = data.StructLayout({"left": parameters.chunk_bits, "is_last": 1, "open": 1, "is_later": 1})
        self.states = Memory(shape=state, depth=parameters.registers, init=[])
        self.reading, self.writing = self.states.read_port(domain="comb"), self.states.write_port()
        now = {
            "length": parameters.chunk_bits, "is_one": 1, "is_unlimited": 1, "held": state, "counts": 1,
            "register": parameters.register_width, "first": 1, "last": 1,
        }  # fmt: skip
        delay = parameters.chunk_delay
        self.counting = {
            name: Signal(shape, name=f"{name}_now", reset_less=True) for name, shape in now.items() if delay
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.states = self.states
        read, write, facts = self.reading, self.writing, self.facts
        m.d.comb += read.addr.eq(self.register)
        length = named(m, "length", self.chunk)
        now: dict[str, Any] = {
            "length": length,
            "is_one": named(m, "is_one", length == 1),
            "is_unlimited": named(m, "is_unlimited", length == 0),
            "held": read.data,
            "counts": self.counts,
            "register": self.register,
            "first": self.first,
            "last": self.last,
        }
        if self.counting:
            m.d.sync += [self.counting[name].eq(value) for name, value in now.items()]
            now = self.counting

        first, last, held = now["first"], now["last"], now["held"]
        starts = named(m, "starts_now", first | ~held.open)
        ends = named(m, "ends_now", last | Mux(starts, now["is_one"], held.is_last & ~now["is_unlimited"]))
        is_first = named(m, "is_first_now", first | ~held.is_later)
        before, counts, register = (
            named(m, "left_before", Mux(starts, now["length"], held.left)),
            now["counts"],
            now["register"],
        )
        found = [facts.starts.eq(starts), facts.ends.eq(ends), facts.is_first.eq(is_first)]
        if self.counting:
            m.d.sync += found
            before, counts, register = (self._later(m, value) for value in (before, counts, register))
        else:
            m.d.comb += found
        m.d.comb += [
            write.addr.eq(register),
            write.en.eq(counts),
            write.data.left.eq(before - 1),
            write.data.is_last.eq(before == 2),
            write.data.open.eq(~facts.ends),
            write.data.is_later.eq(~facts.is_first | facts.ends),
        ]
        return m

    def _later(self, m: Module, value: Value) -> Signal:
        register = Signal(value.shape(), reset_less=True)
        m.d.sync += register.eq(value)
        return register
