# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The multiply-accumulate unit: fused steps, several accumulators, precision levels chosen at run time."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.accumulator import Accumulator
from hdl.mac.arrangement import one_lane
from hdl.mac.control import Control
from hdl.mac.counters import Counters, connect_counters, counting_ports
from hdl.mac.issue import Issue
from hdl.mac.lane import Lane
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, product_beat_layout, result_beat_layout
from hdl.mac.promotions import ReturningPromotions
from hdl.mac.results import SinglePlaces
from hdl.mac.widen import widened
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

    A product waits while its register is in flight. With at least `accumulate_latency` registers in rotation, one
    product is accumulated in every cycle; a promotion takes the place of one product. Subnormals take no longer than
    other numbers. A product of level 0 also waits until all products of other levels have left the pipeline. Nothing
    stalls after its issue: a product with a result enters only if the queue of results has a free place.

    ``first`` starts a reduction from +0; ``last`` ends it and sends the result. A product without ``first`` adds to the
    register's value, even after ``last``: the previous result is then the initial value. Format and level must stay the
    same from ``first`` to the last continuation. For an empty reduction (K = 0), send the product -0 * 1.0 with
    ``first`` and ``last``, since x + (-0) is x; in the rounding mode ``down`` send +0 * 1.0.

    With several rounding modes, every product brings the mode of its step, also within a chunk. The promotion of a
    chunk takes the mode and the ``random_promotion`` of the product that ended the chunk.

    A reset clears the pipeline and the queue of results. A register without operations in flight keeps its value, and
    its reduction may continue. Start all others with ``first``. A product accepted in a cycle of the reset is lost,
    too; with up to 8 stages it counts as in flight.

    Attributes
    ----------
    latency : int
        Cycles from a product to its result at level 0. At levels 1 and 2 the last promotion adds `stages` cycles, less
        one for each of the ranks ``input`` and ``pack`` in the unit (see `hdl.mac.parameters`).
    accumulate_latency : int
        Cycles until the same register can take its next product.
    i : stream of product_beat_layout, in
        Up to 8 stages, ``ready`` depends on the payload.

        - ``a``: first factor, a code of the operand format
        - ``b``: second factor
        - ``format``: index into `operands`
        - ``level``: precision level, 0 to 2
        - ``register``: the accumulator; even at levels 0 and 1
        - ``first``: start a new reduction from +0
        - ``last``: end the reduction and send its result
        - ``rounding``: code of the mode (NUMERICS section 9), 3 bits; absent with a single mode
        - ``random``: `random_bits` bits (NUMERICS section 10) for the step; absent unless ``stochastic`` is among the
          modes
        - ``random_promotion``: the same for the promotion that the product causes; absent without levels 1 and 2, too
    o : stream of result_beat_layout, out
        Results of one register keep their order. Results of different registers and levels may overtake each other, and
        a refusal overtakes results that await their promotion.

        - ``result``: code of the outer format, in the low bits
        - ``flags``: OR of the flags of all steps and promotions, as in `golden.Flag`; absent in a unit without flags
        - ``error``: 0, or the reason for a refusal
        - ``register``: the accumulator of the result
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length. Keep it stable from the first product of a
        reduction until its last one is accepted.
    counts : counts_layout, out
        Only with ``counters``: 32-bit counts since the last reset or clear, which saturate at 2^32 - 1. A step of a
        reduction is counted no later than two cycles after its result is offered.

        - ``products``: ``steps`` that added a product; steps that raised ``inexact``, ``underflow``, ``overflow``,
          ``invalid``; and ``swamped`` steps. A step is swamped if the addends are finite, the product is not 0, and the
          result equals the accumulator.
        - ``promotions``: the same for steps that add a partial sum to its total; 0 without levels 1 and 2
    clear_counts : in
        Only with ``counters``: restart from 0. Steps counted in the same cycle belong to the new counts. The counts
        shown while it is 1 and the later ones together contain every step once.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: Comments in the generated Verilog for ports that are not structs.
    port_notes: ClassVar[dict[str, str]] = {
        "chunk": "products in a chunk; 0: one chunk of any length",
        "clear_counts": "count from 0 again",
        "counts": "counters of 32 bits, which stop at 2^32 - 1",
    }
    #: Classes of parts that a subclass may replace. A lane has the ports of `hdl.mac.lane.lane_signature`, and is
    #: constructed from the parameters.
    lane_type: ClassVar[type[Any]] = Lane
    issue_type: ClassVar[type[Issue]] = Issue

    @built_from(MacParameters)
    def __init__(self, parameters: MacParameters) -> None:
        self.build(parameters)

    def build(self, parameters: MacParameters) -> None:
        """Create the ports; called by subclasses with another class of parameters."""
        self.latency, self.accumulate_latency = parameters.latency, parameters.accumulate_latency
        super().__init__(
            {
                "i": In(stream.Signature(product_beat_layout(parameters))),
                "o": Out(stream.Signature(result_beat_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
                **counting_ports(counters=parameters.counters),
            }
        )

    @cached_property
    def control(self) -> Control:
        """The control: it issues, counts and queues. Like every part, it is created on first use."""
        parameters = self.parameters.core
        arrangement = one_lane(parameters)
        return Control(
            parameters,
            arrangement,
            result_beat_layout(parameters),
            issue=self.issue_type(parameters, arrangement),
            promotions=ReturningPromotions(parameters, arrangement),
            places=SinglePlaces(parameters.results, looks_ahead=parameters.has_input_rank),
        )

    @cached_property
    def accumulator(self) -> Accumulator:
        """The lane and its registers."""
        parameters = self.parameters.core
        return Accumulator(parameters, one_lane(parameters).operation, self.lane_type(parameters))

    @cached_property
    def counting(self) -> Counters | None:
        """The counters, if the unit has any."""
        return Counters((True,), has_chunks=self.parameters.has_chunks) if self.parameters.counters else None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.control, m.submodules.accumulator = control, accumulator = self.control, self.accumulator
        i, chunk = widened(m, self.parameters, self.i, self.chunk, control.i.payload.shape())
        m.d.comb += [
            control.i.payload.eq(i.payload),
            control.i.valid.eq(i.valid),
            i.ready.eq(control.i.ready),
            control.chunk.eq(chunk),
            accumulator.a.eq(control.a[0]),
            accumulator.b.eq(control.b[0]),
            accumulator.issued_flags.eq(control.issued_flags[0]),
            control.promoted[0].eq(accumulator.promoted),
            control.flags[0].eq(accumulator.flags),
            *(there.eq(operation) for there, operation in zip(accumulator.at, control.at, strict=True)),
        ]
        self._answer(m)
        if self.counting:
            m.submodules.counting = counting = self.counting
            m.d.comb += [counting.events[0].eq(accumulator.events), *connect_counters(self, counting, control.at[-1])]
        return m

    def _answer(self, m: Module) -> None:
        """Write results into the queue; output its first entry, with zeros for a refusal."""
        control, entry, first = self.control, self.control.entry, self.control.o.payload
        m.d.comb += [
            entry.result.eq(self.accumulator.code),
            entry.error.eq(control.packed.error),
            entry.register.eq(control.packed.register),
            self.o.payload.error.eq(first.error),
            self.o.payload.register.eq(first.register),
            self.o.valid.eq(control.o.valid),
            control.o.ready.eq(self.o.ready),
        ]
        if self.flags:
            flags = self.accumulator.flags
            if "pack" in self.parameters.ranks:
                flags = Signal.like(flags, reset_less=True)
                m.d.sync += flags.eq(self.accumulator.flags)
            m.d.comb += entry.flags.eq(flags)
        with m.If(first.error == Error.NONE):
            m.d.comb += self.o.payload.result.eq(first.result)
            if self.flags:
                m.d.comb += self.o.payload.flags.eq(first.flags)
