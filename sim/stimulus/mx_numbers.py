"""Stimulus and bins of block quantisers whose scales are numbers, as in NVFP4.

The scale of a block's tensor is any power of two.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat, decode, encode, mx
from golden.arrays.checks import code_dtype
from hdl import MxQuantizer
from hdl.mx.number_plan import TENSOR_EXPONENT, NumberPlan
from sim.stimulus.coverage import classes, count_bins, rounding_cases
from sim.stimulus.operands import Codes
from sim.stimulus.resets import required_resets

__all__ = [
    "RECIPE",
    "around_quotients",
    "around_scales",
    "exponents_of",
    "number_bins",
    "quantized",
    "required_number_bins",
    "values_of",
]

#: The recipe that the units compute.
RECIPE = "triton_nvfp4"
#: Blocks for each scale, with other neighbours of ties.
_ROUNDS = 2
_FURTHEST = 2
_BITS = TENSOR_EXPONENT.width
_LEAST, _MOST = -(1 << _BITS - 1), (1 << _BITS - 1) - 1


def _plan_of(unit: MxQuantizer) -> NumberPlan:
    assert isinstance(unit.plan, NumberPlan)
    return unit.plan


def values_of(codes: Codes, source: FloatFormat) -> NDArray[np.float32]:
    """Return the values of codes; a NaN keeps its sign, which the element has, too."""
    sign = np.where(codes & codes.dtype.type(source.sign_mask), np.float32(-1), np.float32(1))
    return np.copysign(decode(codes, source), sign)


def exponents_of(values: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return an exponent of the tensor's scale for each block: most bring the block into the range of its scale."""
    finite = np.where(np.isfinite(values), np.abs(values.astype(np.float64)), 0).max(-1)
    fitting = np.frexp(np.where(finite, finite, 1.0))[1] - rng.integers(-11, 15, len(values))
    drawn = rng.choice([_LEAST, _MOST, 0, *rng.integers(_LEAST, _MOST + 1, 16)], len(values))
    chosen = np.where(rng.random(len(values)) < 0.8, fitting, drawn)
    return np.clip(chosen, _LEAST, _MOST).astype(np.int64)


def _placed(parts: NDArray[np.float64], source: FloatFormat, rng: np.random.Generator) -> Codes:
    """Return codes of blocks, each scaled by a power of two into the part of the source's range that can hold them."""
    room = 12
    exponents = rng.integers(source.emin + room, source.emax - room + 1, len(parts))
    moved = np.ldexp(parts, exponents[:, np.newaxis].astype(np.int32))
    return encode(moved, source).astype(np.int64)


def _with_neighbours(codes: Codes, source: FloatFormat, rng: np.random.Generator) -> Codes:
    """Return codes moved by up to a few places, with any sign."""
    moved = np.maximum(codes + rng.integers(-_FURTHEST, _FURTHEST + 1, codes.shape), 0)
    return moved | rng.integers(0, 2, codes.shape) * source.sign_mask


def around_quotients(unit: MxQuantizer, rng: np.random.Generator) -> Codes:
    """Return blocks for each scale, with values whose quotients are near elements and near midpoints of elements."""
    elements, scales = _numbers(_plan_of(unit).element), np.tile(_numbers(_plan_of(unit).scale)[1:], _ROUNDS)
    points = np.concatenate([elements[1:], (elements[:-1] + elements[1:]) / 2])
    chosen = rng.choice(points, (len(scales), unit.block - 1)) * scales[:, np.newaxis]
    largest = scales[:, np.newaxis] * elements[-1]
    codes = _placed(np.concatenate([largest, chosen], 1), unit.source, rng)
    codes[:, 1:] = _with_neighbours(codes[:, 1:], unit.source, rng)
    return codes


