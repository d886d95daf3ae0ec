"""Models in the words of RISC-V's integrated matrix extension: the disclosure (G, psm, rnd) of an implementer."""

from __future__ import annotations

from collections.abc import Iterator

from golden.accumulator import Accumulator, FusedSum
from golden.formats import FP32, FloatFormat
from golden.grouped_sums import ROUNDINGS, GroupedSums, riscv_ime
from golden.reduction import Reduction
from golden.rounding import Rounding

__all__ = ["disclosed", "disclosures"]

_GROUPS = (1, 2, 4, 8, 16, 32, 64)


def _rules(operand: FloatFormat, total: FloatFormat) -> Iterator[tuple[int, str, GroupedSums]]:
    """Return every rule of the extension for these formats, with its G and rnd; none where it has no such product."""
    for groups in _GROUPS:
        for rnd in ROUNDINGS:
            try:
                yield groups, rnd, riscv_ime(G=groups, psm=0, rnd=rnd, operand=operand, accumulator=total)
            except ValueError:  # a pair of formats that the extension does not have
                return


def disclosures(operand: FloatFormat, out: FloatFormat) -> Iterator[Reduction]:
    """Return the products of the extension as models, in each mode of ``frm``.

    Parameters
    ----------
    operand, out : FloatFormat
        Formats of the factors and of the result, which is the format of the total.

    Notes
    -----
    The order of a sum does not narrow the groups down: nothing is lost within an exact group.
    """
    for _, _, rule in _rules(operand, out):
        for mode in rule.roundings:
            yield Reduction(operand=operand, out=out, accumulator=rule, rounding=mode)


def disclosed(model: Reduction | Accumulator, operand: FloatFormat, out: FloatFormat) -> str:
    """Return the disclosure of a model in a line, or the reason why the extension has no words for it.

    Parameters
    ----------
    model : Reduction or Accumulator
        The model that computes a device's sums.
    operand, out : FloatFormat
        Formats of its factors and results.
    """
    if isinstance(model, Reduction) and isinstance(model.accumulator, GroupedSums):
        for groups, rnd, rule in _rules(operand, out):
            if rule == model.accumulator:
                return _line(groups, rnd, out, model.rounding)
    total = model.outer
    if out != total:
        return f"none: the total is in {total} and the result in {out}, the extension has one format for both"
    known = list(_rules(operand, total))
    if not known:
        return f"none: the extension has no products of {operand} into {total}"
    widening = known[0][2].group
    if isinstance(model, Reduction):
        return _of_reduction(model, widening)
    return _of_accumulator(model, operand, widening)


def _line(groups: int, rnd: str, total: FloatFormat, mode: Rounding) -> str:
    return f"G={groups} psm=0 rnd={rnd}, accumulator {total}, frm {mode}"


def _one_by_one(widening: int) -> str:
    return f"none: products join one by one, the smallest group of the extension has {widening}"


def _of_reduction(model: Reduction, widening: int) -> str:
    """Return the disclosure of a sum in partial sums: a single product, rounded as the total, is a group."""
    if isinstance(model.accumulator, Accumulator) and model.operand is not None:
        return disclosed(model.accumulator, model.operand, model.result)
    if model.flushes:
        return "none: subnormal numbers are flushed, the extension keeps them"
    if model.rounding not in GroupedSums(1, "frm", FP32, FP32).roundings:
        return f"none: {model.rounding} is no mode of frm"
    if widening == model.chunk == 1 and model.inner == model.outer:
        return _line(1, "frm", model.outer, model.rounding)
    if widening > 1 and (model.chunk == 1 or model.is_chain):
        return _one_by_one(widening)
    return "psm=1: partial sums are rounded step by step, which the three values do not say"


def _of_accumulator(rule: Accumulator, operand: FloatFormat, widening: int) -> str:
    """Return the disclosure of blocks whose sum is exact, rounded once, and added to the total with one rounding."""
    if rule.flush != "none":
        return "none: subnormal numbers are flushed, the extension keeps them"
    if rule.promote_every is not None:
        return f"none: a second total takes the sum every {rule.promote_every} products"
    mode = rule.join.rounding
    if mode not in GroupedSums(1, "frm", FP32, FP32).roundings:
        return f"none: the total is rounded {mode}, which is no mode of frm"
    if not rule.stages and widening > 1 and (rule.block == 1 or rule.join.chain):
        return _one_by_one(widening)
    names = {mode: "frm", Rounding.TO_ODD: "rto"}
    is_two_step = rule.join == FusedSum(2, rounding=mode) and len(rule.stages) == 1 and not rule.products_overflow
    if is_two_step and _is_exact(rule, rule.stages[0], operand):
        (groups, rest), rounding = divmod(rule.block, widening), rule.stages[0].rounding
        if rest or groups not in _GROUPS:
            return f"none: the extension has no groups of {rule.block} products"
        if rounding not in names:
            return f"none: the sum of a group is rounded {rounding}, and the total {mode}"
        return _line(groups, names[rounding], FP32, mode)
    return "psm=1: the sum of a group is not exact, and the three values do not say how it is rounded"


def _is_exact(rule: Accumulator, stage: FusedSum, operand: FloatFormat) -> bool:
    """Return whether a stage adds all products of a block exactly and rounds once to float32."""
    if stage.terms != rule.block or stage.chain or stage.result != FP32:
        return False
    if stage.fraction_bits is None:
        return True
    lowest = 2 * (operand.emin - operand.fraction_bits)
    zero = -1000 if rule.zero_exponent is None else rule.zero_exponent
    return max(2 * operand.emax, operand.emax + zero, 2 * zero) - stage.fraction_bits <= lowest
