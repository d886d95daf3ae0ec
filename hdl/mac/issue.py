"""Deciding what enters the pipeline: promotions, products, hazards, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data

from hdl.cores.operand import split_code
from hdl.cores.result import flags_layout
from hdl.cores.words import named
from hdl.mac.chunks import Chunks
from hdl.mac.decode import decode_control, decoded_control
from hdl.mac.hazards import waits_behind_rank
from hdl.mac.lane import operand_layout, operand_one
from hdl.mac.operation import operation_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, product_beat_layout

__all__ = ["Issue"]


class Issue(Elaboratable):
    """Issue one operation a cycle: the promotion that comes back from the end of the pipeline, or else a product.

    A promotion never waits, and nothing queues. A product waits while

    - a product of its register was issued less than `accumulate_latency` cycles ago,
    - it is of level 0 and anything of another level is in the pipeline, whose promotion may be to its register,
    - it will give a result and the queue has no place left for it.

    Promotions of one register need no such check: they follow their products, which keep that distance, by a fixed
    number of cycles.

    With a rank ``input`` the beat is held, taken apart, and products in flight are compared with it on its way there,
    so that what is left to decide is short.

    Parameters
    ----------
    parameters : MacParameters

    Attributes
    ----------
    beat, beat_valid, beat_ready : product_beat_layout, in; in; out
        The product that wants to enter.
    chunk : unsigned(chunk_bits), in
    has_room : in
        Whether the queue has a place for a further result.
    finished, promoted, flags : operation_layout, operand_layout, flags_layout, in
        What stands behind the last rank; its result as an operand, and flags.
    in_flight : list of operation_layout, in
        What stands behind each rank, the first one first.
    a, b : operand_layout, out
    operation : operation_layout, out
        As issued; ``fresh``, ``promote``, ``fresh_total`` of products of chunks are settled by `chunks`.
    reserves : out
        A product that will give a result is issued.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        operation, operand = operation_layout(parameters), operand_layout(parameters.formats)
        self.beat = Signal(product_beat_layout(parameters))
        self.beat_valid, self.beat_ready = Signal(), Signal()
        self.chunk = Signal(parameters.chunk_bits)
        self.has_room, self.reserves = Signal(), Signal()
        self.finished, self.promoted, self.flags = Signal(operation), Signal(operand), Signal(flags_layout())
        self.in_flight = [Signal(operation, name=f"in_flight_{n}") for n in range(len(parameters.operation_ranks))]
        self.a, self.b, self.operation = Signal(operand), Signal(operand), Signal(operation)
        self._held = Signal(self._decoded_layout(), name="held")
        self._held_valid, self._is_counted = Signal(), Signal()
        if parameters.has_chunks:
            self.chunks = Chunks(
                parameters, self.operation, self._is_counted, self._held.first, self._held.last, self.chunk
            )

    def _decoded_layout(self) -> data.StructLayout:
        """Return a beat taken apart, and what can be said of it without knowing what is in flight."""
        operand = operand_layout(self.parameters.formats)
        control = decoded_control(product_beat_layout(self.parameters))
        return data.StructLayout({"a": operand, "b": operand, **control})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, held = self.parameters, self._held
        decoded = Signal(self._decoded_layout(), name="decoded")
        self._decode(m, decoded)

        promoting = named(m, "promoting", self.finished.promote)
        must_wait, issued = Signal(), Signal()
        go = named(m, "go", ~must_wait & ~promoting & ~(held.gives_result & ~self.has_room))
        if parameters.has_input_rank:
            held_valid = self._held_valid
            load = named(m, "load", ~held_valid | go)
            m.d.comb += [self.beat_ready.eq(load), issued.eq(held_valid & go)]
            with m.If(load):
                m.d.sync += [held.eq(decoded), held_valid.eq(self.beat_valid)]
            m.d.comb += must_wait.eq(self._waits_behind_rank(m, load) | self._waits_for_others(m))
        else:
            m.d.comb += [self._held_valid.eq(self.beat_valid), held.eq(decoded)]
            m.d.comb += [self.beat_ready.eq(go), issued.eq(self.beat_valid & go)]
            reasons = [self._is_hazard(held.register, operation) for operation in self._recent()]
            m.d.comb += must_wait.eq(Cat(*reasons).any() | self._waits_for_others(m))
        m.d.comb += self.reserves.eq(issued & held.gives_result)
        self._issue(m, issued, promoting)
        if parameters.has_chunks:
            m.submodules.chunks = self.chunks
            m.d.comb += self._is_counted.eq(issued & ~held.is_chain & held.is_sound)
        return m

    def _decode(self, m: Module, decoded: Any) -> None:
        parameters, beat = self.parameters, self.beat
        for name in ("a", "b"):
            split = split_code(m, parameters.operands, beat.format, beat[name])
            m.d.comb += [decoded[name][field].eq(value) for field, value in vars(split).items()]
        decode_control(m, parameters, beat, decoded, C(1, 1))

    # -- hazards

    def _recent(self) -> Sequence[Any]:
        """Return the operations in flight that a product of the same register must not follow yet."""
        return self.in_flight[: max(self.parameters.accumulate_latency - 1, 0)]

    def _is_hazard(self, register: Value, operation: Any) -> Value:
        return operation.writes & operation.is_product & (operation.register == register)

    def _waits_behind_rank(self, m: Module, load: Value) -> Value:
        """Tell whether a product of the held beat's register is too close."""
        register = self.beat.register
        # A beat arrives only when the held one, if there is one, leaves.
        leaving = self._held_valid & self._held.is_sound & (self._held.register == register)
        in_flight = [self._is_hazard(register, operation) for operation in self._recent()]
        return waits_behind_rank(m, self.parameters.accumulate_latency, load, leaving, in_flight)

    def _waits_for_others(self, m: Module) -> Value:
        """Tell whether the product is of level 0 and something of another level may be in flight."""
        parameters = self.parameters
        if not (0 in parameters.levels and parameters.has_chunks):
            return C(0, 1)

        # Counted from one cycle after the issue, and from a product that may be issued: the time is short there.
        newest = self.in_flight[0]
        recent = named(m, "other_issued", newest.writes & ~(newest.is_product & ~newest.partial))
        left = Signal(range(parameters.stages + 1), name="cycles_of_others")
        others = Signal(name="others_in_flight")
        m.d.sync += [
            left.eq(Mux(recent, parameters.stages, left - (left != 0))),
            others.eq(
                self.finished.promote
                | (self._held_valid & self._held.is_sound & ~self._held.is_chain)
                | recent
                | (left > 1)
            ),
        ]
        return self._held.is_chain & others

    # -- what is issued

    def _issue(self, m: Module, issued: Value, promoting: Value) -> None:
        parameters, held, finished, operation = self.parameters, self._held, self.finished, self.operation
        fp32 = len(parameters.accumulators) - 1
        one = operand_one(parameters.formats, finished.format)
        m.d.comb += [
            self.a.eq(Mux(promoting, self.promoted.as_value(), held.a.as_value())),
            self.b.eq(Mux(promoting, one, held.b.as_value())),
        ]
        with m.If(promoting):
            m.d.comb += [
                operation.register.eq(finished.register),
                operation.format.eq(finished.format),
                operation.accumulator_format.eq(Mux(finished.wide_total, fp32, finished.format)),
                operation.wide.eq(finished.wide_total),
                operation.fresh.eq(finished.fresh_total),
                operation.last.eq(finished.last),
                operation.flags.eq(self.flags),
                operation.writes.eq(1),
                # Said here too, not by default alone: constant bits of a signal that depends on conditions become an
                # `always @*` of the Verilog, which no simulator ever enters.
                operation.promote.eq(0),
                operation.fresh_total.eq(0),
            ]
        with m.Else():
            m.d.comb += [
                operation.register.eq(held.register),
                operation.format.eq(held.format),
                operation.accumulator_format.eq(Mux(held.is_chain, fp32, held.format)),
                operation.wide.eq(held.is_chain),
                operation.fresh.eq(held.first),
                operation.last.eq(held.last),
                operation.is_product.eq(1),
                operation.partial.eq(~held.is_chain if parameters.has_chunks else 0),
                operation.wide_total.eq(held.wide_total),
                operation.error.eq(Mux(issued, held.error, Error.NONE)),
                operation.writes.eq(issued & held.is_sound),
            ]
