"""Proofs about the block quantiser's datapath: the scale and the element of a value beside any other value.

A block of two values represents a block of any size: of the other values, only the largest exponent matters. So for
every value, and for every other value as the largest of the block:

- the scale is the power of two that puts the largest one into the top binade of the element format, where there is such
  a scale, and else the nearest;
- the value over this scale lies in the interval of the numbers that round to its element, or beyond the largest one.

Numbers are Float64, read from the codes by moving their exponents. None is ever rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from golden import FP32, FloatFormat, decode, mx
from golden.arrays.checks import code_dtype
from golden.formats import FLOAT8_E4M3FN, NARROW_FORMATS, WIDE_FORMATS
from golden.rounding import Rounding
from hdl.mx.block import QuantizeBlock
from hdl.mx.plan import BlockPlan
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import netlist_of
from lab.proofs.by_interval import rounding
from lab.proofs.proof import BITWUZLA, Proof
from lab.proofs.terms import (
    DOUBLE,
    bits,
    both,
    define,
    either,
    equal,
    inverse,
    is_infinite,
    is_nan,
    refute,
    sign_bit,
    slice_of,
    widened,
)

__all__ = ["block_proofs", "formula"]

#: Proven in every mode.
_IN_ALL_MODES = (FP32, FLOAT8_E4M3FN)
_RANDOM_BITS = 16
_SCALE_BITS = 8


def block_proofs() -> Iterator[Proof]:
    """Yield the proofs of blocks of two values."""
    for source in WIDE_FORMATS:
        for element in NARROW_FORMATS:
            every = (source, element) == _IN_ALL_MODES
            for mode in Rounding if every else (Rounding.NEAREST_EVEN,):
                plan = BlockPlan(source, element, mode, _RANDOM_BITS)
                yield Proof(
                    f"mx/pair/{source}_to_{element}/{mode}/interval",
                    "block quantiser: a value and its scale",
                    f"{source} to {element}, {mode}",
                    "interval",
                    BITWUZLA,
                    partial(_build, plan),
                    timeout=300,
                    fast=every and mode is Rounding.NEAREST_EVEN,
                    explain=partial(_explain, plan),
                )


def _build(plan: BlockPlan, folder: Path) -> str:
    return formula(netlist_of(QuantizeBlock(plan, 2), folder), plan)


def formula(netlist: Netlist, plan: BlockPlan) -> str:
    """Return a formula with a solution if a netlist with the ports of `QuantizeBlock`, of two values, is wrong."""
    unit = netlist.instance()
    source, element = plan.source, plan.element
    width = source.width
    text = unit.text + unit.shown
    for at, name in enumerate(("code", "other")):
        text += define(name, _word(width), slice_of(unit.port("values"), width * (at + 1) - 1, width * at))
    text += define("out", _word(element.width), slice_of(unit.port("codes"), element.width - 1, 0))
    text += define("scale", _word(_SCALE_BITS), unit.port("scale"))
    below_sign = [slice_of(name, width - 2, 0) for name in ("code", "other")]
    larger = f"(ite (bvuge {below_sign[0]} {below_sign[1]}) {below_sign[0]} {below_sign[1]})"
    text += define("larger", _word(width), f"(concat #b0 {larger})")

    specials = [is_special(name, source) for name in ("code", "other") for is_special in (is_nan, is_infinite)]
    text += define("has_special", "Bool", either(*specials))
    text += define("magnitude", DOUBLE, _quotient("code", source, "scale"))
    text += define("largest", DOUBLE, _quotient("larger", source, "scale"))
    text += rounding(sign_bit("code", source), element, "out", plan.rounding, **_random(plan, unit))
    top = element.max_finite
    of_sign = (bits(top | sign * element.sign_mask, element.width) for sign in (1, 0))
    saturated = equal("out", f"(ite {sign_bit('code', source)} {' '.join(of_sign)})")
    right = f"(ite is_beyond {saturated} is_rounded)"
    nothing = both(equal("scale", bits(mx.SCALE_NAN, _SCALE_BITS)), equal("out", bits(0, element.width)))
    text += define("correct", "Bool", f"(ite has_special {nothing} {both(_scale_is_right(element), right)})")
    return text + refute("correct")


def _word(width: int) -> str:
    return f"(_ BitVec {width})"


def _random(plan: BlockPlan, unit: Instance) -> dict[str, Any]:
    if not plan.is_stochastic:
        return {}
    return {"random": slice_of(unit.port("random"), plan.random_bits - 1, 0), "random_bits": plan.random_bits}


def _quotient(code: str, fmt: FloatFormat, scale: str) -> str:
    """Return the magnitude of a code over a scale as a Float64, whose exponent field is put together."""
    exponent_bits = DOUBLE.exponent_bits
    field = slice_of(code, fmt.width - 2, fmt.fraction_bits)
    is_subnormal = equal(field, bits(0, fmt.exponent_bits))
    wide = f"(ite {is_subnormal} {bits(1, exponent_bits)} {widened(field, fmt.exponent_bits, exponent_bits)})"
    constant = bits(DOUBLE.bias - fmt.bias + mx.SCALE_BIAS, exponent_bits)
    moved = f"(bvsub (bvadd {wide} {constant}) {widened(scale, _SCALE_BITS, exponent_bits)})"
    fraction_bits = DOUBLE.precision - 1
    fraction = f"(concat {slice_of(code, fmt.fraction_bits - 1, 0)} {bits(0, fraction_bits - fmt.fraction_bits)})"
    # Without its leading bit, a subnormal is the difference of two normal numbers.
    normal, leading = (f"(fp #b0 {moved} {each})" for each in (fraction, bits(0, fraction_bits)))
    return f"(ite {is_subnormal} (fp.sub RNE {normal} {leading}) {normal})"


def _scale_is_right(element: FloatFormat) -> str:
    """Tell whether the largest value, over its scale, lies in the top binade, unless the scale is at its limit."""
    lower, upper = (
        f"(fp #b0 {bits(DOUBLE.bias + element.emax + above, DOUBLE.exponent_bits)} {bits(0, DOUBLE.precision - 1)})"
        for above in (0, 1)
    )
    is_least, is_most, is_nan_scale = (
        equal("scale", bits(code, _SCALE_BITS)) for code in (0, mx.SCALE_NAN - 1, mx.SCALE_NAN)
    )
    return both(
        inverse(is_nan_scale),
        either(is_least, f"(fp.geq largest {lower})"),
        either(is_most, f"(fp.lt largest {upper})"),
    )


def _explain(plan: BlockPlan, ports: Mapping[str, int]) -> str:
    width, source = plan.source.width, plan.source
    codes = [ports["values"] >> width * at & (1 << width) - 1 for at in (0, 1)]
    options: dict[str, Any] = {}
    if plan.is_stochastic:
        mask = (1 << plan.random_bits) - 1
        random = [ports["random"] >> plan.random_bits * at & mask for at in (0, 1)]
        options = {"random": np.array(random, np.uint32), "random_bits": plan.random_bits}
    values = decode(np.array(codes, code_dtype(source)), source)
    scales, elements = mx.quantize(values, plan.element, block=2, rounding=plan.rounding, **options)
    got = ports["codes"] & (1 << plan.element.width) - 1
    return (
        f"golden gives the scale {scales[0]} and {elements[0]:#x} for {codes[0]:#x} beside {codes[1]:#x}, the unit "
        f"{ports['scale']} and {got:#x}"
    )
