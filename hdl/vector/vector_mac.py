"""The SIMD multiply-accumulate unit: what a precision level buys, in lanes."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.lane import Lane
from hdl.mac.operation import carry
from hdl.parameters import built_from, documented
from hdl.vector.issue import VectorIssue
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout, vector_result_layout
from hdl.vector.register_file import VectorRegisterFile
from hdl.vector.results import VectorResultQueue

__all__ = ["VectorMac"]


@documented(VectorParameters)
class VectorMac(wiring.Component):
    """Reduce streams of products in several lanes at once, each bit for bit as `golden.dot` does (NUMERICS section 5).

    ::

                              .- lane 0  fp32 and 16-bit -.   row of registers, 16 bits a lane:
        products -> Issue ----+- lane 1  16-bit only     -+-> [ 0 | 1 | 2 | 3 ]  as 16-bit numbers -> results
                       ^      +- lane 2  fp32 and 16-bit -+   [   0   |   2   ]  as fp32 numbers
                       |      '- lane 3  16-bit only     -'               |
                       '------- queue of promotions <---------------------'

    An fp32 accumulator is a pair of 16-bit registers, and every other lane can do fp32. So a beat has as many products
    as there are lanes at levels 1 and 2, but half as many at level 0:

    =====  ================  =============================  =================  ============================
    level  elements          totals                         register           issue cycles of a promotion
    =====  ================  =============================  =================  ============================
    0      0 .. lanes/2 - 1  element j: row r, fp32 pair j  any                none
    1      0 .. lanes - 1    element 2j: row r, pair j;      even               2
                             element 2j+1: row r+1, pair j
    2      0 .. lanes - 1    element i: row r, lane i        any                1
    =====  ================  =============================  =================  ============================

    ``first``, ``last``, continuations and empty reductions are as in `hdl.MultiplyAccumulate`, alike in all lanes.
    Results, as words of 32 bits j = 0 .. lanes/2 - 1:

    =====  =====  ========  ==============================================  ====================================
    level  beats  ``part``  ``result[j]``                                   ``flags``
    =====  =====  ========  ==============================================  ====================================
    0      1      0         element j, fp32                                 [2j]: element j; [2j+1]: 0
    1      2      0         element 2j, fp32                                [2j]: element 2j; [2j+1]: 0
    ..     ..     1         element 2j+1, fp32                              [2j]: element 2j+1; [2j+1]: 0
    2      1      0         bits 15..0: element 2j; 31..16: element 2j+1    [i]: element i
    =====  =====  ========  ==============================================  ====================================

    Part 1 follows part 0 at once. Throughput: one beat a cycle over at least `accumulate_latency` rows (pairs of rows
    at level 1) in rotation, less the issue cycles of promotions. Nothing stalls after its issue: a beat enters only if
    there is a place for its results and its promotions.

    Attributes
    ----------
    latency : int
        Cycles from a beat to its result at level 0.
    promotion_latency : int
        Additional cycles of a result at level 2, if its promotion need not wait. At level 1, part 0 takes as many, and
        part 1 one more.
    accumulate_latency : int
        Cycles after which the same row can take its next products.
    i : stream of vector_beat_layout, in
        ``ready`` may depend on the payload.

        - ``a[lanes]``: first factors, codes of the operand format
        - ``b[lanes]``: second factors
        - ``format``: index into `operands`
        - ``level``: precision level, 0 to 2
        - ``register``: the row of accumulators; even at level 1
        - ``first``: start a new reduction from +0 in every lane
        - ``last``: end the reductions and send their results
    o : stream of vector_result_layout, out
        Results of one row keep their order. Those of different rows and levels may overtake each other, and a refusal
        overtakes results that await their promotion.

        - ``result[lanes / 2]``: words of 32 bits, see the table
        - ``flags[lanes]``: those of all steps and promotions of a lane; absent in a unit without flags
        - ``error``: 0, or why the beat was refused
        - ``register``: the row that the results are from
        - ``part``: 1 in the second beat of a result at level 1
    chunk : unsigned(chunk_bits), in
        Products of a lane in a chunk; 0 is one chunk of any length. Keep it during a reduction.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: What the generated Verilog says about ports that are no struct.
    port_notes: ClassVar = {"chunk": "products of a lane in a chunk; 0: one chunk of any length"}

    @built_from(VectorParameters)
    def __init__(self, parameters: VectorParameters) -> None:
        self.latency, self.accumulate_latency = parameters.latency, parameters.accumulate_latency
        self.promotion_latency = parameters.promotion_latency
        super().__init__(
            {
                "i": In(stream.Signature(vector_beat_layout(parameters))),
                "o": Out(stream.Signature(vector_result_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        m.submodules.issue = issue = VectorIssue(parameters)
        m.submodules.registers = registers = VectorRegisterFile(parameters)
        m.submodules.results = results = VectorResultQueue(parameters)

        def settle(position: int, operation: Any) -> dict[str, Value]:
            counted = parameters.has_chunks and position == parameters.chunk_delay
            return issue.chunks.settle(operation) if counted else {}

        operations = carry(m, issue.operation, issue.in_flight, settle)
        finished = operations[-1]
        m.d.comb += [
            issue.beat.eq(self.i.payload),
            issue.beat_valid.eq(self.i.valid),
            self.i.ready.eq(issue.beat_ready),
            issue.chunk.eq(self.chunk),
            issue.has_room.eq(results.has_room),
            issue.promotions.finished.eq(finished),
            registers.reading.eq(operations[parameters.position("read")]),
            registers.class_reading.eq(operations[parameters.position("align")]),
            registers.writing.eq(operations[-2]),
            registers.class_writing.eq(finished),
            results.reserves.eq(issue.reserves),
            results.operation.eq(finished),
            self.o.valid.eq(results.o_valid),
            self.o.payload.eq(results.o),
            results.o_ready.eq(self.o.ready),
        ]
        for number in range(parameters.lanes):
            if number % 2 and not parameters.has_chunks:
                continue  # Only its registers are needed.
            m.submodules[f"lane_{number}"] = lane = Lane(parameters.of_lane(number), operations)
            result_class = registers.result_classes[number]
            m.d.comb += [
                lane.a.eq(issue.a[number]),
                lane.b.eq(issue.b[number]),
                lane.stored.eq(registers.numbers[number]),
                lane.stored_class.eq(registers.classes[number]),
                registers.results[number].eq(lane.number),
                result_class.is_infinite.eq(lane.result_class.is_infinite),
                result_class.is_nan.eq(lane.result_class.is_nan),
                results.codes[number].eq(lane.code),
                issue.promotions.promoted[number].eq(lane.promoted),
            ]
            if self.flags:
                flags = self._flags(m, number, issue.promotions, registers, lane)
                m.d.comb += [
                    result_class.flags.eq(flags),
                    results.flags[number].eq(flags),
                    issue.promotions.flags[number].eq(flags),
                ]
        return m

    def _flags(self, m: Module, number: int, promotions: Any, registers: VectorRegisterFile, lane: Lane) -> Value:
        """Return those of this step and of all before it on the same value: of its chunk and of its accumulator."""
        parameters = self.parameters
        ranks = len(parameters.operation_ranks)
        current: Value = promotions.operand_flags[number].as_value() & promotions.issues.replicate(5)
        for position in range(ranks + 1):
            if position == parameters.position("align"):
                current = current | registers.classes[number].flags.as_value()
            if position < ranks:
                behind = Signal(current.shape(), name=f"flags_{number}_{position + 1}")
                m.d.sync += behind.eq(current)
                current = behind
        return current | lane.result_class.flags.as_value()
