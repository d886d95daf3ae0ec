"""Products by the accumulators of other machines on a card: the launches of their kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_bool, c_double, c_int, c_int64
from dataclasses import dataclass

from golden.accumulator import Accumulator, FusedSum
from golden.cuda.plan import Arrays, Launch, ProductPlan, plan_product
from golden.cuda.structures import Product
from golden.cuda.variants import MACHINE
from golden.formats import FloatFormat
from golden.kernels.products import most_results
from golden.reduction import Reduction

__all__ = [
    "Accumulation",
    "AccumulationPlan",
    "RuleFields",
    "SumFields",
    "are_served",
    "plan_accumulation",
]

# Of accumulate.h, and of accumulation.h: rows of a block.
_MOST_STAGES, _MOST_PRODUCTS, _ROWS = 8, 64, 8
_FLUSHES = ("none", "signed", "positive")
_NO_EXPONENT = -(1 << 20)
_FLOAT_BITS = 24

_TILE = 32  # the side of the tiles that the kernel takes


class SumFields(ctypes.Structure):
    """One fused sum."""

    _fields_ = [
        ("terms", c_int),
        ("fraction_bits", c_int),
        ("cut", c_int),
        ("rounding", c_int),
        ("result_bits", c_int),
        ("result_emin", c_int),
        ("chain", c_bool),
        ("interleaved", c_bool),
    ]


class RuleFields(ctypes.Structure):
    """The rule of a machine for operands of a format."""

    _fields_ = [
        ("block", c_int),
        ("stages", c_int),
        ("stage", SumFields * _MOST_STAGES),
        ("join", SumFields),
        ("ordered", c_bool),
        ("order", c_int * _MOST_PRODUCTS),
        ("total_bits", c_int),
        ("total_reach", c_int),
        ("zero_exponent", c_double),
        ("zero_total_exponent", c_double),
        ("products_overflow", c_bool),
        ("flush", c_int),
        ("depth", c_int64),
        ("promote", c_int64),
        ("operand_emin", c_int),
        ("products_are_floats", c_bool),
        ("aligns", c_bool),
    ]


class Accumulation(ctypes.Structure):
    """The argument of `accumulate`."""

    _fields_ = [("product", Product), ("rule", RuleFields)]


def are_served(reduction: Reduction, results: int) -> bool:
    """Return whether the kernel follows the rule of a machine, and has random bits for so many results."""
    rule = reduction.accumulator
    return isinstance(rule, Accumulator) and len(rule.stages) <= _MOST_STAGES and results <= most_results(reduction)


@dataclass(frozen=True)
class AccumulationPlan:
    """A product that another machine sums, ready to run but for the address of its workspace."""

    product: ProductPlan
    rule: Accumulator
    operand: FloatFormat

    @property
    def workspace_bytes(self) -> int:
        """Bytes of memory on the card, as of `golden.cuda.plan.ProductPlan`."""
        return self.product.workspace_bytes

    def launches(self, workspace: int) -> Iterator[Launch]:
        """Yield the launches, one after the other on one stream, none if there are no results."""
        for each in self.product.launches(workspace):
            if each.variant is None:  # which packs an operand
                yield each
            else:
                argument = Accumulation(Product.from_buffer_copy(each.arguments), _rule(self.rule, self.operand))
                yield Launch(MACHINE, "accumulate", each.blocks * (_TILE // _ROWS), bytes(argument))


def plan_accumulation(reduction: Reduction, arrays: Arrays) -> AccumulationPlan:
    """Plan products of (M, K) by (K, N) matrices that another machine sums.

    Parameters
    ----------
    reduction : Reduction
        With an operand and an accumulator.
    arrays : Arrays
        As of `golden.cuda.plan.plan_product`; initial values are rounded to the format of the results first.

    Raises
    ------
    ValueError
        As `golden.cuda.plan.plan_product`.
    """
    assert isinstance(reduction.accumulator, Accumulator)
    planned = plan_product(reduction, arrays, initial_format=reduction.result, tile=_TILE)
    return AccumulationPlan(planned, reduction.accumulator, reduction.factors)


def _or(number: int | None, otherwise: int) -> int:
    return otherwise if number is None else number


def _sum(spec: FusedSum) -> SumFields:
    rounding = -1 if spec.rounding is None else spec.rounding.value
    bits = _or(spec.fraction_bits, -1)
    result = spec.result.fraction_bits, spec.result.emin
    return SumFields(spec.terms, bits, spec.cut.value, rounding, *result, spec.chain, spec.interleaved)


def _rule(rule: Accumulator, operand: FloatFormat) -> RuleFields:
    sums = (*rule.stages, rule.join)
    return RuleFields(
        block=rule.block,
        stages=len(rule.stages),
        stage=tuple(map(_sum, rule.stages)),
        join=_sum(rule.join),
        ordered=bool(rule.order),
        order=rule.order,
        total_bits=_or(rule.total_fraction_bits, -1),
        total_reach=_or(rule.total_reach, -1),
        zero_exponent=_or(rule.zero_exponent, _NO_EXPONENT),
        zero_total_exponent=rule.zero_total_exponent,
        products_overflow=rule.products_overflow,
        flush=_FLUSHES.index(rule.flush),
        depth=rule.depth or rule.block,
        promote=rule.promote_every or 0,
        operand_emin=operand.emin,
        products_are_floats=2 * operand.precision <= _FLOAT_BITS,
        aligns=any(each.fraction_bits is not None for each in sums),
    )
