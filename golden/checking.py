"""Is this product exactly a model's? If not, does it keep the bound of every order of sums? In place of a tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.accumulator import Accumulator
from golden.arrays.checks import as_codes, as_format
from golden.arrays.conversion import decode
from golden.arrays.products import matmul
from golden.formats import FloatFormat
from golden.grouped_sums import GroupedSums
from golden.machine import Machine
from golden.nearest import did_you_mean
from golden.presets import accumulators
from golden.reduction import Reduction
from golden.rounding import Rounding

__all__ = ["Checked", "check"]

_SHOWN = 8


@dataclass(frozen=True)
class Checked:
    """How a product compares with a model.

    Parameters
    ----------
    model : Reduction or Accumulator
        What it was compared with.
    count, wrong, outside : int
        Elements; elements that differ from the model's in a bit; elements beyond the bound.
    first : tuple or None
        Place, code, and the model's code of the first element that differs.
    text : str
        The same in words, with the first elements that differ.
    """

    model: Reduction | Machine
    count: int
    wrong: int
    outside: int
    first: tuple[tuple[int, ...], int, int] | None
    text: str

    @property
    def exact(self) -> bool:
        """Whether every element has the model's bits; all NaNs count as one."""
        return self.wrong == 0

    @property
    def within_bound(self) -> bool:
        """Whether every element lies within the bound that any order of sums keeps."""
        return self.outside == 0

    def __str__(self) -> str:
        return self.text


def check(
    results: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    like: Reduction | Machine | str,
    operand: FloatFormat | str | None = None,
    initial: ArrayLike | None = None,
) -> Checked:
    """Compare a product of matrices with a model, bit for bit, and with the bound of its accumulator.

    The bound holds for every order of the sum with the model's formats: ``((1 + u)**n - 1) * sum(abs(a * b))`` for n
    roundings of relative error u, and a smallest number for each of them (Higham, Accuracy and Stability of Numerical
    Algorithms, section 4.2).

    Parameters
    ----------
    results : unsigned array of shape (..., M, N)
        Codes in the model's format of results.
    a, b : unsigned arrays of shape (..., M, K) and (..., K, N)
        Codes of the factors.
    like : Reduction, Accumulator or str
        The model; text is a name of `golden.accumulators` or a line that `Reduction.parse` reads.
    operand : FloatFormat or str, optional
        Format of the factors, unless the reduction names it.
    initial : unsigned array, optional
        Codes that the sums begin with, as in `golden.matmul`.

    Returns
    -------
    Checked

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or the results have another shape.

    Examples
    --------
    >>> import numpy as np, golden
    >>> ones = golden.encode(np.ones((2, 3)), "bfloat16")
    >>> zeros = np.zeros((2, 2), np.uint32)
    >>> checked = golden.check(zeros, ones, ones.T, like="operand=bfloat16 inner=bfloat16 chunk=32 outer=float32")
    >>> checked.exact, checked.within_bound, checked.wrong
    (False, False, 4)
    """
    model, factors = _model(like, operand)
    out = _out(model)
    given = as_codes(results, out, "results")
    if initial is not None:
        initial = as_codes(initial, model.outer, "initial")
    wanted = np.asarray(matmul(a, b, operand=factors, reduction=model, initial=initial))
    if given.shape != wanted.shape:
        raise ValueError(f"results: got shape {given.shape}, must be {wanted.shape}, the shape of the product")
    wrong = (given != wanted) & ~(out.is_nan(given) & out.is_nan(wanted))
    outside = wrong & ~_within(given, model, (a, b, initial), factors)
    places = [tuple(int(at) for at in place) for place in np.argwhere(wrong)[:_SHOWN]]
    first = (places[0], int(given[places[0]]), int(wanted[places[0]])) if places else None
    text = _text(given, wanted, out, places, (int(wrong.sum()), int(outside.sum())))
    return Checked(model, given.size, int(wrong.sum()), int(outside.sum()), first, text)


def _model(like: Any, operand: Any) -> tuple[Reduction | Machine, FloatFormat]:
    if isinstance(like, str):
        if "=" not in like and like not in accumulators:
            meant = did_you_mean(like, accumulators)
            raise ValueError(
                f"like: got {like!r}, must be a name of golden.accumulators or the line of a Reduction{meant}"
            )
        try:
            like = Reduction.parse(like) if "=" in like else accumulators[like]
        except ValueError as error:
            raise ValueError(f"like: {str(error).removeprefix('text: ')}") from None
    if not isinstance(like, Reduction | Machine):
        raise TypeError(f"like: got {like!r}, must be a Reduction, an Accumulator, or text that names one")
    own = like.operand if isinstance(like, Reduction) else None
    if operand is None and own is None:
        raise ValueError("operand: got None, must be given: the model does not name the format of the factors")
    return like, as_format(operand, "operand") if operand is not None else own  # type: ignore[return-value]


