"""The lane's own form of numbers against codes: a lane without ranks is the fused step.

The numbers of a lane stand apart from their classes, which override them. So where a class is special, the number is
*noise*: any bits at all. The multiplier also gives noise for it. As in `lab.proofs.cut`, the multiplier itself is left
out: its factors must be the same as in the step, and then its product is the same.
"""

from __future__ import annotations

from pathlib import Path

from amaranth.lib import data

from golden.flags import EVENTS
from golden.formats import FloatFormat
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import flags_layout
from hdl.mac.counters import events_layout
from hdl.mac.lane import class_layout, number_layout, operand_layout
from hdl.mac.parameters import MacParameters
from lab.netlists.netlist import Instance
from lab.netlists.yosys import EVERTED, EVERTED_LANE, netlist_of
from lab.proofs.cut import Mode, product_facts
from lab.proofs.lanes import LaneAlone
from lab.proofs.terms import (
    bits,
    both,
    define,
    either,
    equal,
    field_of,
    inverse,
    is_infinite,
    is_nan,
    is_signalling,
    refute,
    slice_of,
    widened,
)

__all__ = ["lane_is_step", "plain_operand"]


def _holds(term: str, layout: data.StructLayout, name: str) -> str:
    return equal(field_of(term, layout, name), "#b1")


def _bit(condition: str) -> str:
    return f"(ite {condition} #b1 #b0)"


def _fields(layout: data.StructLayout, values: dict[str, str]) -> str:
    """Return a word from its fields."""
    parts = [values[name] for name, _ in reversed(list(layout))]
    return f"(concat {' '.join(parts)})"


def _parts(code: str, fmt: FloatFormat) -> tuple[str, str, str]:
    """Return sign, exponent field, fraction."""
    top = fmt.width - 1
    return (
        slice_of(code, top, top),
        slice_of(code, top - 1, fmt.fraction_bits),
        slice_of(code, fmt.fraction_bits - 1, 0),
    )


def _left(fraction: str, fmt: FloatFormat, layout: data.StructLayout, rest: str) -> str:
    """Put a fraction at the left of its field, and fill the field with the low bits of `rest`."""
    spare = layout["fraction"].width - fmt.fraction_bits
    return f"(concat {fraction} {slice_of(rest, spare - 1, 0)})" if spare else fraction


def _has_field(code: str, fmt: FloatFormat) -> str:
    return inverse(equal(_parts(code, fmt)[1], bits(0, fmt.exponent_bits)))


def _plain(code: str, fmt: FloatFormat, layout: data.StructLayout) -> dict[str, str]:
    """Return the fields of an operand as it enters."""
    sign, field, fraction = _parts(code, fmt)
    return {
        "sign": sign,
        "field": widened(field, fmt.exponent_bits, layout["field"].width),
        "fraction": _left(fraction, fmt, layout, bits(0, layout["fraction"].width)),
        "is_normal": _bit(_has_field(code, fmt)),
        "is_infinite": "#b0",
        "is_nan": "#b0",
    }


def plain_operand(code: str, fmt: FloatFormat, layout: data.StructLayout) -> str:
    """Return a code as an operand that enters."""
    return _fields(layout, _plain(code, fmt, layout))


def _operands(a: str, b: str, fmt: FloatFormat, layout: data.StructLayout, *, flushes: bool) -> str:
    """Define ``lane_a`` and ``lane_b``: codes as operands, as they enter or as a promotion brings them.

    A promotion multiplies a result, which is never a signalling NaN, by 1.0. Where subnormals are flushed, the result
    is never a subnormal either, and a zero may have any fraction.
    """
    sign, _, _ = _parts(a, fmt)
    noise = {key: field_of("noise_operand", layout, key) for key, _ in layout}
    infinite = noise | {"sign": sign, "is_infinite": "#b1", "is_nan": "#b0"}
    plain = plain_operand(a, fmt, layout)
    number = plain
    if flushes:
        zero = _fields(layout, _plain(a, fmt, layout) | {"fraction": noise["fraction"]})
        number = f"(ite {_has_field(a, fmt)} {plain} {zero})"
    promoted = (
        f"(ite {is_nan(a, fmt)} {_fields(layout, noise | {'is_nan': '#b1'})} "
        f"(ite {is_infinite(a, fmt)} {_fields(layout, infinite)} {number}))"
    )
    text = f"(declare-const noise_operand (_ BitVec {layout.size}))\n(declare-const is_promotion Bool)\n"
    by_one = equal(b, bits(fmt.bias << fmt.fraction_bits, fmt.width))
    text += f"(assert (=> is_promotion {both(inverse(is_signalling(a, fmt)), by_one)}))\n"
    if flushes:
        text += f"(assert (=> is_promotion {inverse(_is_subnormal(a, fmt))}))\n"
    text += define("lane_a", f"(_ BitVec {layout.size})", f"(ite is_promotion {promoted} {plain})")
    return text + define("lane_b", f"(_ BitVec {layout.size})", plain_operand(b, fmt, layout))


