"""The multiply-accumulate unit: fused steps, several accumulators, precision levels chosen at run time."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.result import flags_layout
from hdl.mac.issue import Issue
from hdl.mac.lane import Lane
from hdl.mac.operation import carry
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import product_beat_layout, result_beat_layout
from hdl.mac.register_file import RegisterFile
from hdl.mac.results import ResultQueue
from hdl.parameters import built_from, documented

__all__ = ["MultiplyAccumulate"]


@documented(MacParameters)
class MultiplyAccumulate(wiring.Component):
    """Reduce streams of products into registers, bit for bit as `golden.dot` does (NUMERICS sections 4 and 5).

    It is the hardware twin of `golden.dot`: the same products, level and chunk length give the same code and flags.

    ::

        product -> Issue -> Lane: unpack, multiply, compare, align, add, normalise, round -> ResultQueue -> result
                     ^                        ^                                        |
                     |                 RegisterFile <---------- accumulator -----------|
                     '---------------- promotion of a chunk: partial * 1.0 ------------'

    A product enters unless its register is in flight; then it waits. With at least `accumulate_latency` registers in
    rotation, one product is accumulated in every cycle; a promotion takes the place of one product. Subnormals take no
    longer than other numbers. A product of level 0 also waits until all products of other levels have left the
    pipeline. Nothing stalls after its issue: a product that will give a result enters only if the queue of results has
    a free place.

    ``first`` starts a reduction from +0; ``last`` ends it and sends the result. A product without ``first`` continues
    from what the register holds, even after ``last``: the result so far is then the initial value. Format and level
    must stay the same from ``first`` to the last continuation. For an empty reduction (K = 0), send the product
    -0 * 1.0 with ``first`` and ``last``, since x + (-0) is x.

    Attributes
    ----------
    latency : int
        Cycles from a product to its result at level 0. At levels 1 and 2 the last promotion adds `stages` cycles, less
        one for each of the ranks ``input`` and ``pack`` that the unit has (see `hdl.mac.parameters`).
    accumulate_latency : int
        Cycles after which the same register can take its next product.
    i : stream of product_beat_layout, in
        Up to 8 stages, ``ready`` depends on the payload.

        - ``a``: first factor, a code of the operand format
        - ``b``: second factor
        - ``format``: index into `operands`
        - ``level``: precision level, 0 to 2
        - ``register``: the accumulator; even at levels 0 and 1
        - ``first``: start a new reduction from +0
        - ``last``: end the reduction and send its result
    o : stream of result_beat_layout, out
        Results of one register keep their order. Those of different registers and levels may overtake each other, and a
        refusal overtakes results that await their promotion.

        - ``result``: code of the outer format, in the low bits
        - ``flags``: those of all steps and promotions, in the order of `golden.Flag`; absent in a unit without flags
        - ``error``: 0, or why the product was refused
        - ``register``: the accumulator that the result is from
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length. Keep it during a reduction.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: What the generated Verilog says about ports that are no struct.
    port_notes: ClassVar = {"chunk": "products in a chunk; 0: one chunk of any length"}

    @built_from(MacParameters)
    def __init__(self, parameters: MacParameters) -> None:
        self.latency, self.accumulate_latency = parameters.latency, parameters.accumulate_latency
        super().__init__(
            {
                "i": In(stream.Signature(product_beat_layout(parameters))),
                "o": Out(stream.Signature(result_beat_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        m.submodules.issue = issue = Issue(parameters)
        operations = self._operations(m, issue)
        m.submodules.lane = lane = Lane(parameters, operations)
        m.submodules.registers = registers = RegisterFile(parameters)
        m.submodules.results = results = ResultQueue(parameters)
        finished = operations[-1]
        m.d.comb += [
            issue.beat.eq(self.i.payload),
            issue.beat_valid.eq(self.i.valid),
            self.i.ready.eq(issue.beat_ready),
            issue.chunk.eq(self.chunk),
            issue.has_room.eq(results.has_room),
            issue.finished.eq(finished),
            issue.promoted.eq(lane.promoted),
            lane.a.eq(issue.a),
            lane.b.eq(issue.b),
            lane.stored.eq(self._read(m, registers, lane, operations)),
            registers.writing.eq(operations[-2]),
            registers.result.eq(lane.number),
            registers.word.eq(lane.word),
            registers.class_reading.eq(operations[parameters.position("align")]),
            lane.stored_class.eq(registers.number_class),
            registers.class_writing.eq(finished),
            registers.result_class.is_infinite.eq(lane.result_class.is_infinite),
            registers.result_class.is_nan.eq(lane.result_class.is_nan),
            results.reserve.eq(issue.reserves),
            results.operation.eq(finished),
            results.code.eq(lane.code),
            self.o.valid.eq(results.o_valid),
            self.o.payload.eq(results.o),
            results.o_ready.eq(self.o.ready),
        ]
        if self.flags:
            # Those of this step and of all before it on the same value.
            flags = finished.flags.as_value() | lane.result_class.flags.as_value()
            m.d.comb += [registers.result_class.flags.eq(flags), results.flags.eq(flags), issue.flags.eq(flags)]
            held = registers.number_class.flags.as_value()
            m.d.comb += self._held_flags.eq(held)
        return m

    def _read(self, m: Module, registers: RegisterFile, lane: Lane, operations: list[Any]) -> Value:
        """Return the accumulator for the operation at rank ``read``."""
        parameters = self.parameters
        reading = operations[parameters.reading_position]
        m.d.comb += registers.reading.eq(reading)
        if not parameters.reads_early:
            return registers.number
        writing = operations[-2]
        same = (reading.register == writing.register) & (reading.partial == writing.partial)
        number, passes_by = Signal.like(registers.number, reset_less=True), Signal(reset_less=True)
        m.d.sync += [number.eq(registers.number), passes_by.eq(same & writing.writes & ~reading.fresh)]
        return Mux(passes_by, lane.result, number)

    def _operations(self, m: Module, issue: Issue) -> list[Any]:
        """Return the operation as issued and behind each rank."""
        parameters = self.parameters
        self._held_flags = Signal(flags_layout())

        def settle(position: int, operation: Any) -> dict[str, Any]:
            changes: dict[str, Any] = {}
            if parameters.has_chunks and position == parameters.chunk_delay:
                changes |= issue.chunks.settle(operation)
            if self.flags and position == parameters.position("align"):
                changes["flags"] = operation.flags.as_value() | self._held_flags.as_value()
            return changes

        return carry(m, issue.operation, issue.in_flight, settle)
