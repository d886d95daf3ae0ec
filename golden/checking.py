"""Is this product exactly a model's? If not, does it keep the bound of every order of sums? In place of a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_codes, as_format
from golden.arrays.conversion import decode
from golden.arrays.products import matmul
from golden.formats import FloatFormat
from golden.machine import Machine
from golden.nearest import did_you_mean
from golden.presets import accumulators
from golden.reduction import Reduction
from golden.sum_bounds import sum_bounds

__all__ = ["Checked", "check"]

_SHOWN = 8
_BLIND = "; no sum could fail the bound by being 0, so it cannot judge this product"


@dataclass(frozen=True)
class Checked:
    """How a product compares with a model.

    Parameters
    ----------
    model : Reduction or Accumulator
        What it was compared with.
    count, wrong, outside : int
        Elements; elements that differ from the model's in a bit; elements beyond the bound.
    weak, strong : int
        Elements whose exact sum is not 0: of the weak ones, the bound holds 0, too; of the strong ones, it does not.
    first : tuple or None
        Place, code, and the model's code of the first element that differs.
    text : str
        The same in words, with the first elements that differ.
    """

    model: Reduction | Machine
    count: int
    wrong: int
    outside: int
    weak: int
    strong: int
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

    @property
    def excludes_zeros(self) -> bool:
        """Whether zeros in place of the results would be beyond the bound, unless the exact sums are 0."""
        return self.strong > 0 or self.weak == 0

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

    The bound holds for every order of the sum with the model's formats and blocks. For n roundings of relative error u
    it is ``((1 + u)**n - 1) * q``, and a smallest number for each of them; q is the larger of the sums of the positive
    and of the negative products (after Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). Where a
    machine cuts m terms at 2**-t of the largest, u is larger by about ``m * 2**-t``. A sum of terms of one sign is also
    at least a fraction of its largest term. Where an order can pass the range of a format, infinities and NaNs are
    within the bound, too.

    Where positive and negative products nearly cancel, the bound may hold 0. `Checked.weak` counts such elements.

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
    a, b = as_codes(a, factors, "a"), as_codes(b, factors, "b")
    wanted = np.asarray(matmul(a, b, operand=factors, reduction=model, initial=initial))
    if given.shape != wanted.shape:
        raise ValueError(f"results: got shape {given.shape}, must be {wanted.shape}, the shape of the product")
    wrong = (given != wanted) & ~(out.is_nan(given) & out.is_nan(wanted))
    start = np.zeros(()) if initial is None else _values(initial, model.outer)
    bounds = sum_bounds(_values(a, factors), _values(b, factors), start, model=model, operand=factors)
    outside = wrong & ~bounds.hold(_values(given, out), out)
    holds_zero = bounds.hold(0.0, out)
    weak, strong = (int((bounds.differ_from_zero & each).sum()) for each in (holds_zero, ~holds_zero))
    places = [tuple(int(at) for at in place) for place in np.argwhere(wrong)[:_SHOWN]]
    first = (places[0], int(given[places[0]]), int(wanted[places[0]])) if places else None
    text = _text(given, wanted, out, places, (int(wrong.sum()), int(outside.sum()), weak, strong))
    return Checked(model, given.size, int(wrong.sum()), int(outside.sum()), weak, strong, first, text)


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
    its = like.accumulator if isinstance(like, Reduction) and like.operand is None else like
    own = getattr(its, "operand", None)  # of an accumulator, only if it is made for one format of factors
    if operand is None and own is None:
        raise ValueError("operand: got None, must be given: the model does not name the format of the factors")
    return like, as_format(operand, "operand") if operand is not None else own  # type: ignore[return-value]


def _out(model: Reduction | Machine) -> FloatFormat:
    return (model.out or model.outer) if isinstance(model, Reduction) else model.outer


def _values(codes: Any, fmt: FloatFormat) -> NDArray[Any]:
    return decode(np.asarray(codes), fmt).astype(np.float64)


def _text(
    given: NDArray[Any], wanted: NDArray[Any], out: FloatFormat, places: list[Any], counts: tuple[int, ...]
) -> str:
    wrong, outside, weak, strong = counts
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
    if weak:
        blind = "" if strong else _BLIND
        lines.append(f"of {weak:,} elements the bound holds 0, too, though their exact sum is not 0{blind}")
    return "\n".join(lines)