def _out(model: Reduction | Machine) -> FloatFormat:
    return (model.out or model.outer) if isinstance(model, Reduction) else model.outer


def _unit(fmt: FloatFormat, *, is_nearest: bool) -> float:
    return 2.0 ** -(fmt.fraction_bits + is_nearest)


def _roundings(model: Reduction | Machine, length: int) -> list[tuple[float, int, float]]:
    """Return relative error, count and smallest number of each kind of rounding in a sum of `length` products."""
    if isinstance(model, Reduction) and model.accumulator is None:
        is_nearest = model.rounding in (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY)
        chunks = 1 if model.chunk is None else -(-length // model.chunk)
        within = length if model.chunk is None else min(length, model.chunk)
        kinds = [(model.inner, within, is_nearest), (model.outer, chunks, is_nearest), (_out(model), 1, False)]
        return [
            (_unit(fmt, is_nearest=nearest), count, 2.0 ** (fmt.emin - fmt.fraction_bits))
            for fmt, count, nearest in kinds
        ]
    rule = model.accumulator if isinstance(model, Reduction) else model
    if isinstance(rule, GroupedSums):
        # Of a group, the exact sum is rounded once or not at all, and the total once, in any mode.
        least = 2.0 ** (rule.total.emin - rule.total.fraction_bits)
        of_groups = (_unit(rule.total, is_nearest=False), 2 * -(-length // rule.group), least)
        return [
            of_groups,
            (_unit(_out(model), is_nearest=False), 1, 2.0 ** (_out(model).emin - _out(model).fraction_bits)),
        ]
    if not isinstance(rule, Accumulator):
        raise TypeError(f"model: got the accumulator {rule!r}, must be an Accumulator or a GroupedSums")
    sums = [*rule.stages, rule.join]
    bits = min(min(each.fraction_bits or 23, each.result.fraction_bits) for each in sums)
    bits = min(bits, rule.total_fraction_bits or bits, rule.total_reach or bits)
    # A term is cut against the largest of its sum, of which a product may be four times its power of two.
    blocks = -(-length // rule.block)
    count = length * len(sums) + blocks * sum(each.terms for each in sums) + length
    smallest = 2.0**-126 if rule.flush != "none" else 2.0 ** (rule.outer.emin - rule.outer.fraction_bits)
    of_sums = (2.0 ** (2 - bits), count, smallest)
    return [of_sums, (_unit(_out(model), is_nearest=False), 1, 2.0 ** (_out(model).emin - _out(model).fraction_bits))]


def _within(given: NDArray[Any], model: Any, terms: Any, operand: FloatFormat) -> NDArray[Any]:
    a, b = (decode(np.asarray(each), operand).astype(np.float64) for each in terms[:2])
    start = 0.0 if terms[2] is None else decode(np.asarray(terms[2]), model.outer).astype(np.float64)
    out = _out(model)
    result = decode(given, out).astype(np.float64)
    length = a.shape[-1]
    with np.errstate(all="ignore"):
        exact = a @ b + start
        sizes = np.abs(a) @ np.abs(b) + np.abs(start)
        growth, smallest = 0.0, 0.0
        for unit, count, least in [*_roundings(model, length), (2.0**-53, 2 * length + 2, 0.0)]:
            growth += count * math.log1p(unit)
            smallest += count * least
        bound = np.expm1(growth) * sizes + smallest * np.exp(growth)
        largest = float(decode(np.array(out.max_finite, given.dtype), out))
        near = np.abs(result - exact) <= bound
        overflows = np.isinf(result) & (np.abs(exact) + bound > largest) & (np.sign(result) * exact + bound > 0)
    # Where the exact sum is infinite or a NaN, there is one right result, and it is wrong here.
    return np.isfinite(exact) & (near | overflows)


def _text(
    given: NDArray[Any], wanted: NDArray[Any], out: FloatFormat, places: list[Any], counts: tuple[int, int]
) -> str:
    wrong, outside = counts
    if not wrong:
        return f"all {given.size:,} elements have the model's bits"
    lines = [f"{wrong:,} of {given.size:,} elements differ from the model, {outside:,} beyond the bound of any order:"]
    digits = (out.width + 3) // 4
    for place in places:
        codes = int(given[place]), int(wanted[place])
        values = [float(decode(np.array(code, given.dtype), out)) for code in codes]
        lines.append(
            f"    {list(place)}: {codes[0]:#0{digits + 2}x} ({values[0]:g}), the model gives "
            f"{codes[1]:#0{digits + 2}x} ({values[1]:g})"
        )
    if wrong > len(places):
        lines.append(f"    and {wrong - len(places):,} more")
    return "\n".join(lines)
