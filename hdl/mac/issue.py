# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The issue stage: it selects the operation that enters the pipeline. Promotions, products, hazards, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named, record
from hdl.mac.arrangement import Arrangement
from hdl.mac.decode import decode_control, decoded_control
from hdl.mac.hazards import WaitsBehindRank
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, rounding_fields

__all__ = ["Issue"]

_RANDOM = ("random", "random_promotion")


class Issue(wiring.Component):
    """Issue one operation a cycle to all lanes: a promotion, otherwise the products of a beat.

    A beat waits while

    - a promotion is issued;
    - a product with its register was issued less than `accumulate_latency` cycles ago;
    - it has level 0, and a promotion in flight may have its register;
    - it will return a result, and the queue has no place left;
    - it might end a chunk, and there is no place for a further promotion.

    With a rank ``input`` the beat is decoded and held. It is compared with products in flight on its way into the rank,
    which leaves a short decision behind it. Whether it must wait for anything else is found one cycle ahead, too.

    Parameters
    ----------
    parameters : MacParameters
    arrangement : Arrangement

    Ports
    -----
    i : stream of the arrangement's beat, in
        The products to issue.
    has_room : in
        Whether the queue of results has places for a further reduction; with a rank ``input``, for two.
    reserves : unsigned(2), out
        Places that the issued beat reserves in that queue: 0, 1 or 2.
    in_flight : array of the arrangement's operation, in
        The operation behind each rank, in order.
    promotes, promotes_next, promotion : in
        A promotion is issued in this cycle, in the next one; its operation: `hdl.mac.promotions`.
    takes_chunks, are_settled : in
        There is a place for a further promotion, with a rank ``input`` in the next cycle; no promotion in flight
        conflicts with an operation issued now.
    counts : out
        A product of a chunk is issued.
    offers_chunk : out
        A product of a chunk is ready to issue.
    operation : the arrangement's operation, out
        The issued operation; ``fresh``, ``promote``, ``fresh_total`` of a chunk's products are added later.

    Attributes
    ----------
    held : Signal
        State that proofs refer to: the decoded beat to issue, `hdl.mac.decode.decoded_control` and the random numbers
        of its lanes. Without a rank ``input`` it comes directly from the port. Its operands are in
        `hdl.mac.operands.Operands`.
    held_valid : Signal
        State that proofs refer to: whether `held` is valid.
    waiting : WaitsBehindRank
        Its ``rows`` are state that proofs refer to; None without a rank ``input``.
    is_blocked : Signal
        State that proofs refer to, with a rank ``input``: the held beat waits for a promotion that was announced, for
        operations of other levels, or for a place for its results or its promotions.
    """

    def __init__(self, parameters: MacParameters, arrangement: Arrangement) -> None:
        self.parameters, self.arrangement = parameters, arrangement
        operation = arrangement.operation
        super().__init__(
            {
                "i": In(stream.Signature(arrangement.beat)),
                "has_room": In(1),
                "reserves": Out(2),
                "in_flight": In(operation).array(len(parameters.operation_ranks)),
                "promotes": In(1),
                "promotes_next": In(1),
                "promotion": In(operation),
                "takes_chunks": In(1),
                "are_settled": In(1),
                "counts": Out(1),
                "offers_chunk": Out(1),
                "operation": Out(operation),
            }
        )
        #: The random numbers of a product, one of each for every lane.
        self._random = {name: operation[name].shape for name in _RANDOM if name in operation.members}
        self._decoded = data.StructLayout({**decoded_control(arrangement.beat), **self._random})
        self.held, self.held_valid = Signal(self._decoded, name="held"), Signal(name="held_valid")
        self.waiting = WaitsBehindRank(parameters.accumulate_latency) if parameters.has_input_rank else None
        self.is_blocked = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, held, held_valid = self.parameters, self.held, self.held_valid
        decoded = Signal(self._decoded, name="decoded")
        m.d.comb += decoded.eq(record(self._decoded, self._decode(m)))

        waits, issued = Signal(), Signal()
        is_promoting = C(0, 1) if self.waiting and self.arrangement.announces else self.promotes
        takes = C(1, 1) if self.waiting else self.takes_chunks
        go = named(m, "go", ~(waits | self.is_blocked | is_promoting) & takes)
        recent = self.recent()
        m.d.comb += issued.eq(held_valid & go)
        if self.waiting:
            m.submodules.waiting = waiting = self.waiting
            # Without a held beat, nothing is waited for.
            load = named(m, "load", go if self.arrangement.announces else ~held_valid | go)
            next_held = {name: Mux(load, decoded[name], held[name]) for name in ("is_chain", "gives_result")}
            # The held beat may be a chunk's product that is issued now.
            settled = self.are_settled & ~self.offers_chunk if 0 in parameters.levels else C(1, 1)
            must_wait = self._must_wait(**next_held, are_settled=settled) | ~self.takes_chunks
            m.d.sync += self.is_blocked.eq((self.promotes_next | must_wait) & (~load | self.i.valid))
            with m.If(load):
                m.d.sync += [held.eq(decoded), held_valid.eq(self.i.valid)]
            register, is_offered = self.i.payload.register, self.i.valid
            m.d.comb += [
                self.i.ready.eq(load),
                # A beat arrives only when the held one, if any, leaves.
                waiting.load.eq(load),
                waiting.leaving.eq(is_offered & held_valid & held.is_sound & (held.register == register)),
                waiting.in_flight.eq(
                    Cat(is_offered & self._is_close(register, operation) for operation in recent[:-1])
                ),
                waits.eq(waiting.waits),
            ]
        else:
            m.d.comb += [
                held.eq(decoded),
                held_valid.eq(self.i.valid),
                self.is_blocked.eq(self._must_wait(held.is_chain, held.gives_result, self.are_settled)),
                self.i.ready.eq(go),
                waits.eq(Cat(self._is_close(held.register, operation) for operation in recent).any()),
            ]
        is_chunk = ~held.is_chain & held.is_sound
        m.d.comb += [self.counts.eq(issued & is_chunk), self.offers_chunk.eq(held_valid & is_chunk)]
        self._issue(m, issued)
        return m

    def _must_wait(self, is_chain: Value, gives_result: Value, are_settled: Value) -> Value:
        """Return whether a beat must wait for operations of other levels, or for a place."""
        return (is_chain & ~are_settled) | (gives_result & ~self.has_room)

    def recent(self) -> Sequence[Any]:
        """Return the operations in flight that a product with the same register must not follow yet."""
        return self.in_flight[: self.parameters.accumulate_latency - 1]

    def _decode(self, m: Module) -> dict[str, Value]:
        parameters, arrangement, beat = self.parameters, self.arrangement, self.i.payload
        control = decode_control(m, parameters, beat, arrangement.needs_even(beat))
        random = {
            name: Cat(arrangement.code(beat, name, lane) for lane in range(arrangement.lanes)) for name in self._random
        }
        return {**control, **random}

    def _is_close(self, register: Value, operation: Any) -> Value:
        """Return whether an operation in flight is a product with the same register."""
        return operation.is_product & (operation.register == register)

    def _issue(self, m: Module, issued: Value) -> None:
        parameters, held, is_promotion = self.parameters, self.held, self.promotes
        product = Signal(self.arrangement.operation, name="product")
        fp32 = len(parameters.accumulators) - 1
        m.d.comb += [
            product.register.eq(held.register),
            product.format.eq(held.format),
            product.accumulator_format.eq(Mux(held.is_chain, fp32, held.format)),
            product.wide.eq(held.is_chain),
            product.fresh.eq(held.first),
            product.last.eq(held.last),
            product.is_product.eq(product.writes),
            product.partial.eq(self.counts if parameters.has_chunks else 0),
            product.wide_total.eq(held.wide_total),
            product.writes.eq(issued & held.is_sound),
            *(product[name].eq(held[name]) for name in rounding_fields(parameters)),
            self.operation.eq(Mux(is_promotion, self.promotion.as_value(), product.as_value())),
            # No product is issued beside a promotion.
            self.operation.error.eq(Mux(issued, held.error, Error.NONE)),
        ]
        is_twofold = named(m, "is_twofold", self.arrangement.is_twofold(held))
        m.d.comb += self.reserves.eq(Mux(issued & held.gives_result, Cat(~is_twofold, is_twofold), 0))
