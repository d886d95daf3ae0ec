"""A fused step in two halves: the product between them, and why both together are the step.

Proven of the first half, for all operands:

- each operand is ``significand * 2**exponent`` times a constant, exactly, its significand normalised;
- the product's significand is the product of both, its exponent their sum, so its value is the operands' product;
- sign and class suit a product; and all signals handed on satisfy `contract`.

Proven of the second half, for all that `contract` allows and for all accumulators: it rounds the sum of the product's
number and the accumulator. Proven of both: joined they are the step.

This covers the second half of a core of one operand format and all levels. A core of other formats has the same second
half in other widths. A proof shows just that: the words differ only in length, so solvers decide it at once::

    wide core    product  [ p p p p p p 0 0 ]    +  accumulator  [ 0 | a a a a a ]  ->  the same code and flags
    its model    product  [ p p p p p p ]        +  accumulator      [ a a a a a ]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from golden.formats import FP32, FloatFormat
from golden.rounding import Rounding
from hdl.cores.step_formats import StepFormats
from lab.netlists.netlist import Instance, Netlist
from lab.proofs.by_interval import addition, decode
from lab.proofs.terms import (
    Sort,
    bits,
    both,
    define,
    either,
    equal,
    inverse,
    is_infinite,
    is_nan,
    is_signalling,
    refute,
    sign_bit,
    slice_of,
    split_result,
)

__all__ = ["HANDED_ON", "Mode", "contract", "first_half", "joined", "product_facts", "same_second_half", "second_half"]

#: The ports between the first half and the second.
HANDED_ON = ("significand", "exponent", "sign", "is_infinite", "is_nan", "invalid")


Distances = tuple[int | None, int | None]


@dataclass(frozen=True)
class Mode:
    """One choice of the formats of a step, and of its rounding mode.

    Parameters
    ----------
    formats : StepFormats
    operand, accumulator : FloatFormat
    rounding : Rounding
    """

    formats: StepFormats
    operand: FloatFormat
    accumulator: FloatFormat
    rounding: Rounding = Rounding.NEAREST_EVEN

    def __str__(self) -> str:
        return f"{self.operand} into {self.accumulator}"

    def chosen(self, netlist: Instance) -> str:
        """Assert the mode at the ports that choose it; codes of narrower formats leave the rest of a port to chance."""
        choices = {
            "format": self.formats.operands.index(self.operand),
            "accumulator_format": self.formats.accumulators.index(self.accumulator),
            "rounding": self.rounding.value,
        }
        return "".join(
            f"(assert {equal(netlist.port(name), bits(index, netlist.inputs[name]))})\n"
            for name, index in choices.items()
            if name in netlist.inputs
        )

    def given(self, random: Any) -> dict[str, Any]:
        """Return a random number as specification and golden take it, in the mode that needs one."""
        if self.rounding is not Rounding.STOCHASTIC:
            return {}
        return {"random": random, "random_bits": self.formats.random_bits}

    @property
    def spare_product_bits(self) -> int:
        """Number of low bits of a product's significand that only wider operands need."""
        return 2 * (self.formats.operand_precision - self.operand.precision)

    @property
    def model(self) -> Mode:
        """The same operands and accumulators in the core of this one operand format and all levels."""
        return Mode(StepFormats((self.operand,), (self.operand, FP32)), self.operand, self.accumulator)

    @property
    def bias(self) -> int:
        """The bias of a product's exponent over the sum of its operands' exponents."""
        return self.formats.product_bias(self.operand, self.accumulator) + 1

    @property
    def exponents(self) -> tuple[int, int]:
        """The smallest and the largest exponent of a product that is a number other than zero."""
        return 2 * (2 - self.operand.precision) + self.bias, 2 * self.operand.max_finite_field + self.bias


def _code(netlist: Instance, port: str, fmt: FloatFormat) -> str:
    """Return the low bits of a port."""
    return slice_of(netlist.port(port), fmt.width - 1, 0)


def _holds(netlist: Instance, port: str) -> str:
    return equal(netlist.port(port), "#b1")


def _power(exponent: str, width: int, change: int, carrier: Sort) -> str:
    """Return ``2**(exponent + change)`` of a signed word."""
    size = carrier.exponent_bits
    word = slice_of(exponent, size - 1, 0) if width >= size else f"((_ sign_extend {size - width}) {exponent})"
    return f"(fp #b0 (bvadd {word} {bits(change + carrier.bias, size)}) {bits(0, carrier.precision - 1)})"


def _unsigned(word: str, carrier: Sort) -> str:
    return f"((_ to_fp_unsigned {carrier.exponent_bits} {carrier.precision}) RNE {word})"


