"""A lane: the datapath of one fused step a cycle, with register ranks according to the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.flags import EVENTS
from golden.formats import FloatFormat
from hdl.cores.bundle import Bundle
from hdl.cores.fused_step import add_product, multiply_operands
from hdl.cores.multiplier import Multiplier
from hdl.cores.outcome import align_result, finish, pack_result
from hdl.cores.result import flags_layout
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, select_width
from hdl.mac.counters import events_layout
from hdl.mac.parameters import MacParameters

__all__ = [
    "Lane",
    "Ranks",
    "class_layout",
    "lane_signature",
    "number_layout",
    "operand_layout",
    "operand_one",
    "read_number",
    "step_layout",
    "step_of",
    "stored_form",
    "used_bits",
]


def operand_layout(formats: StepFormats) -> data.StructLayout:
    """Return the layout of an unpacked operand, with its class, which overrides its number."""
    return data.StructLayout(
        {
            "sign": 1,
            "field": max(fmt.exponent_bits for fmt in formats.operands),
            "fraction": formats.operand_precision - 1,
            "is_normal": 1,
            "is_infinite": 1,
            "is_nan": 1,
        }
    )


def operand_one(formats: StepFormats, index: Value) -> Value:
    """Return 1.0 as an operand."""
    layout = operand_layout(formats)
    ones = [layout.const({"field": fmt.bias, "is_normal": 1}).as_value() for fmt in formats.operands]
    return choose(index, ones)


def number_layout(formats: StepFormats) -> data.StructLayout:
    """Return the layout of an accumulator in a register.

    The fraction of a narrower format is left-aligned; the bits to its right have no meaning. ``was_normal`` describes
    the number before rounding, which may turn a subnormal into the smallest normal. Where subnormals are flushed, it is
    0 for a zero, whose fraction has no meaning. All zeros are +0.
    """
    return data.StructLayout(
        {
            "fraction": formats.accumulator_precision - 1,
            "field": formats.accumulator_exponent_bits,
            "was_normal": 1,
            "sign": 1,
        }
    )


def class_layout(*, with_flags: bool) -> data.StructLayout:
    """Return the layout of an accumulator's class: NaN overrides infinity, and both override the number."""
    return data.StructLayout({"is_infinite": 1, "is_nan": 1} | ({"flags": flags_layout()} if with_flags else {}))


def step_layout(formats: StepFormats) -> data.StructLayout:
    """Return the layout of an operation as a lane sees it.

    It holds the indices ``format`` and ``accumulator_format``, and the fields of `StepFormats.controls`.
    """
    return data.StructLayout(
        {
            "format": select_width(len(formats.operands)),
            "accumulator_format": select_width(len(formats.accumulators)),
            **formats.controls.members,
        }
    )


def step_of(formats: StepFormats, operation: Any, lane: int = 0) -> dict[str, Any]:
    """Return the fields of `step_layout` of an operation for one lane."""
    fields = {name: operation[name] for name in ("format", "accumulator_format")}
    return fields | {
        name: operation[name][lane] if name == "random" else operation[name] for name, _ in formats.controls
    }


def lane_signature(parameters: MacParameters) -> wiring.Signature:
    """Return the ports of a lane, which computes ``round(a * b + accumulator)``, one step per cycle.

    ``steps`` : array of step_layout, in
        The operation with its operands and behind each rank of the lane.
    ``a``, ``b`` : operand_layout, in
        Operands of the operation.
    ``stored``, ``stored_class`` : number_layout, class_layout, in
        The accumulator of the operation at rank ``read``; the accumulator's class for the operation at rank ``align``.
    ``clears`` : in
        The code of the operation behind the last rank is 0.
    ``number`` : number_layout, out
        The result of the operation before the last rank.
    ``result`` : number_layout, out
        The result behind the last rank.
    ``result_class`` : class_layout, out
        Class of the result behind the last rank; ``flags`` belong to this step alone.
    ``code`` : unsigned, out
        Its code, behind the rank ``pack`` if there is one.
    ``promoted`` : operand_layout, out
        The result behind the last rank as an operand.
    ``events`` : events_layout, out
        Events of this step alone, for the counters; absent without counters.
    """
    formats = parameters.formats
    operand, number = operand_layout(formats), number_layout(formats)
    its_class = class_layout(with_flags=parameters.flags)
    return wiring.Signature(
        {
            "steps": In(step_layout(formats)).array(len(parameters.lane_ranks) + 1),
            "a": In(operand),
            "b": In(operand),
            "stored": In(number),
            "stored_class": In(its_class),
            "clears": In(1),
            "number": Out(number),
            "result": Out(number),
            "result_class": Out(its_class),
            "code": Out(formats.accumulator_width),
            "promoted": Out(operand),
            **({"events": Out(events_layout())} if parameters.counters else {}),
        }
    )


def read_number(formats: StepFormats, stored: Any, index: Value) -> Bundle:
    """Return an accumulator in the form that the cores take."""
    fraction = stored.fraction & used_bits(formats.accumulators, len(stored.fraction), index)
    # A subnormal has the exponent 1. A unit that flushes has zeros instead, with their field as the exponent.
    lowest = stored.field[0] | ~stored.was_normal
    if formats.flushes:
        fraction, lowest = fraction & stored.was_normal.replicate(len(fraction)), stored.field[0]
    return Bundle(
        sign=stored.sign,
        exponent=Cat(lowest, stored.field[1:]),
        significand=Cat(fraction, stored.field[0] | stored.was_normal),
    )


