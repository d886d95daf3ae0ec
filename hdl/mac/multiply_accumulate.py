"""The multiply-accumulate unit: fused steps, several accumulators, precision levels chosen at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import CBFLOAT16, FloatFormat
from golden.reduction import LEVELS
from hdl.cores.accumulate import Add, Align, Compare
from hdl.cores.fused_step import make_round
from hdl.cores.multiply import Multiply
from hdl.cores.normalise import CountLeadingZeros, Normalise
from hdl.cores.unpack import Unpack
from hdl.mac.issue import Issue
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, product_beat_layout, result_beat_layout
from hdl.mac.register_file import RegisterFile
from hdl.pipeline import rank

__all__ = ["MultiplyAccumulate"]


class MultiplyAccumulate(wiring.Component):
    """Reduce streams of products into registers, bit for bit as `golden.dot` does (NUMERICS sections 4 and 5).

    ::

        product -> Issue -> unpack -> multiply -> compare -> align -> add -> count -> normalise -> round -> result
                     ^                  register file --^                                            |  |
                     |                        ^------------------ accumulator -----------------------'  |
                     '--------------------------- promotion of a chunk: partial * 1.0 ------------------'

    A product enters in every cycle as long as its register is not in flight; otherwise it waits. Over at least
    `accumulate_latency` registers in rotation, one product is accumulated in every cycle; a promotion takes the place
    of one product. Subnormals take no longer than other numbers. A refused result stops the whole pipeline.

    ``first`` starts a reduction from +0, ``last`` ends it and sends the result. A product without ``first`` continues
    what the register holds, even after ``last``: the result so far is then the initial value. Format and level stay
    the same from ``first`` to the last continuation. An empty reduction (K = 0) is one product -0 * 1.0 with ``first``
    and ``last``: x + (-0) is x.

    Parameters
    ----------
    operands : sequence of FloatFormat
        Operand formats, chosen by index at run time; at most 16 bits wide.
    levels : sequence of int
        Precision levels, chosen at run time.
    registers : int
        16-bit accumulators, a power of two. fp32 (levels 0 and 1) takes an even-aligned pair.
    stages : int, optional
        Register ranks, 1 to 8; 8 unless given.
    chunk_bits : int
        Bits of the port ``chunk``.
    flags : bool
        Whether flags are computed; without them the output has no field ``flags``.

    Attributes
    ----------
    latency : int
        Cycles from a product to its result at level 0. At levels 1 and 2 the last promotion takes as many again.
    accumulate_latency : int
        Cycles after which the same register takes its next product.
    i : stream of product_beat_layout, in
        ``a``, ``b``, ``format``, ``level``, ``register``, ``first``, ``last``. ``ready`` depends on the payload.
    o : stream of result_beat_layout, out
        ``result``, ``flags``, ``error``, ``register``. Results of one register keep their order; those of different
        registers and levels may overtake each other, and a refusal overtakes results that await their promotion.
    chunk : unsigned(chunk_bits), in
        Products in a chunk; 0 is one chunk of any length. Keep it during a reduction.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: What the generated Verilog says about ports that are no struct.
    port_notes: ClassVar = {"chunk": "products in a chunk; 0: one chunk of any length"}

    def __init__(
        self,
        *,
        operands: Sequence[FloatFormat] = (CBFLOAT16,),
        levels: Sequence[int] = LEVELS,
        registers: int = 16,
        stages: int | None = None,
        chunk_bits: int = 16,
        flags: bool = True,
    ) -> None:
        self.parameters = parameters = MacParameters(
            operands=_as_tuple("operands", operands, FloatFormat),
            levels=_as_tuple("levels", levels, int),
            registers=registers,
            stages=stages,  # type: ignore[arg-type]
            chunk_bits=chunk_bits,
            flags=flags,
        )
        self.operands, self.levels, self.registers = parameters.operands, parameters.levels, parameters.registers
        self.stages, self.chunk_bits, self.flags = parameters.stages, parameters.chunk_bits, parameters.flags
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
        parameters, formats = self.parameters, self.parameters.formats
        m.submodules.issue = issue = Issue(parameters)
        m.submodules.registers = registers = RegisterFile(parameters)
        m.submodules.unpack_a = unpack_a = Unpack(formats.operands)
        m.submodules.unpack_b = unpack_b = Unpack(formats.operands)
        m.submodules.multiply = multiply = Multiply(formats)
        m.submodules.unpack_accumulator = unpack_accumulator = Unpack(formats.accumulators)
        m.submodules.compare = compare = Compare(formats)
        m.submodules.align = align = Align(formats)
        m.submodules.add = add = Add(formats)
        m.submodules.count = count = CountLeadingZeros(formats)
        m.submodules.normalise = normalise = Normalise(formats)
        m.submodules.round = rounder = make_round(formats, with_flags=self.flags)

        enable = ~self.o.valid | self.o.ready
        m.d.comb += [
            issue.beat.eq(self.i.payload),
            issue.beat_valid.eq(self.i.valid),
            self.i.ready.eq(issue.beat_ready),
            issue.chunk.eq(self.chunk),
            issue.enable.eq(enable),
        ]
        pipeline = _Pipeline(m, parameters, issue, enable)

        m.d.comb += [unpack.format.eq(pipeline.operation.format) for unpack in (unpack_a, unpack_b)]
        m.d.comb += [unpack_a.code.eq(issue.o.a), unpack_b.code.eq(issue.o.b)]
        a, b = pipeline.after("unpack", a=unpack_a.o, b=unpack_b.o)

        m.d.comb += [
            multiply.a.eq(a),
            multiply.b.eq(b),
            multiply.format.eq(pipeline.operation.format),
            multiply.accumulator_format.eq(pipeline.operation.accumulator_format),
        ]
        (product,) = pipeline.after("multiply", product=multiply.o)

        # The accumulator joins here, as late as it can: the loop back to it has neither operands nor multiplier in it.
        reading = pipeline.operation
        held_flags = Mux(reading.fresh, 0, registers.read.flags.as_value())
        m.d.comb += [
            registers.read_register.eq(reading.register),
            registers.read_partial.eq(reading.partial),
            registers.read_wide.eq(reading.wide),
            unpack_accumulator.code.eq(Mux(reading.fresh, 0, registers.read.bits)),
            unpack_accumulator.format.eq(reading.accumulator_format),
            compare.product.eq(product),
            compare.accumulator.eq(unpack_accumulator.o),
        ]
        pipeline.replace_flags(reading.flags.as_value() | held_flags)
        (compared,) = pipeline.after("compare", compared=compare.o)
        m.d.comb += align.i.eq(compared)
        (addends,) = pipeline.after("align", addends=align.o)
        m.d.comb += add.i.eq(addends)
        (total,) = pipeline.after("add", total=add.o)
        m.d.comb += count.i.eq(total)
        (counted,) = pipeline.after("count", counted=count.o)
        m.d.comb += normalise.i.eq(counted)
        (normal,) = pipeline.after("normalise", normal=normalise.o)
        m.d.comb += [rounder.i.eq(normal), rounder.format.eq(pipeline.operation.accumulator_format)]

        writing = pipeline.operation
        pipeline.replace_flags(writing.flags.as_value() | rounder.o.flags.as_value())
        m.d.comb += [
            registers.write_enable.eq(enable & pipeline.valid & (writing.error == Error.NONE)),
            registers.write_register.eq(writing.register),
            registers.write_partial.eq(writing.partial),
            registers.write_wide.eq(writing.wide),
            registers.write.bits.eq(rounder.o.bits),
            registers.write.flags.eq(pipeline.operation.flags),
        ]
        (bits,) = pipeline.after("round", bits=rounder.o.bits)

        finished = pipeline.operation
        is_refused = finished.error != Error.NONE
        m.d.comb += [
            issue.finished_result.bits.eq(bits),
            issue.finished_result.flags.eq(finished.flags),
            self.o.valid.eq(pipeline.valid & (is_refused | (finished.last & ~finished.promote))),
            self.o.payload.result.eq(Mux(is_refused, 0, bits)),
            self.o.payload.error.eq(finished.error),
            self.o.payload.register.eq(finished.register),
        ]
        if self.flags:
            m.d.comb += self.o.payload.flags.eq(Mux(is_refused, 0, finished.flags.as_value()))
        return m


