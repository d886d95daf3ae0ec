# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The queue of results: the pipeline never stalls, because a product enters only if there is a place for its result."""

from __future__ import annotations

from amaranth import C, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error
from hdl.queue import Queue

__all__ = ["ResultQueue", "SinglePlaces"]


class ResultQueue(wiring.Component):
    """Hold results until they are accepted.

    Parameters
    ----------
    parameters : MacParameters
    operation : data.StructLayout
        With the fields of `hdl.mac.operation.operation_layout`.
    entry : data.StructLayout
        The layout of a result.

    Ports
    -----
    finished : operation, in
        The operation behind the last rank.
    packed : operation, out
        The same behind the rank ``pack`` if there is one, aligned with the code from a lane.
    entry : in
        The result of `packed`.
    o : stream of entry, out

    Attributes
    ----------
    queue : Queue
        Its ``level`` and ``storage`` are state that proofs refer to, and so are `packed` and its ``w_en`` behind a rank
        ``pack``.
    """

    def __init__(self, parameters: MacParameters, operation: data.StructLayout, entry: data.StructLayout) -> None:
        self.parameters, self._operation = parameters, operation
        super().__init__(
            {"finished": In(operation), "packed": Out(operation), "entry": In(entry), "o": Out(stream.Signature(entry))}
        )
        self.queue = Queue(entry, parameters.results)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = self.queue
        operation = self.finished
        is_result = operation.writes & operation.last & ~operation.promote
        gives_result = (operation.error != Error.NONE) | is_result
        if "pack" in self.parameters.ranks:
            behind, is_there = Signal(self._operation, name="behind_pack"), Signal(name="is_there_behind_pack")
            m.d.sync += [behind.eq(operation), is_there.eq(gives_result)]
            operation, gives_result = behind, is_there
        m.d.comb += [
            self.packed.eq(operation),
            queue.w_data.eq(self.entry),
            queue.w_en.eq(gives_result),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
        ]
        return m


class SinglePlaces(wiring.Component):
    """Count the free places of the queue, if every reduction has one result.

    A product is counted one cycle after its issue, because the same cycle would miss timing. The counter holds the
    number of places left minus two, one of which may be reserved already; its sign replaces a comparison. If `Issue`
    looks ahead, it is minus three, because one more may be.

    Parameters
    ----------
    places : int
    looks_ahead : bool
        Whether the answer is for the product after the one that is issued now.

    Ports
    -----
    reserves : unsigned(2), in
        1 if a beat with a result is issued, 0 otherwise.
    leaves : in
        A result is accepted.
    has_room : out
        A further product may be issued.

    Attributes
    ----------
    reserving, spare : Signal
        State that proofs refer to.
    """

    def __init__(self, places: int, *, looks_ahead: bool) -> None:
        super().__init__({"reserves": In(2), "leaves": In(1), "has_room": Out(1)})
        self.reserving = Signal()
        margin = 3 if looks_ahead else 2
        self.spare = Signal(range(-margin, places - margin + 1), init=places - margin)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        change = Cat(C(1, 1), self.reserving).as_signed()  # -1 or 1
        m.d.sync += self.reserving.eq(self.reserves[0])
        # Whether a result leaves is known late, and only enables the register.
        with m.If(self.leaves ^ self.reserving):
            m.d.sync += self.spare.eq(self.spare + change)
        m.d.comb += self.has_room.eq(~self.spare[-1])
        return m