def around_scales(unit: MxQuantizer, rng: np.random.Generator) -> Codes:
    """Return blocks whose largest magnitude is near the boundary between two scales."""
    elements, scales = _numbers(_plan_of(unit).element), _numbers(_plan_of(unit).scale)
    between = np.repeat((scales[:-1] + scales[1:]) / 2 * elements[-1], 2 * _FURTHEST + 1)
    codes = _placed(between[:, np.newaxis] * np.append(1.0, rng.random(unit.block - 1) / 2), unit.source, rng)
    codes[:, :1] = _with_neighbours(codes[:, :1], unit.source, rng)
    return codes


def _numbers(fmt: FloatFormat) -> NDArray[np.float64]:
    """Return the numbers of a format from 0 up."""
    return decode(np.arange(fmt.max_finite + 1, dtype=code_dtype(fmt)), fmt).astype(np.float64)


def quantized(
    unit: MxQuantizer, values: NDArray[np.float32], exponents: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return scales and elements of blocks; each block has its own tensor scale."""
    scales, elements = np.zeros(len(values), np.uint8), np.zeros(values.shape, np.uint8)
    for exponent in np.unique(exponents):
        its = exponents == exponent
        found = mx.quantize(values[its], _plan_of(unit).blocks, scale=RECIPE, tensor_scale=float(2.0**exponent))
        scales[its], elements[its] = found.scales[:, 0], found.codes
    return scales, elements


def number_bins(
    unit: MxQuantizer, given: Codes, exponents: NDArray[np.int64], scales: Codes, codes: Codes
) -> Counter[str]:
    """Count kinds of blocks; and for each value of a block with a scale its class, its element's, and how it rounds."""
    source, scale, element = unit.source, _plan_of(unit).scale, _plan_of(unit).element
    kinds, values = classes(given, source), values_of(given.astype(code_dtype(source)), source).astype(np.float64)
    has_nan, has_infinity = (np.isin(kinds, names).any(-1) for names in (["nan", "signalling"], ["infinity"]))
    block = np.select(
        [has_nan & has_infinity, has_nan, has_infinity, ~values.any(-1), scales == 0, scales == scale.max_finite],
        ["nan_and_infinity", "nan", "infinity", "zeros", "no_scale", "largest_scale"],
        np.where(scales < 1 << scale.fraction_bits, "subnormal_scale", "usual"),
    )
    bins = count_bins(np.full(len(block), "block"), block)
    sound = ~has_nan & (scales != 0)
    unit_of_block = np.ldexp(_numbers(scale)[scales[sound]], exponents[sound].astype(np.int32))[:, np.newaxis]
    quotients = values[sound] / unit_of_block
    cases = rounding_cases(quotients, 0.0, codes[sound].astype(np.uint16), element)
    cases = np.where(np.abs(quotients) > _numbers(element)[-1], "saturated", cases)
    bins += count_bins(np.full(cases.size, "value"), classes(codes[sound], element).ravel(), cases.ravel())
    # The recipe rounds the reciprocal of the scale, too.
    once = encode(quotients, element, overflow="saturate")
    bins["value/other_than_the_quotient"] = int((once != codes[sound]).sum())
    first = np.where(np.isnan(values), -1, np.abs(values)).argmax(-1)[sound]
    bins["largest/first"], bins["largest/last"] = int((first == 0).sum()), int((first == values.shape[1] - 1).sum())
    return +bins


def required_number_bins(unit: MxQuantizer) -> set[str]:
    """Return the bins that must not be empty."""
    required = required_resets(unit.latency, answers_wait_for_more=unit.beats > 1)
    kinds = "nan infinity zeros no_scale largest_scale subnormal_scale usual"
    required |= {f"block/{kind}" for kind in kinds.split()} | {"largest/first", "largest/last"}
    required |= {f"value/normal/{case}" for case in ("exact", "below_half", "tie", "above_half", "saturated")}
    # A tie beside the one subnormal element becomes 0 or normal.
    required |= {f"value/subnormal/{case}" for case in ("exact", "below_half", "above_half")}
    required |= {f"value/zero/{case}" for case in ("exact", "below_half", "tie")}
    if unit.source.fraction_bits > 2 * _plan_of(unit).scale.fraction_bits + 2:
        required.add("value/other_than_the_quotient")
    return required
