# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The SIMD multiply-accumulate unit: several lanes under one control."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.control import Control
from hdl.mac.counters import Counters, connect_counters, counting_ports
from hdl.mac.flags import Flags
from hdl.mac.issue import Issue
from hdl.mac.lane import Lane
from hdl.mac.operands import GROUP, groups_of
from hdl.mac.widen import widened
from hdl.parameters import built_from, documented
from hdl.vector.arrangement import Places, pairs_of_lanes
from hdl.vector.group import LaneGroup
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout, vector_result_layout
from hdl.vector.promotions import QueuedPromotions

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

    An fp32 accumulator is a pair of 16-bit registers, and every other lane has fp32. A beat therefore has one product
    for each lane at levels 1 and 2, but half as many at level 0:

    =====  ================  =============================  =================  ============================
    level  elements          totals                         register           issue cycles of a promotion
    =====  ================  =============================  =================  ============================
    0      0 .. lanes/2 - 1  element j: row r, fp32 pair j  any                none
    1      0 .. lanes - 1    element 2j: row r, pair j;      even               2
                             element 2j+1: row r+1, pair j
    2      0 .. lanes - 1    element i: row r, lane i        any                1
    =====  ================  =============================  =================  ============================

    ``first``, ``last``, continuations, empty reductions and rounding modes are as in `hdl.MultiplyAccumulate` and the
    same in all lanes; each lane has separate random numbers. With 9 stages and more, operands take a cycle more to the
    lanes than the control needs to decide, so that a decision reaches many lanes through registers of each pair.
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

    A reset clears the pipeline and the queues. The rows of registers keep their values: start the next reductions with
    ``first``.

    Attributes
    ----------
    latency : int
        Cycles from a beat to its result at level 0.
    promotion_latency : int
        Additional cycles of a result at level 2, if its promotion need not wait. At level 1, part 0 takes as many, and
        part 1 one more.
    accumulate_latency : int
        Cycles until the same row can take its next products.
    i : stream of vector_beat_layout, in
        ``ready`` may depend on the payload.

        - ``a[lanes]``: first factors, codes of the operand format
        - ``b[lanes]``: second factors
        - ``format``: index into `operands`
        - ``level``: precision level, 0 to 2
        - ``register``: the row of accumulators; even at level 1
        - ``first``: start a new reduction from +0 in every lane
        - ``last``: end the reductions and send their results
        - ``rounding``: code of the mode in every lane; absent with a single mode
        - ``random[lanes]``: random numbers, in the lanes of the factors; absent unless ``stochastic`` is a mode
        - ``random_promotion[lanes]``: the same for the promotions that the beat causes; absent without levels 1 and 2,
          too
    o : stream of vector_result_layout, out
        Results of one row keep their order. Results of different rows and levels may overtake each other, and a refusal
        overtakes results that await their promotion.

        - ``result[lanes / 2]``: words of 32 bits, see the table
        - ``flags[lanes]``: OR of the flags of all steps and promotions of a lane; absent in a unit without flags
        - ``error``: 0, or the reason for a refusal
        - ``register``: the row of the results
        - ``part``: 1 in the second beat of a result at level 1
    chunk : unsigned(chunk_bits), in
        Products of a lane in a chunk; 0 is one chunk of any length. Keep it stable from the first product of a
        reduction until its last one is accepted.
    counts, clear_counts : counts_layout, out; in
        Only with ``counters``: counts over all lanes, as in `hdl.MultiplyAccumulate`. A step is counted no
        later than two cycles after its result is offered.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: Comments in the generated Verilog for ports that are not structs.
    port_notes: ClassVar[dict[str, str]] = {
        "chunk": "products of a lane in a chunk; 0: one chunk of any length",
        "clear_counts": "count from 0 again",
        "counts": "counters of 32 bits, which stop at 2^32 - 1",
    }
    #: Classes of parts that a subclass may replace: see `hdl.MultiplyAccumulate`.
    lane_type: ClassVar[type[Any]] = Lane
    promotions_type: ClassVar[type[QueuedPromotions]] = QueuedPromotions

    @built_from(VectorParameters)
    def __init__(self, parameters: VectorParameters) -> None:
        self.build(parameters)

    def build(self, parameters: VectorParameters) -> None:
        """Create the ports; called by subclasses with another class of parameters."""
        self.latency, self.accumulate_latency = parameters.latency, parameters.accumulate_latency
        self.promotion_latency = parameters.promotion_latency
        super().__init__(
            {
                "i": In(stream.Signature(vector_beat_layout(parameters))),
                "o": Out(stream.Signature(vector_result_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
                **counting_ports(counters=parameters.counters),
            }
        )

    @cached_property
    def control(self) -> Control:
        """The control: it issues, counts and queues. Like every part, it is created on first use."""
        parameters = self.parameters.core
        arrangement = pairs_of_lanes(parameters)
        return Control(
            parameters,
            arrangement,
            vector_result_layout(parameters),
            issue=Issue(parameters, arrangement),
            promotions=self.promotions_type(parameters, arrangement),
            places=Places(
                parameters.results, 2 if parameters.has_pairs_of_rows else 1, looks_ahead=parameters.has_input_rank
            ),
        )

    @cached_property
    def groups(self) -> list[LaneGroup]:
        """The lanes and their registers, in groups."""
        core, operation = self.parameters.core, pairs_of_lanes(self.parameters.core).operation
        return [LaneGroup(core, operation, lanes, self.lane_type) for lanes in groups_of(core.lanes)]

    @property
    def lane_parts(self) -> dict[int, Any]:
        """The lanes that are built, by their number."""
        return {number: lane for group in self.groups for number, lane in group.lanes_built.items()}

    @property
    def flag_parts(self) -> dict[int, Flags]:
        """The flags of each lane, by its number; none in a unit without flags."""
        return {number: flags for group in self.groups for number, flags in group.flag_parts.items()}

    @cached_property
    def counting(self) -> Counters | None:
        """The counters, if the unit has any."""
        lanes = tuple(number % 2 == 0 for number in self.lane_parts)
        return Counters(lanes, has_chunks=self.parameters.has_chunks) if self.parameters.counters else None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control = self.control
        m.submodules.control = control
        i, chunk = widened(m, self.parameters, self.i, self.chunk, control.i.payload.shape())
        m.d.comb += [
            control.i.payload.eq(i.payload),
            control.i.valid.eq(i.valid),
            i.ready.eq(control.i.ready),
            control.chunk.eq(chunk),
            self.o.payload.eq(control.o.payload),
            self.o.valid.eq(control.o.valid),
            control.o.ready.eq(self.o.ready),
        ]
        for number, group in enumerate(self.groups):
            m.submodules[f"group_{number}"] = group
            m.d.comb += [there.eq(operation) for there, operation in zip(group.at, control.at, strict=True)]
            lanes = slice(number * GROUP, (number + 1) * GROUP)
            for ours, theirs in (
                (group.a, control.a[lanes]),
                (group.b, control.b[lanes]),
                (group.issued_flags, control.issued_flags[lanes]),
                (control.promoted[lanes], group.promoted),
                (control.flags[lanes], group.flags),
            ):
                m.d.comb += [there.eq(here) for there, here in zip(ours, theirs, strict=True)]
        self._answer(m)
        if self.counting:
            m.submodules.counting = counting = self.counting
            m.d.comb += connect_counters(self, counting, control.at[-1])
            for there, number in zip(counting.events, self.lane_parts, strict=True):
                m.d.comb += there.eq(self.groups[number // GROUP].events[number % GROUP])
        return m

    def _answer(self, m: Module) -> None:
        """Write results into the queue."""
        operation, entry = self.control.packed, self.control.entry
        m.d.comb += [
            entry.error.eq(operation.error),
            # The row of the beat, even if the result comes from the row after it.
            entry.register.eq(Cat(operation.register[0] & ~operation.is_second, operation.register[1:])),
            entry.part.eq(operation.is_second),
        ]
        words = [word for group in self.groups for word in group.words]
        m.d.comb += [there.eq(word) for there, word in zip(entry.result, words, strict=True)]
        if self.flags:
            flags = [raised for group in self.groups for raised in group.answer_flags]
            m.d.comb += [there.eq(raised) for there, raised in zip(entry.flags, flags, strict=True)]