def _is_subnormal(code: str, fmt: FloatFormat) -> str:
    is_zero = equal(_parts(code, fmt)[2], bits(0, fmt.fraction_bits))
    return both(inverse(_has_field(code, fmt)), inverse(is_zero))


def _accumulator(
    code: str, fmt: FloatFormat, number: data.StructLayout, its_class: data.StructLayout, *, flushes: bool
) -> str:
    """Define ``lane_number`` and ``lane_class``: `code` as an accumulator."""
    sign, field, fraction = _parts(code, fmt)
    text = f"(declare-const noise (_ BitVec {number.size}))\n(declare-const class_noise (_ BitVec {its_class.size}))\n"
    # The smallest normal number may have `was_normal` clear: rounding may have made it from a subnormal.
    is_smallest = equal(field, bits(1, fmt.exponent_bits))
    was_normal = both(_has_field(code, fmt), either(inverse(is_smallest), _holds("noise", number, "was_normal")))
    its_fraction = _left(fraction, fmt, number, "noise")
    if flushes:  # there are no subnormals, and a zero may have any fraction
        text += f"(assert {inverse(_is_subnormal(code, fmt))})\n"
        was_normal = _has_field(code, fmt)
        its_fraction = f"(ite {was_normal} {its_fraction} {field_of('noise', number, 'fraction')})"
    plain = {
        "fraction": its_fraction,
        "field": widened(field, fmt.exponent_bits, number["field"].width),
        "was_normal": _bit(was_normal),
        "sign": sign,
    }
    noise = {key: field_of("noise", number, key) for key, _ in number}
    body = (
        f"(ite {is_nan(code, fmt)} noise "
        f"(ite {is_infinite(code, fmt)} {_fields(number, noise | {'sign': sign})} {_fields(number, plain)}))"
    )
    text += define("lane_number", f"(_ BitVec {number.size})", body)
    flags = (
        {"flags": field_of("class_noise", its_class, "flags")} if any(name == "flags" for name, _ in its_class) else {}
    )
    is_nan_too = both(is_nan(code, fmt), _holds("class_noise", its_class, "is_infinite"))
    classes = {
        "is_infinite": _bit(either(is_infinite(code, fmt), is_nan_too)),
        "is_nan": _bit(is_nan(code, fmt)),
    }
    text += f"(assert {inverse(is_signalling(code, fmt))})\n"
    return text + define("lane_class", f"(_ BitVec {its_class.size})", _fields(its_class, classes | flags))


def lane_is_step(parameters: MacParameters, mode: Mode, folder: Path) -> str:
    """Return a formula with a solution if a lane without ranks differs from the step in a mode."""
    formats = parameters.formats
    operand, number = operand_layout(formats), number_layout(formats)
    its_class = class_layout(with_flags=parameters.flags)
    step = netlist_of(FusedStep(formats, with_swamped=parameters.counters), folder, EVERTED).instance("step")
    codes = {
        name: slice_of(step.port(name), fmt.width - 1, 0)
        for name, fmt in (("a", mode.operand), ("b", mode.operand), ("acc", mode.accumulator))
    }
    text = step.text + mode.chosen(step)
    text += _operands(codes["a"], codes["b"], mode.operand, operand, flushes=formats.flushes)
    text += _accumulator(codes["acc"], mode.accumulator, number, its_class, flushes=formats.flushes)
    special = either(
        *(either(is_nan(codes[name], mode.operand), is_infinite(codes[name], mode.operand)) for name in "ab")
    )
    width = formats.product_width
    product, factors = step.port("multiplier.o"), [step.port(f"multiplier.{name}") for name in ("a", "b")]
    text += product_facts(factors, product, formats.operand_precision)
    text += define("is_special", "Bool", special) + f"(declare-const noise_product (_ BitVec {width}))\n"
    text += define("lane_product", f"(_ BitVec {width})", f"(ite is_special noise_product {product})")
    given = {
        "a": "lane_a",
        "b": "lane_b",
        "stored": "lane_number",
        "stored_class": "lane_class",
        "lane.multiplier.o": "lane_product",
        **{
            f"{name}_0": step.port(name)
            for name in ("format", "accumulator_format", "rounding", "random")
            if name in step.inputs
        },
    }
    lane = netlist_of(LaneAlone(parameters), folder, EVERTED_LANE).instance("lane", given=given)
    text += lane.text
    multiplied = (equal(lane.port(f"lane.multiplier.{name}"), step.port(f"multiplier.{name}")) for name in ("a", "b"))
    claims = [either("is_special", both(*multiplied)), *_result_claims(lane, step, mode, parameters)]
    return text + refute(both(*claims))


