"""From the results of the probes to a model, and from the model to its verification."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import OPERAND_BITS, Accumulator
from golden.arrays.checks import as_codes, as_flag, as_format
from golden.formats import FP32, FloatFormat
from golden.identification.climb import Search
from golden.identification.consistency import RANDOM, SAME, consistency, consistency_probes
from golden.identification.device import Device, result_format
from golden.identification.facts import fact_probes, facts
from golden.identification.findings import Finding
from golden.identification.fit import (
    Candidate,
    Examples,
    fitted_accumulator,
    fitted_disclosure,
    fitted_preset,
    fitted_reduction,
)
from golden.identification.identified import Identified
from golden.identification.order import Order, order_of, structures
from golden.identification.probes import Probe, probes, units
from golden.identification.shortest import shortest
from golden.identification.start import start_difference, start_finding, start_probes
from golden.identification.verification import Difference, difference, verified
from golden.rounding import Rounding

__all__ = ["all_probes", "concluded", "identify"]

_ROUNDS = 4
_MOST = 10**9


def all_probes(operand: FloatFormat, seed: int, initial: FloatFormat | None = None) -> list[Probe]:
    """Return every product that a device is asked for before a model is verified."""
    operand = _operand(operand)
    again, start = np.random.default_rng([seed, 0xA6A1]), np.random.default_rng([seed, 0x57A7])
    asked = probes(operand, seed) + list(consistency_probes(operand, again)) + fact_probes(operand)
    return asked if initial is None else asked + list(start_probes(start, operand, initial))


def identify(
    function: Callable[..., Any],
    *,
    operand: FloatFormat | str,
    result: FloatFormat | str | None = None,
    initial: FloatFormat | str | None = None,
    seed: int = 0,
    verify: int = 1_000_000,
    values: bool = False,
    progress: bool = False,
) -> Identified:
    """Find out what a function computes that multiplies matrices.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` multiplies codes of shape (M, K) and (K, N) and returns codes of shape (M, N), unsigned or
        the same bits signed. With `initial`, ``function(a, b, start)`` adds the product to codes of shape (M, N).
    operand : FloatFormat or str
        Format of the factors, of at most 19 bits.
    result : FloatFormat or str, optional
        Format of the results; found unless given. Values are in float32.
    initial : FloatFormat or str, optional
        Format of the values from which the device starts its sums, where it takes them. The model then takes them so
        too; where they join otherwise, there is no model.
    seed : int
        Of the random probes: 0 to 10**9.
    verify : int
        Random sums of hard kinds with which a model must agree in every bit: 0 to 10**9.
    values : bool
        Whether the function takes and returns values in float32 in place of codes.
    progress : bool
        Whether to write a line at every stage, to standard error.

    Returns
    -------
    Identified
        The model, or None with the nearest ones, and statements with the sums that show them. There is no model of a
        device that does not repeat its results, or whose sums depend on M, N or their position.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or the function returns another shape or type.

    Examples
    --------
    >>> import golden
    >>> def device(a, b):
    ...     return golden.matmul(a, b, operand="bfloat16", level=1, chunk=12)
    >>> print(golden.identify(device, operand="bfloat16", verify=1000).model)
    operand=bfloat16 inner=bfloat16 chunk=12 outer=float32 out=float32
    """
    operand = _operand(operand)
    for name, given in (("seed", seed), ("verify", verify)):
        if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _MOST:
            raise ValueError(f"{name}: got {given!r}, must be an int from 0 to {_MOST}")
    say = _told if as_flag(progress, "progress") else _untold
    start = None if initial is None else as_format(initial, "initial")
    known = None if result is None else as_format(result, "result")
    if as_flag(values, "values") and known not in (None, FP32):
        raise ValueError(f"result: got {known} with values=True, must be float32 or left out: values are in float32")
    device = Device(function, operand, values=values, initial=start, result=known)
    out = result_format(device)
    asked = all_probes(operand, seed, start)
    say(f"asking for {len(asked)} products")
    answers = [(probe, as_codes(device.product(probe), out, "result")) for probe in asked]
    verifier = partial(verified, device=device, seed=seed, verify=verify, say=say)
    return concluded(answers, operand, out, initial=start, device=device, verifier=verifier, say=say)


def _told(line: str) -> None:
    print(line, file=sys.stderr)


def _untold(line: str) -> None:
    del line


def _operand(given: FloatFormat | str) -> FloatFormat:
    operand = as_format(given, "operand")
    if operand.width > OPERAND_BITS[-1]:
        raise ValueError(
            f"operand: got {operand}, must have at most {OPERAND_BITS[-1]} bits: no model takes wider factors"
        )
    return operand


def concluded(
    answers: Sequence[tuple[Probe, NDArray[Any]]],
    operand: FloatFormat,
    out: FloatFormat,
    *,
    initial: FloatFormat | None = None,
    device: Device | None = None,
    verifier: Callable[[Any, Examples], tuple[int, Difference | None]] | None = None,
    say: Callable[[str], None] = _untold,
) -> Identified:
    """Return what results of probes show; a verifier judges the model on new sums of the device."""
    asked, results = zip(*answers, strict=True)
    every = Examples(asked, results, operand, out)
    same, is_steady = consistency(list(zip(every.asked, every.results, strict=True)), out)
    order = order_of(asked, results, out, units(operand))
    found = [_order_finding(order), *same, *facts(asked, results, operand, out)]
    examples = every.named("hard")
    if all((each == results[0].flat[0]).all() for each in results):
        found.insert(0, Finding("All results are equal: the device does not multiply."))
        is_steady = False
    search = None if device is None else Search(device, operand, out)
    for _ in range(_ROUNDS):
        say(f"looking for a model of {examples.count:,} sums")
        candidates = _candidates(examples, order, search, is_known=is_steady)
        best = max(candidates, key=lambda each: each.share)
        if best.share < 1.0 or not is_steady:
            break
        count, wrong = _judged(best.model, every.without("hard", "start"), device)
        if wrong is None and verifier is not None:
            count, wrong = verifier(best.model, every)
        if wrong is None or wrong.probe.initial is not None:
            if initial is not None:
                joins, as_model = start_finding(best.model, every.named("start"), initial)
                if as_model and wrong is not None:
                    joins = start_difference(best.model, wrong.probe, wrong.result, every)
                found.append(joins)
                if not as_model or wrong is not None:
                    break
            nans = _nan_codes(asked, results, out)
            model = _with_nan(best.model, nans, out)
            return Identified(operand, out, model, (*found, *_about_nan(model, nans, out)), (best,), count)
        if wrong.finding is not None:
            found = [each for each in found if each.statement not in SAME] + [wrong.finding]
            break
        examples = examples.extended(wrong.probe, np.array([[wrong.result]], results[0].dtype))
    candidates.sort(key=lambda each: -each.share)
    if initial is not None and is_steady and candidates[0].share < 1.0:
        found += _added_last(every, order, search, initial)
    failing = shortest(candidates[0].model, examples, device)
    if failing is None and device is not None and candidates[0].share < 1.0:
        found = [each for each in found if each.statement not in SAME]
        found.append(_unsteady(candidates[0].model, examples, device))
    return Identified(operand, out, None, tuple(found), tuple(candidates), 0, failing)


def _judged(model: Any, others: Examples, device: Device | None) -> tuple[int, Difference | None]:
    """Return how many random sums that did not choose the model are equal, and the first difference."""
    for probe, result in zip(others.asked, others.results, strict=True):
        wrong = difference(model, probe, result, others, device)
        if wrong is not None:
            return 0, wrong
    return others.named(*RANDOM).count, None


def _unsteady(model: Any, examples: Examples, device: Device) -> Finding:
    """Return what differs where a sum by itself is the model's, and was another one in a product."""
    wrong = _judged(model, examples, device)[1]
    return (wrong.finding if wrong else None) or Finding("Results do not repeat.")


def _added_last(every: Examples, order: Order | None, search: Search | None, initial: FloatFormat) -> list[Finding]:
    """Return where the initial value joins if it is behind the last product: +0 then turns sums of -0 into +0."""
    if initial != FP32 or every.out != FP32:
        return []
    alike = every.with_equal_zeros()
    best = max(_candidates(alike.named("hard"), order, search, is_known=True), key=lambda each: each.share)
    if best.share < 1.0:
        return []
    joins, as_model = start_finding(best.model, every.named("start"), initial)
    return [] if as_model else [joins, Finding(f"Without it, the nearest model is {best.model}.")]


def _order_finding(order: Order | None) -> Finding:
    if order is None:
        return Finding(
            "Order: not found. Of small terms behind two large ones, all survive or none does, or rounding hides which."
        )
    return Finding(f"Order: {order.text()}.")


def _candidates(examples: Examples, order: Order | None, search: Search | None, *, is_known: bool) -> list[Candidate]:
    chunks: list[int | None] = [None, 1] if order is None or order.period == 1 else [order.period, None]
    if order is None:
        chunks += [2, 4, 8, 12, 16, 32, 64, 128]
    if not is_known:  # a model is only named as the nearest
        return [fitted_reduction(examples, chunks[:2], [Rounding.NEAREST_EVEN])]
    preset = fitted_preset(examples)
    if preset is not None:
        return [preset]
    reduction = fitted_reduction(examples, chunks)
    if reduction.share == 1.0:
        return [reduction]
    disclosure = fitted_disclosure(examples)
    if disclosure is not None:
        return [disclosure]
    searched = None if search is None else search.found(examples)
    if searched is not None and searched.share == 1.0:
        return [searched]
    improved = fitted_accumulator(examples, structures(order, examples.out) if order else [])
    return [each for each in (reduction, improved, searched) if each is not None]


def _nan_codes(asked: Sequence[Probe], results: Sequence[NDArray[Any]], out: FloatFormat) -> list[int]:
    """Return the codes of the NaNs among the results."""
    return sorted({int(code) for result in results for code in np.unique(result[out.is_nan(result)])})


def _with_nan(model: Any, nans: list[int], out: FloatFormat) -> Any:
    is_own = isinstance(model, Accumulator) and len(nans) == 1 and out == model.outer
    return replace(model, nan=nans[0]) if is_own else model


def _about_nan(model: Any, nans: list[int], out: FloatFormat) -> list[Finding]:
    models = model.nan if isinstance(model, Accumulator) and out == model.outer else out.nan if out.has_nan else None
    if models is None or not set(nans) - {models}:
        return []
    codes = ", ".join(f"{nan:#x}" for nan in nans[:4]) + (", ..." if len(nans) > 4 else "")
    what = f"A NaN has the code {codes}" if len(nans) == 1 else f"NaNs have several codes ({codes})"
    return [Finding(f"{what}, in the model {models:#x}: all other bits are equal.")]
