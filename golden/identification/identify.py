"""From the results of the probes to a model, and from the model to its verification."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator
from golden.arrays.checks import as_codes, as_flag, as_format
from golden.formats import FP32, FloatFormat
from golden.identification.device import Device, result_format
from golden.identification.facts import Finding, fact_probes, findings
from golden.identification.fit import Candidate, Examples, fitted_accumulator, fitted_reduction
from golden.identification.identified import Identified
from golden.identification.order import Order, order_of, structures
from golden.identification.probes import KINDS, Probe, hard_probe, probes, units
from golden.identification.shortest import shortest

__all__ = ["all_probes", "concluded", "identify"]

_REPEATS = "The same call repeats its results."
_ROUNDS = 4
_MOST = 10**9
_ROWS = 2048


def all_probes(operand: FloatFormat, seed: int) -> list[Probe]:
    """Return every product that a device is asked for before a model is verified."""
    return probes(operand, seed) + fact_probes(operand)


def identify(
    function: Callable[..., Any],
    *,
    operand: FloatFormat | str,
    result: FloatFormat | str | None = None,
    seed: int = 0,
    verify: int = 1_000_000,
    values: bool = False,
    progress: bool = False,
) -> Identified:
    """Find out what a function computes that multiplies matrices.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` multiplies codes of shape (M, K) and (K, N) and returns codes of shape (M, N).
    operand : FloatFormat or str
        Format of the factors, of at most 16 bits.
    result : FloatFormat or str, optional
        Format of the results; found unless given.
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
        The model, or None with the nearest ones, and statements with the sums that show them.

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
    device = Device(function, operand, values=as_flag(values, "values"))
    out = result_format(device) if result is None else as_format(result, "result")
    asked = all_probes(operand, seed)
    say(f"asking for {len(asked)} products")
    results = [as_codes(device.product(probe.a, probe.b), out, "result") for probe in asked]
    return concluded(asked, results, operand, out, device=device, seed=seed, verify=verify, say=say)


def _told(line: str) -> None:
    print(line, file=sys.stderr)


def _untold(line: str) -> None:
    del line


def _operand(given: FloatFormat | str) -> FloatFormat:
    operand = as_format(given, "operand")
    if operand.width > 16:
        raise ValueError(f"operand: got {operand}, must have at most 16 bits: no model takes wider factors")
    return operand


def concluded(
    asked: Sequence[Probe],
    results: Sequence[NDArray[Any]],
    operand: FloatFormat,
    out: FloatFormat,
    *,
    device: Device | None = None,
    **options: Any,
) -> Identified:
    """Return what results of probes show; with a device, verify the model on new products."""
    say = options.get("say", _untold)
    repeats, *places = _repeats(asked, results)
    found = [repeats, *places, *findings(asked, results, out)]
    order = order_of(asked, results, out, units(operand))
    found.insert(0, _order_finding(order))
    hard = [(probe, result) for probe, result in zip(asked, results, strict=True) if probe.name == "hard"]
    examples = Examples([probe for probe, _ in hard], [result for _, result in hard], operand, out)
    is_constant = all((each == results[0].flat[0]).all() for each in results)
    if is_constant:
        found.insert(0, Finding("All results are equal: the device does not multiply."))
    is_known = repeats.statement == _REPEATS and not is_constant
    for _ in range(_ROUNDS):
        say(f"looking for a model of {examples.count:,} sums")
        candidates = _candidates(examples, order, is_known=is_known)
        best = max(candidates, key=lambda each: each.share)
        if best.share < 1.0:
            break
        verified, wrong = _verified(best.model, examples, device, say=say, **_only(options, "seed", "verify"))
        if wrong is None:
            nan = _nan_code(asked, results, out)
            model = _with_nan(best.model, nan)
            return Identified(operand, out, model, (*found, *_about_nan(model, nan, out)), (best,), verified)
        probe, row = wrong
        rows = Probe("hard", probe.a[row : row + 1], probe.b)
        examples = examples.extended(rows, device.product(rows.a, rows.b) if device else results[0])
    candidates.sort(key=lambda each: -each.share)
    failing = shortest(candidates[0].model, examples, device)
    return Identified(operand, out, None, tuple(found), tuple(candidates), 0, failing)


def _only(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _order_finding(order: Order | None) -> Finding:
    if order is None:
        return Finding("Order: not found; rounding hides which terms are lost.")
    return Finding(f"Order: {order.text()}.")


def _repeats(asked: Sequence[Probe], results: Sequence[NDArray[Any]]) -> list[Finding]:
    """Return whether results repeat, and whether they depend on place and size."""
    by_name: dict[str, list[tuple[Probe, NDArray[Any]]]] = {}
    for probe, result in zip(asked, results, strict=True):
        by_name.setdefault(probe.name, []).append((probe, result))
    whole, again = by_name["whole"][0][1], by_name["whole again"][0][1]
    found = [Finding(_REPEATS if np.array_equal(whole, again) else "Results do not repeat.")]
    is_equal = len(np.unique(by_name["equal"][0][1])) == 1
    found.append(
        Finding("Equal sums have equal results at every place." if is_equal else "Results depend on their place.")
    )
    alone = all(result[0, 0] == whole[probe.about[0], 0] for probe, result in by_name["alone"])
    found.append(Finding("Results do not depend on M and N." if alone else "Results depend on M or N."))
    return found


def _candidates(examples: Examples, order: Order | None, *, is_known: bool) -> list[Candidate]:
    period = None if order is None else order.period
    chunks: list[int | None] = [None, 1] if period in (None, 1) else [period, None]
    if order is None:
        chunks += [2, 4, 8, 12, 16, 32, 64, 128]
    reduction = fitted_reduction(examples, chunks)
    if reduction.share == 1.0 or not is_known:
        return [reduction]
    accumulator = fitted_accumulator(examples, structures(order) if order else [])
    return [reduction, *([accumulator] if accumulator else [])]


def _verified(
    model: Any, examples: Examples, device: Device | None, *, seed: int = 0, verify: int = 0, say: Any = None
) -> tuple[int, tuple[Probe, int] | None]:
    """Return how many new sums are equal, and a product with the row that is not."""
    if device is None:
        return examples.count, None
    random = np.random.default_rng([seed, 0x7E57])
    done, turn = 0, 0
    while done < verify:
        length = int(random.choice([1, 2, 3, 4, 7, 16, 31, 32, 33, 48, 64, 96, 129, 200, 520]))
        rows = min(_ROWS, verify - done)
        probe = hard_probe(random, examples.operand, (rows, length), turn % KINDS)
        result = examples.plain(device.product(probe.a, probe.b))
        wrong = np.nonzero((examples.computed(probe, model) != result)[:, 0])[0]
        if len(wrong):
            return done, (probe, int(wrong[0]))
        done, turn = done + rows, turn + 1
        if say and turn % 50 == 0:
            say(f"verified {done:,} of {verify:,} sums")
    return done, None


def _nan_code(asked: Sequence[Probe], results: Sequence[NDArray[Any]], out: FloatFormat) -> int | None:
    """Return the code of every NaN among the results; None if there is none, or several."""
    codes = {int(code) for result in results for code in np.unique(result[out.is_nan(result)])}
    return codes.pop() if len(codes) == 1 else None


def _with_nan(model: Any, nan: int | None) -> Any:
    is_own = isinstance(model, Accumulator) and nan is not None and FP32.is_nan(nan) and nan > 0xFFFF
    return replace(model, nan=nan) if is_own else model


def _about_nan(model: Any, nan: int | None, out: FloatFormat) -> list[Finding]:
    models = model.nan if isinstance(model, Accumulator) and out == FP32 else out.nan if out.has_nan else None
    if nan is None or models is None or nan == models:
        return []
    return [Finding(f"A NaN has the code {nan:#x}, in the model {models:#x}: all other bits are equal.")]