def _result_claims(lane: Instance, step: Instance, mode: Mode, parameters: MacParameters) -> list[str]:
    """Return that the lane's results are the step's, as code, as accumulator and as operand."""
    formats, fmt = parameters.formats, mode.accumulator
    width = formats.accumulator_width
    number, its_class = number_layout(formats), class_layout(with_flags=parameters.flags)
    high = step.outputs["o"] - 1
    code = slice_of(step.port("o"), fmt.width - 1, 0)
    result, result_class = lane.port("result"), lane.port("result_class")
    sign, field, fraction = _parts(code, fmt)
    nan, infinite = is_nan(code, fmt), is_infinite(code, fmt)
    top = number["fraction"].offset + number["fraction"].width - 1
    is_smallest = equal(field, bits(1, fmt.exponent_bits))
    same_fraction = equal(slice_of(result, top, top - fmt.fraction_bits + 1), fraction)
    same_normal = either(is_smallest, equal(_holds(result, number, "was_normal"), _has_field(code, fmt)))
    if formats.flushes:
        same_fraction = either(inverse(_has_field(code, fmt)), same_fraction)
        same_normal = equal(_holds(result, number, "was_normal"), _has_field(code, fmt))
    same_number = both(
        equal(field_of(result, number, "field"), widened(field, fmt.exponent_bits, number["field"].width)),
        same_fraction,
        same_normal,
    )
    claims = [
        equal(
            lane.port("code"), f"(ite (= {lane.port('clears')} #b1) {bits(0, width)} {widened(code, fmt.width, width)})"
        ),
        equal(lane.port("number"), result),
        equal(_holds(result_class, its_class, "is_nan"), nan),
        either(nan, equal(_holds(result_class, its_class, "is_infinite"), infinite)),
        either(nan, equal(field_of(result, number, "sign"), sign)),
        either(nan, infinite, same_number),
        inverse(is_signalling(code, fmt)),
    ]
    if parameters.flags:
        claims.append(equal(field_of(result_class, its_class, "flags"), slice_of(step.port("o"), high, high - 4)))
    if parameters.counters:
        flags = flags_layout()
        shown = {name: field_of(slice_of(step.port("o"), high, high - 4), flags, name) for name, _ in flags}
        shown |= {"swamped": step.port("swamped")}
        layout = events_layout()
        claims += [equal(field_of(lane.port("events"), layout, name), shown[name]) for name in EVENTS]
    if fmt == mode.operand:
        layout = operand_layout(formats)
        claims.append(_promoted_claim(lane.port("promoted"), code, fmt, layout, flushes=formats.flushes))
    return claims


def _promoted_claim(promoted: str, code: str, fmt: FloatFormat, layout: data.StructLayout, *, flushes: bool) -> str:
    """Return that the result as an operand is one that `_operands` allows for its code."""
    sign, _, _ = _parts(code, fmt)
    says_infinite = both(
        _holds(promoted, layout, "is_infinite"),
        inverse(_holds(promoted, layout, "is_nan")),
        equal(field_of(promoted, layout, "sign"), sign),
    )
    same = equal(promoted, plain_operand(code, fmt, layout))
    if flushes:
        its_fraction = {"fraction": field_of(promoted, layout, "fraction")}
        zero = _fields(layout, _plain(code, fmt, layout) | its_fraction)
        same = f"(ite {_has_field(code, fmt)} {same} {equal(promoted, zero)})"
    return (
        f"(ite {is_nan(code, fmt)} {_holds(promoted, layout, 'is_nan')} "
        f"(ite {is_infinite(code, fmt)} {either(says_infinite, same)} {same}))"
    )
