"""Deciding what enters the lanes: the promotion that waits, or else the products of a beat."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data

from hdl.cores.operand import split_code
from hdl.cores.words import named
from hdl.mac.chunks import Chunks
from hdl.mac.decode import decode_control, decoded_control
from hdl.mac.hazards import waits_behind_rank
from hdl.mac.lane import operand_layout, operand_one
from hdl.mac.ports import Error
from hdl.vector.operation import vector_operation_layout
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout
from hdl.vector.promotions import Promotions

__all__ = ["VectorIssue"]


class VectorIssue(Elaboratable):
    """Issue one operation a cycle, to all lanes.

    Promotions go first. A beat waits while

    - one of its row was issued less than `accumulate_latency` cycles ago,
    - it is of level 0 and a chunk is in flight or a promotion waits, which may be to its row,
    - it will give a result and the queue of results has no place left for it,
    - a chunk of it might end and find no place among the promotions.

    Parameters
    ----------
    parameters : VectorParameters

    Attributes
    ----------
    beat, beat_valid, beat_ready : vector_beat_layout, in; in; out
        The products that want to enter.
    chunk : unsigned(chunk_bits), in
    has_room : in
        Whether the queue has places for a further reduction's results.
    reserves : out
        Places that the issued beat will take there: 0, 1 or 2.
    in_flight : list of vector_operation_layout, in
        What stands behind each rank, the first one first.
    promotions : Promotions
    chunks : Chunks
    a, b : list of operand_layout, out
        Of every lane.
    operation : vector_operation_layout, out
        As issued; `chunks` settles the rest of products of chunks.
    """

    def __init__(self, parameters: VectorParameters) -> None:
        self.parameters = parameters
        operation, operand = vector_operation_layout(parameters), operand_layout(parameters.formats)
        beat = vector_beat_layout(parameters)
        self.beat = Signal(beat)
        self.beat_valid, self.beat_ready = Signal(), Signal()
        self.chunk = Signal(parameters.chunk_bits)
        self.has_room, self.reserves = Signal(), Signal(2)
        self.in_flight = [Signal(operation, name=f"in_flight_{n}") for n in range(len(parameters.operation_ranks))]
        self.promotions = Promotions(parameters, self.in_flight)
        self.a = [Signal(operand, name=f"a_{lane}") for lane in range(parameters.lanes)]
        self.b = [Signal(operand, name=f"b_{lane}") for lane in range(parameters.lanes)]
        self.operation = Signal(operation)
        operands = data.ArrayLayout(operand, parameters.lanes)
        self._decoded_layout = data.StructLayout({"a": operands, "b": operands, **decoded_control(beat)})
        self._held = held = Signal(self._decoded_layout, name="held")
        self.chunks = Chunks(parameters, held, self.promotions.counts, held.first, held.last, self.chunk)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, held = self.parameters, self._held
        m.submodules.promotions = promotions = self.promotions
        decoded = Signal(self._decoded_layout, name="decoded")
        self._decode(m, decoded)

        must_wait, issued = Signal(), Signal()
        has_places = promotions.has_room & ~(held.gives_result & ~self.has_room)
        go = named(m, "go", ~must_wait & ~promotions.issues & has_places)
        is_close = self._is_close
        recent = self.in_flight[: parameters.accumulate_latency - 1]
        if parameters.has_input_rank:
            held_valid = Signal()
            load = named(m, "load", ~held_valid | go)
            m.d.comb += [self.beat_ready.eq(load), issued.eq(held_valid & go)]
            with m.If(load):
                m.d.sync += [held.eq(decoded), held_valid.eq(self.beat_valid)]
            register = self.beat.register
            leaving = held_valid & held.is_sound & (held.register == register)
            in_flight = [is_close(register, operation) for operation in recent]
            waits = waits_behind_rank(m, parameters.accumulate_latency, load, leaving, in_flight)
        else:
            m.d.comb += [held.eq(decoded), self.beat_ready.eq(go), issued.eq(self.beat_valid & go)]
            waits = Cat(is_close(held.register, operation) for operation in recent).any()
        m.d.comb += must_wait.eq(waits | (held.is_chain & ~promotions.are_settled))
        self._issue(m, issued)
        if parameters.has_chunks:
            m.submodules.chunks = self.chunks
            m.d.comb += promotions.counts.eq(issued & ~held.is_chain & held.is_sound)
        return m

    def _decode(self, m: Module, decoded: Any) -> None:
        parameters, beat = self.parameters, self.beat
        decode_control(m, parameters, beat, decoded, beat.level == 1)
        for name in ("a", "b"):
            for lane in range(parameters.lanes):
                code = beat[name][lane]
                if lane % 2 == 0 and 0 in parameters.levels:
                    code = Mux(beat.level == 0, beat[name][lane // 2], code)
                split = split_code(m, parameters.operands, beat.format, code)
                m.d.comb += [decoded[name][lane][field].eq(value) for field, value in vars(split).items()]

    def _is_close(self, register: Value, operation: Any) -> Value:
        return operation.writes & operation.is_product & (operation.register == register)

    def _issue(self, m: Module, issued: Value) -> None:
        parameters, held, promotions = self.parameters, self._held, self.promotions
        is_promotion = promotions.issues
        one = named(m, "one", operand_one(parameters.formats, promotions.operation.format))
        for lane in range(parameters.lanes):
            m.d.comb += [
                self.a[lane].eq(Mux(is_promotion, promotions.operands[lane].as_value(), held.a[lane].as_value())),
                self.b[lane].eq(Mux(is_promotion, one, held.b[lane].as_value())),
            ]
        product = Signal(self.operation.shape(), name="product")
        fp32 = len(parameters.accumulators) - 1
        m.d.comb += [
            product.register.eq(held.register),
            product.format.eq(held.format),
            product.accumulator_format.eq(Mux(held.is_chain, fp32, held.format)),
            product.wide.eq(held.is_chain),
            product.fresh.eq(held.first),
            product.last.eq(held.last),
            product.is_product.eq(1),
            product.partial.eq(~held.is_chain if parameters.has_chunks else 0),
            product.wide_total.eq(held.wide_total),
            product.error.eq(Mux(issued, held.error, Error.NONE)),
            product.writes.eq(issued & held.is_sound),
            self.operation.eq(Mux(is_promotion, promotions.operation.as_value(), product.as_value())),
        ]
        is_twofold = held.wide_total & ~held.is_chain & held.is_sound
        m.d.comb += self.reserves.eq(Mux(issued & held.gives_result, Cat(~is_twofold, is_twofold), 0))
