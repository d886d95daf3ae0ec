"""Proofs about the datapath of block quantisers whose scales are numbers, as in NVFP4.

For every value, every other one in its block, and every power of two as the scale of the tensor:

- the scale is the largest magnitude over the tensor's scale and over the largest element, both divided in float32 as
  the recipe does, rounded to the scale's format;
- the element is the value over the tensor's scale, times the reciprocal of the scale in float32, rounded in float32 to
  the product and then to the element.

The specification divides and multiplies by the floating-point theory of SMT-LIB; the unit compares with constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

from golden.formats import BF16, FP32, FloatFormat
from golden.mx import NVFP4
from hdl.mx.block import QuantizeBlock
from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan
from lab.netlists.netlist import Netlist
from lab.netlists.yosys import netlist_of
from lab.proofs.by_interval import decode, rounding
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import (
    DOUBLE,
    Sort,
    bits,
    define,
    either,
    equal,
    from_bits,
    is_nan,
    number,
    refute,
    round_to,
    sign_bit,
    slice_of,
)

__all__ = ["element_formula", "number_block_proofs", "scale_formula"]

_SINGLE = Sort(8, 24)


def number_block_proofs() -> Iterator[Proof]:
    """Yield the proofs of blocks of two values."""
    for source in (FP32, BF16):
        plan = NumberPlan(source, NVFP4)
        for claim, formula in {"scale": scale_formula, "element": element_formula}.items():
            for engine in (BITWUZLA, Z3_CADICAL):
                yield Proof(
                    f"mx/number/{source}_to_{plan.blocks}/{claim}",
                    "block quantiser: scales that are numbers",
                    f"{source} to {plan.blocks}, {claim}",
                    "floating-point theory and interval",
                    engine,
                    partial(_build, plan, formula),
                    timeout=900,
                    fast=claim == "scale",
                )


def _build(plan: NumberPlan, formula: Callable[[Netlist, NumberPlan], str], folder: Path) -> str:
    return formula(netlist_of(QuantizeBlock(plan, 2), folder), plan)


def _values(netlist: Netlist, plan: NumberPlan) -> str:
    """Return the unit, its two codes, and each magnitude over the tensor's scale in float32."""
    unit, width = netlist.instance(), plan.source.width
    text = unit.text + unit.shown
    for at, name in enumerate(("code", "other")):
        text += define(name, f"(_ BitVec {width})", slice_of(unit.port("values"), width * (at + 1) - 1, width * at))
    text += define("out", f"(_ BitVec {plan.element.width})", slice_of(unit.port("codes"), plan.element.width - 1, 0))
    text += define("scale", f"(_ BitVec {plan.scale.width})", unit.port("scale"))
    # 2 to minus the exponent: a number of Float64, whose product with one of float32 is exact.
    exponent = f"((_ sign_extend {DOUBLE.exponent_bits - TENSOR_EXPONENT.width}) {unit.port('tensor_exponent')})"
    field = f"(bvsub {bits(DOUBLE.bias, DOUBLE.exponent_bits)} {exponent})"
    text += define("power", DOUBLE, f"(fp #b0 {field} {bits(0, DOUBLE.precision - 1)})")
    text += define("has_nan", "Bool", either(*(is_nan(name, plan.source) for name in ("code", "other"))))
    for name in ("code", "other"):
        # Without its sign: a code of float32 is read as one.
        below = f"(concat #b0 {slice_of(name, width - 2, 0)}{_zeros(plan.source)})"
        single = round_to(DOUBLE, from_bits(below, _SINGLE))
        text += define(f"{name}_in_float32", _SINGLE, round_to(_SINGLE, f"(fp.mul RNE {single} power)"))
    return text


def _zeros(source: FloatFormat) -> str:
    """Return the zero bits that extend a code of bfloat16 to one of float32, behind a blank."""
    more = FP32.width - source.width
    return f" {bits(0, more)}" if more else ""


def scale_formula(netlist: Netlist, plan: NumberPlan) -> str:
    """Return a formula with a solution if the scale of a block of two values is wrong."""
    text, scale = _values(netlist, plan), plan.scale
    names = "code_in_float32", "other_in_float32"
    text += define("largest", _SINGLE, f"(ite (fp.geq {' '.join(names)}) {' '.join(names)})")
    divided = f"(fp.div RNE largest {number(plan.largest_element, _SINGLE)})"
    text += define("magnitude", DOUBLE, round_to(DOUBLE, divided)) + rounding("false", scale, "scale")
    most = equal("scale", bits(scale.max_finite, scale.width))
    finite = f"(ite is_beyond {most} is_rounded)"
    text += define("correct", "Bool", f"(ite has_nan {equal('scale', bits(scale.nan, scale.width))} {finite})")
    return text + refute("correct")


def element_formula(netlist: Netlist, plan: NumberPlan) -> str:
    """Return a formula with a solution if an element of a block of two values is wrong beside its scale."""
    text, scale, element = _values(netlist, plan), plan.scale, plan.element
    text += define("divisor", _SINGLE, round_to(_SINGLE, decode("scale", scale, DOUBLE)))
    one, zero = number(Fraction(1), _SINGLE), f"(_ +zero {_SINGLE.exponent_bits} {_SINGLE.precision})"
    text += define("factor", _SINGLE, f"(ite (fp.isZero divisor) {zero} (fp.div RNE {one} divisor))")
    text += define("magnitude", DOUBLE, round_to(DOUBLE, "(fp.mul RNE code_in_float32 factor)"))
    sign = sign_bit("code", plan.source)
    text += rounding(sign, element, "out")
    negative, positive = (bits(element.max_finite | of_sign, element.width) for of_sign in (element.sign_mask, 0))
    saturated = equal("out", f"(ite {sign} {negative} {positive})")
    text += define("correct", "Bool", f"(ite {either('has_nan', 'is_beyond')} {saturated} is_rounded)")
    return text + refute("correct")