def contract(netlist: Instance, mode: Mode) -> str:
    """Define ``contract`` and ``is_zero_product`` for the values at the ports `HANDED_ON`.

    A product that is not a number may have any significand and exponent.
    """
    formats, exponent = mode.formats, netlist.port("exponent")
    width, size = formats.product_width, formats.product_exponent_width
    significand = netlist.port("significand")
    zero = both(equal(significand, bits(0, width)), equal(exponent, bits(formats.exponent_of_zero, size)))
    least, greatest = mode.exponents
    ordinary = both(
        inverse(equal(slice_of(significand, width - 1, width - 2), "#b00")),
        f"(bvsge {exponent} {bits(least, size)})",
        f"(bvsle {exponent} {bits(greatest, size)})",
    )
    if spare := mode.spare_product_bits:
        ordinary = both(ordinary, equal(slice_of(significand, spare - 1, 0), bits(0, spare)))
    special = either(_holds(netlist, "is_infinite"), _holds(netlist, "is_nan"))
    invalid = either(inverse(_holds(netlist, "invalid")), _holds(netlist, "is_nan"))
    text = define("is_zero_product", "Bool", zero) + define("is_special_product", "Bool", special)
    return text + define("contract", "Bool", both(invalid, either("is_special_product", "is_zero_product", ordinary)))


def product_facts(factors: Sequence[str], product: str, width: int) -> str:
    """Assert facts about every product of two words of `width` bits, instead of a multiplier, which is left out.

    Zero times anything is zero, and two leading ones leave no two leading zeros.
    """
    normalised = both(*(equal(slice_of(factor, width - 1, width - 1), "#b1") for factor in factors))
    leads = inverse(equal(slice_of(product, 2 * width - 1, 2 * width - 2), "#b00"))
    some_zero = either(*(equal(factor, bits(0, width)) for factor in factors))
    return f"(assert (=> {some_zero} {equal(product, bits(0, 2 * width))}))\n(assert (=> {normalised} {leads}))\n"


def first_half(netlist: Instance, mode: Mode, carrier: Sort) -> str:
    """Return a formula with a solution if the first half hands on anything but the product."""
    formats, fmt = mode.formats, mode.operand
    size = formats.product_exponent_width
    text = netlist.text + netlist.shown + mode.chosen(netlist) + contract(netlist, mode)
    claims = ["contract"]
    for name in ("a", "b"):
        code, significand = _code(netlist, name, fmt), netlist.port(f"{name}_significand")
        text += define(f"{name}_is_infinite", "Bool", is_infinite(code, fmt))
        text += define(f"{name}_is_zero", "Bool", equal(slice_of(code, fmt.width - 2, 0), bits(0, fmt.width - 1)))
        text += define(f"{name}_is_nan", "Bool", is_nan(code, fmt))
        text += define(f"{name}_is_number", "Bool", inverse(either(f"{name}_is_nan", f"{name}_is_infinite")))
        change = 1 - fmt.bias - formats.operand_precision - (mode.bias if name == "a" else 0)
        power = _power(netlist.port(f"{name}_exponent"), size, change, carrier)
        number = f"(fp.mul RNE {_unsigned(significand, carrier)} {power})"
        same = f"(fp.eq {number} (fp.abs {decode(code, fmt, carrier)}))"
        top = formats.operand_precision - 1
        normalised = either(f"{name}_is_zero", equal(slice_of(significand, top, top), "#b1"))
        claims.append(either(inverse(f"{name}_is_number"), both(same, normalised)))
    factors = (
        f"((_ zero_extend {formats.operand_precision}) {netlist.port(f'{name}_significand')})" for name in ("a", "b")
    )
    sums = f"(bvadd {netlist.port('a_exponent')} {netlist.port('b_exponent')})"
    times_zero = either(both("a_is_infinite", "b_is_zero"), both("a_is_zero", "b_is_infinite"))
    signs = [sign_bit(_code(netlist, name, fmt), fmt) for name in ("a", "b")]
    signalling = [is_signalling(_code(netlist, name, fmt), fmt) for name in ("a", "b")]
    claims += [
        equal(netlist.port("significand"), f"(bvmul {' '.join(factors)})"),
        either("is_special_product", "is_zero_product", equal(netlist.port("exponent"), sums)),
        either("is_special_product", equal("is_zero_product", either("a_is_zero", "b_is_zero"))),
        equal(_holds(netlist, "sign"), f"(xor {' '.join(signs)})"),
        equal(_holds(netlist, "is_infinite"), either("a_is_infinite", "b_is_infinite")),
        equal(_holds(netlist, "is_nan"), either("a_is_nan", "b_is_nan", times_zero)),
        equal(_holds(netlist, "invalid"), either(*signalling, times_zero)),
    ]
    return text + refute(both(*claims))


