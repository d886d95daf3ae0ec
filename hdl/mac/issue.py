"""Deciding what enters the pipeline: chunks, promotions, hazards, refusals."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.cores.round import result_layout
from hdl.cores.words import choose, named
from hdl.mac.operation import operation_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, product_beat_layout

__all__ = ["Issue", "issued_layout"]


def issued_layout(parameters: MacParameters) -> data.StructLayout:
    """Return an operation and the codes of its two factors."""
    width = parameters.formats.operand_width
    return data.StructLayout({"a": width, "b": width, "operation": operation_layout(parameters)})


class Issue(wiring.Component):
    """Issue one operation a cycle: the promotion that comes back from the end of the pipeline, or else a product.

    A promotion never waits, and nothing queues. A product waits (``ready`` low) while an operation in flight will
    write what it must read, which is so for

    - a product of level 1 or 2: another one of its register, issued less than `accumulate_latency` cycles ago;
    - a product of level 0: a step on the total of its pair, issued less than `accumulate_latency` cycles ago, or a
      product of its pair whose promotion is still to come.

    Promotions of one register need no such check: they follow their products, which keep that distance, by a fixed
    number of cycles.

    Parameters
    ----------
    parameters : MacParameters

    Ports
    -----
    beat, beat_valid, beat_ready : product_beat_layout, in; in; out
        The product that wants to enter.
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length.
    enable : in
        Whether the pipeline moves in this cycle.
    finished, finished_valid, finished_result : operation_layout, in; in; result_layout, in
        What stands in the last rank.
    in_flight_0, in_flight_0_valid ... : operation_layout, in; in
        What stands in each rank, the first rank first.
    o, o_valid : issued_layout, out; out
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        operation = operation_layout(parameters)
        ports = {
            "beat": In(product_beat_layout(parameters)),
            "beat_valid": In(1),
            "beat_ready": Out(1),
            "chunk": In(parameters.chunk_bits),
            "enable": In(1),
            "finished_result": In(result_layout(parameters.formats.accumulator_width)),
            "o": Out(issued_layout(parameters)),
            "o_valid": Out(1),
        }
        for position in range(parameters.latency):
            ports |= {f"in_flight_{position}": In(operation), f"in_flight_{position}_valid": In(1)}
        super().__init__(ports)

    def _must_wait(self, is_chain: Value) -> Value:
        """Tell whether the product must wait for an operation in flight."""
        parameters, register = self.parameters, self.beat.register
        reasons = []
        for position in range(parameters.latency):
            operation = getattr(self, f"in_flight_{position}")
            is_real = getattr(self, f"in_flight_{position}_valid") & (operation.error == Error.NONE)
            same_pair = operation.register[1:] == register[1:]
            same_register = same_pair & (operation.register[0] == register[0])
            if position + 1 < parameters.accumulate_latency:
                reasons.append(is_real & ~is_chain & operation.partial & same_register)
                reasons.append(is_real & is_chain & ~operation.partial & same_pair)
            reasons.append(is_real & is_chain & operation.promote & same_pair)
        return Cat(*reasons).any()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, beat, o = self.parameters, self.beat, self.o.operation
        last_position = parameters.latency - 1
        finished = getattr(self, f"in_flight_{last_position}")
        promoting = named(m, "promoting", getattr(self, f"in_flight_{last_position}_valid") & finished.promote)

        is_chain = named(m, "is_chain", beat.level == 0)
        wide_total = named(m, "wide_total", beat.level != 2)
        supported = Cat(beat.level == level for level in parameters.levels).any()
        if len(beat.format):
            supported &= beat.format < len(parameters.operands)
        misaligned = wide_total & beat.register[0]
        error = named(m, "error", Mux(~supported, Error.UNSUPPORTED, Mux(misaligned, Error.ALIGNMENT, Error.NONE)))
        accepted = named(m, "accepted", self.beat_valid & self.beat_ready & (error == Error.NONE))

        fp32 = len(parameters.accumulators) - 1
        m.d.comb += [
            self.beat_ready.eq(self.enable & ~promoting & ~self._must_wait(is_chain)),
            self.o_valid.eq((self.beat_valid & self.beat_ready) | promoting),
        ]
        with m.If(promoting):
            one = choose(finished.format, [fmt.one for fmt in parameters.operands])
            m.d.comb += [
                self.o.a.eq(self.finished_result.bits),
                self.o.b.eq(one),
                o.register.eq(finished.register),
                o.format.eq(finished.format),
                o.accumulator_format.eq(Mux(finished.wide_total, fp32, finished.format)),
                o.wide.eq(finished.wide_total),
                o.fresh.eq(finished.fresh_total),
                o.last.eq(finished.last),
                o.flags.eq(self.finished_result.flags),
            ]
        with m.Else():
            m.d.comb += [
                self.o.a.eq(beat.a),
                self.o.b.eq(beat.b),
                o.register.eq(beat.register),
                o.format.eq(beat.format),
                o.accumulator_format.eq(Mux(is_chain, fp32, beat.format)),
                o.wide.eq(is_chain),
                o.fresh.eq(beat.first),
                o.last.eq(beat.last),
                o.error.eq(error),
            ]
            if parameters.has_chunks:
                self._add_chunks(m, accepted & ~is_chain, is_chain, wide_total)
            else:
                # Not left to their defaults: a bit that nothing assigns becomes an `always @*` without inputs in the
                # Verilog, which a simulator never runs, so that the bit stays unknown.
                m.d.comb += [o.partial.eq(0), o.promote.eq(0), o.fresh_total.eq(0), o.wide_total.eq(0)]
        return m

    def _add_chunks(self, m: Module, counts: Value, is_chain: Value, wide_total: Value) -> None:
        """Count the products of each register's chunk; the flag says that no chunk has been promoted since `first`."""
        parameters, beat, o = self.parameters, self.beat, self.o.operation
        state = data.StructLayout({"count": parameters.chunk_bits, "is_first_chunk": 1})
        m.submodules.chunks = memory = Memory(shape=state, depth=parameters.registers, init=[])
        read, write = memory.read_port(domain="comb"), memory.write_port()
        m.d.comb += [read.addr.eq(beat.register), write.addr.eq(beat.register), write.en.eq(counts)]

        done = Mux(beat.first, 0, read.data.count)
        is_first_chunk = beat.first | read.data.is_first_chunk
        following = named(m, "following_count", done + 1)
        ends = named(m, "chunk_ends", beat.last | (following == self.chunk))
        saturated = Mux(following[-1], done, following)
        m.d.comb += [
            o.partial.eq(~is_chain),
            o.promote.eq(~is_chain & ends & (o.error == Error.NONE)),
            o.fresh_total.eq(is_first_chunk),
            o.wide_total.eq(wide_total),
            write.data.count.eq(Mux(ends, 0, saturated)),
            write.data.is_first_chunk.eq(is_first_chunk & ~ends),
        ]
        with m.If(~is_chain):
            m.d.comb += o.fresh.eq(done == 0)