def _as_tuple(name: str, given: Any, kind: type) -> tuple[Any, ...]:
    """Accept one thing or several."""
    if isinstance(given, kind):
        return (given,)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name}: got {given!r}, must be a sequence of {kind.__name__}")
    return tuple(given)


class _Pipeline:
    """The ranks behind the cores: data, and beside it the operation that it belongs to."""

    def __init__(self, m: Module, parameters: MacParameters, issue: Issue, enable: Value) -> None:
        self._m, self._ranks, self._issue, self._enable = m, parameters.ranks, issue, enable
        self._position = 0
        self.operation: Any = issue.o.operation
        self.valid: Any = issue.o_valid

    def replace_flags(self, flags: Value) -> None:
        """Let the operation go on with other flags."""
        layout = self.operation.shape()
        changed = Signal(layout, name=f"operation_with_flags_{self._position}")
        self._m.d.comb += changed.eq(self.operation)
        self._m.d.comb += changed.flags.eq(flags)
        self.operation = changed

    def after(self, step: str, **values: Any) -> tuple[Any, ...]:
        """Put a rank behind a core if there is to be one, and return what comes out of it, in the order given."""
        if step not in self._ranks:
            return tuple(values.values())
        m, enable, position = self._m, self._enable, self._position
        self.operation = rank(m, f"operation_{position}", self.operation, enable)
        self.valid = rank(m, f"valid_{position}", self.valid, enable, reset=True)
        m.d.comb += [
            getattr(self._issue, f"in_flight_{position}").eq(self.operation),
            getattr(self._issue, f"in_flight_{position}_valid").eq(self.valid),
        ]
        self._position += 1
        return tuple(rank(m, name, value, enable) for name, value in values.items())