class Lane(wiring.Component):
    """Compute ``round(a * b + accumulator)``, one step a cycle.

    `lane_signature` describes its ports.

    Parameters
    ----------
    parameters : MacParameters
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters, self.formats = parameters, parameters.formats
        super().__init__(lane_signature(parameters))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, formats = self.parameters, self.formats
        m.submodules.multiplier = multiplier = Multiplier(
            formats.operand_precision,
            input_rank="operands" in parameters.ranks,
            output_rank="product" in parameters.ranks,
            kind=parameters.multiplier,
        )
        pipe = Ranks(m, parameters.ranks, self.steps, **self._starts())
        product = multiply_operands(m, formats, pipe, multiplier, _bundle(self.a), _bundle(self.b))
        rounded = add_product(
            m,
            formats,
            pipe,
            product,
            lambda: read_number(formats, self.stored, pipe.accumulator_format),
            self._read_class,
            kind=parameters.multiplier,
            watches=parameters.counters,
        )
        m.d.comb += self.number.eq(stored_form(rounded))
        rounded = pipe.after("round", rounded)
        m.d.comb += self.result.eq(stored_form(rounded))
        with_flags = parameters.flags or parameters.counters
        finished = finish(m, formats, pipe.accumulator_format, rounded, with_flags=with_flags)
        m.d.comb += [
            self.result_class.is_infinite.eq(finished.is_infinite),
            self.result_class.is_nan.eq(finished.is_nan),
        ]
        self._promote(m, rounded, pipe.format)
        index = pipe.accumulator_format
        number_class = finished.without("flags", "swamped")
        aligned = Bundle(number=align_result(formats, index, rounded), number_class=number_class)
        cleared = aligned.map(lambda name, value: Mux(self.clears, 0, value))
        result = pipe.after("pack", cleared.but(index=index))
        m.d.comb += self.code.eq(pack_result(formats, result.index, result.number, result.number_class))
        if parameters.flags:
            m.d.comb += self.result_class.flags.eq(finished.flags)
        if parameters.counters:
            raised = {name: finished.swamped if name == "swamped" else finished.flags[name] for name in EVENTS}
            m.d.comb += [self.events[name].eq(value) for name, value in raised.items()]
        return m

    def _starts(self) -> dict[str, int]:
        """Return the initial values of registers that do not start at 0.

        With several lanes, synthesis can set the second factor of a promotion, 1.0, by the reset of its registers. A
        register of an FPGA has one value for its start and its reset.
        """
        if not self.parameters.operand_delay:
            return {}
        # The bits that are 1 in all formats.
        return {"issue_b_field": reduce(and_, (fmt.bias for fmt in self.formats.operands)), "issue_b_is_normal": 1}

    def _read_class(self) -> Bundle:
        stored = self.stored_class
        return Bundle(is_infinite=stored.is_infinite, is_nan=stored.is_nan, invalid=C(0, 1))

    def _promote(self, m: Module, rounded: Bundle, index: Value) -> None:
        """Convert the result of a chunk, whose accumulator has the operand's format, to an operand."""
        promoted, fraction_bits = self.promoted, len(self.promoted.fraction)
        top = rounded.fraction[max(len(rounded.fraction) - fraction_bits, 0) :]
        m.d.comb += [
            promoted.sign.eq(rounded.sign),
            promoted.field.eq(rounded.field),
            promoted.fraction.eq(top & used_bits(self.formats.operands, fraction_bits, index)),
            promoted.is_normal.eq(~rounded.is_subnormal | rounded.field[0]),
            # A number that was rounded up to infinity already has its field.
            promoted.is_infinite.eq(rounded.outcome.is_infinite | rounded.too_large),
            promoted.is_nan.eq(rounded.outcome.is_nan),
        ]


def used_bits(formats: Sequence[FloatFormat], width: int, index: Value) -> Value:
    """Return a mask of the bits of a left-aligned fraction."""
    return choose(index, [C((1 << width) - (1 << (width - fmt.fraction_bits)), width) for fmt in formats])


def stored_form(rounded: Bundle) -> Value:
    """Return a result in `number_layout`."""
    return Cat(rounded.fraction, rounded.field, ~rounded.is_subnormal, rounded.sign)


def _bundle(operand: Any) -> Bundle:
    return Bundle(**{name: operand[name] for name, _ in operand.shape()})


class Ranks:
    """The registers between the steps of a lane; they advance in every cycle. `starts`: initial values other than 0."""

    def __init__(self, m: Module, ranks: Sequence[str], steps: Sequence[Any], **starts: int) -> None:
        self._m, self._ranks, self._steps, self._starts = m, ranks, steps, starts
        self._position = 0

    @property
    def format(self) -> Value:
        return self._steps[self._position].format

    @property
    def accumulator_format(self) -> Value:
        return self._steps[self._position].accumulator_format

    @property
    def controls(self) -> Any:
        return self._steps[self._position]

    def after(self, step: str, bundle: Bundle) -> Bundle:
        if step not in self._ranks:
            return bundle.named(self._m)
        self._position += 1

        def register(name: str, value: Value) -> Signal:
            init = self._starts.get(f"{step}_{name}")
            held = Signal(value.shape(), name=f"{step}_{name}", init=init, reset_less=True)
            self._m.d.sync += held.eq(value)
            return held

        return bundle.map(register)