def second_half(netlist: Instance, mode: Mode, carrier: Sort, distances: Distances = (None, None)) -> str:
    """Return a formula with a solution if the second half rounds the sum of product and accumulator wrongly.

    With `distances`, only if the exponent of the product, biased, less the exponent field of the accumulator is one of
    ``range(*distances)``, where None is no limit.
    """
    formats, accumulator = mode.formats, mode.accumulator
    text = netlist.text + netlist.shown + mode.chosen(netlist) + contract(netlist, mode) + "(assert contract)\n"
    size = formats.product_exponent_width + 2
    field = slice_of(netlist.port("acc"), accumulator.width - 2, accumulator.fraction_bits)
    biased = f"(bvsub ((_ sign_extend 2) {netlist.port('exponent')}) {bits(1, size)})"
    text += define(
        "distance",
        f"(_ BitVec {size})",
        f"(bvsub {biased} ((_ zero_extend {size - accumulator.exponent_bits}) {field}))",
    )
    first, end = distances
    text += "" if first is None else f"(assert (bvsge distance {bits(first, size)}))\n"
    text += "" if end is None else f"(assert (bvslt distance {bits(end, size)}))\n"
    change = 2 - 2 * mode.operand.bias - 2 * formats.operand_precision - mode.bias
    power = _power(netlist.port("exponent"), formats.product_exponent_width, change, carrier)
    text += define("magnitude", carrier, f"(fp.mul RNE {_unsigned(netlist.port('significand'), carrier)} {power})")
    zero = f"(_ +zero {carrier.exponent_bits} {carrier.precision})"
    text += define("product_magnitude", carrier, f"(ite is_zero_product {zero} magnitude)")
    text += define("product_is_negative", "Bool", _holds(netlist, "sign"))
    text += define("product", carrier, "(ite product_is_negative (fp.neg product_magnitude) product_magnitude)")
    code = _code(netlist, "acc", accumulator)
    text += define("product_is_infinite", "Bool", _holds(netlist, "is_infinite"))
    text += define("z", carrier, decode(code, accumulator, carrier))
    text += define("z_is_infinite", "Bool", is_infinite(code, accumulator))
    text += define("operand_is_nan", "Bool", either(_holds(netlist, "is_nan"), is_nan(code, accumulator)))
    invalid = either(_holds(netlist, "invalid"), is_signalling(code, accumulator))
    text += define("product_is_invalid", "Bool", invalid)
    text += split_result(netlist, accumulator)
    given = mode.given(netlist.port("random"))
    text += addition(code, accumulator, "out", "flags", mode.rounding, carrier=carrier, **given)
    return text + refute("correct")


def same_second_half(netlist: Instance, model: Netlist, mode: Mode) -> str:
    """Return a formula with a solution if the second half differs from the second half of ``mode.model``."""
    own, other = mode.formats, mode.model.formats
    text = netlist.text + netlist.shown + mode.chosen(netlist) + contract(netlist, mode) + "(assert contract)\n"
    spare, width = mode.spare_product_bits, other.product_exponent_width
    exponent = _resized(netlist.port("exponent"), own.product_exponent_width, width, "sign_extend")
    given = {name: netlist.port(name) for name in HANDED_ON} | {
        "significand": slice_of(netlist.port("significand"), own.product_width - 1, spare),
        "exponent": f"(ite is_zero_product {bits(other.exponent_of_zero, width)} {exponent})",
        "acc": _resized(netlist.port("acc"), own.accumulator_width, other.accumulator_width, "zero_extend"),
    }
    twin = model.instance("model", given=given)
    text += twin.text + mode.model.chosen(twin)
    pairs = []
    for unit in (netlist, twin):
        high = unit.outputs["o"] - 1
        code = slice_of(unit.port("o"), mode.accumulator.width - 1, 0)
        pairs.append(f"(concat {slice_of(unit.port('o'), high, high - 4)} {code})")
    return text + refute(equal(*pairs))


def _resized(word: str, width: int, wanted: int, extend: str) -> str:
    """Cut a word, or extend it."""
    if wanted <= width:
        return slice_of(word, wanted - 1, 0)
    return f"((_ {extend} {wanted - width}) {word})"


def joined(step: Netlist, first: Netlist, second: Netlist) -> str:
    """Return a formula with a solution if a step differs from its two halves.

    Step and first half are given without their multiplier: it is the same, so it is enough that its factors are.
    """
    whole = step.instance("step")
    shared = ("a", "b", "format", "accumulator_format", "multiplier.o")
    one = first.instance("first", given={name: whole.port(name) for name in shared if name in first.inputs})
    links = {name: whole.port(name) for name in ("acc", "format", "accumulator_format") if name in second.inputs}
    two = second.instance("second", given=links | {name: one.port(name) for name in HANDED_ON})
    pairs = [(whole.port(name), one.port(name)) for name in ("multiplier.a", "multiplier.b")]
    pairs += [(whole.port(name), two.port(name)) for name in step.outputs if not name.startswith("multiplier.")]
    return whole.text + one.text + two.text + refute(both(*(equal(*pair) for pair in pairs)))
