"""One reduction explained: every product and promotion, what its rounding took away, and which addends were lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.decimals import decimal_text, table, value_text
from golden.exact_reduction import ExactReduction
from golden.exact_rounding import decode, ulp
from golden.exact_steps import Kind, Place, Step, reduced
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.reduction import DEFAULT_CHUNK, Reduction, reduction_of
from golden.rounding import Rounding

if TYPE_CHECKING:
    from golden.alternatives import Alternatives

__all__ = ["Explanation", "check_rows", "explain", "ulp"]

_DIGITS = 9
_HEADS = ("step", "a", "b", "a * b", "accumulator", "exact sum", "rounded", "lost, ulp", "")


class Explanation(ExactReduction):
    """One reduction step by step, as `explain` returns it. ``print`` shows it.

    Parameters
    ----------
    reduction : Reduction
        With the format of the factors, which is ``operand``, too.
    initial : int
        Code in the outer format from which the total started.
    steps : tuple of Step
        Every product and promotion, in the order of the hardware: the codes in ``a``, ``b``, ``before`` and ``after``,
        the ``flags``, the exact ``addend``, ``exact`` sum and what was ``lost`` as Fractions, and ``is_swamped``.
    """

    def table(self, rows: int | None = 24, *, codes: bool = False) -> str:
        """Return a table with a line for each step.

        Parameters
        ----------
        rows : int or None
            Show so many steps at most, those in the middle left out; None shows all.
        codes : bool
            Show factors, accumulator and rounded sum as codes in hex, to compare with a waveform.

        Raises
        ------
        TypeError, ValueError
            If `rows` is no int, or below 2.
        """
        check_rows(rows)
        if not isinstance(codes, bool):
            raise TypeError(f"codes: got {codes!r}, must be True or False")
        shown, left_out = list(self.steps), 0
        if rows is not None and len(shown) > rows:
            left_out = len(shown) - rows
            del shown[rows // 2 : rows // 2 + left_out]
        lines = table([_HEADS, *(_row(step, codes) for step in shown)]).splitlines()
        if left_out:
            lines.insert(1 + len(shown) // 2, f"... {left_out} steps ...")
        return "\n".join(lines)

    def text(self, rows: int | None = 24) -> str:
        """Return a title, the table of the steps (see `table`), and a summary of the result."""
        return "\n".join([self._title(), "", self.table(rows), "", *self._summary()])

    def __str__(self) -> str:
        return self.text()

    def plot(self, file: str | Path) -> None:
        """Draw how the accumulator grows over its addends, which of them it loses, and the error so far.

        Parameters
        ----------
        file : str or Path
            Its suffix says which kind of picture: .svg, .png or .pdf.

        Raises
        ------
        ImportError
            Without matplotlib, which the extra ``figures`` brings.
        ValueError
            If there are no steps, or none with finite values, or the suffix is another one.
        OSError
            If the picture cannot be written; what was there stays.
        """
        from golden.explanation_plot import check_picture, draw  # few ask for it: golden is imported faster without

        draw(self._title(), self.steps, check_picture(file))

    def alternatives(self) -> Alternatives:
        """Return the same sum done in other ways: levels, chunks, orders, compensated. ``print`` shows them."""
        from golden.alternatives import alternatives  # as above

        return alternatives(self)

    def _title(self) -> str:
        count = sum(step.kind is Kind.PRODUCT for step in self.steps)
        reduction = self.reduction
        if reduction.is_chain:
            how = f"one chain in {reduction.outer}"
        else:
            length = f"chunks of {reduction.chunk}" if reduction.chunk else "one chunk"
            how = f"{length} in {reduction.inner}, the total in {reduction.outer}"
        return f"{count} products in {self.operand}: {how}"

    def _summary(self) -> list[str]:
        outer, error = self.reduction.outer, self.error
        digits = -(-outer.width // 4)
        lines = [f"result   0x{self.code:0{digits}x} = {value_text(decode(self.code, outer))} in {outer}"]
        if self.exact is not None:
            lines.append(f"exactly  {decimal_text(self.exact)}")
        if error is not None:
            assert self.exact is not None
            size = decimal_text(error / ulp(self.exact, outer), 4).lstrip("~")
            share = f", {float(abs(error / self.exact)):.1e} relative" if self.exact and error else ""
            lines.append(f"error    {decimal_text(error, _DIGITS)} ({size} ulp{share})")
        products, promotions = self.counts.products, self.counts.promotions
        lost = f"{products.swamped} of {products.steps} products"
        if promotions.steps:
            lost += f", {promotions.swamped} of {promotions.steps} promotions"
        return [*lines, f"swamped  {lost}"]


def check_rows(rows: int | None) -> None:
    """Raise the errors of `Explanation.table`."""
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool)):
        raise TypeError(f"rows: got {rows!r}, must be an int of at least 2, or None for all steps")
    if rows is not None and rows < 2:
        raise ValueError(f"rows: got {rows}, must be at least 2, or None for all steps")


def _row(step: Step, codes: bool) -> tuple[str, ...]:
    def shown(code: int, fmt: FloatFormat) -> str:
        return f"0x{code:0{-(-fmt.width // 4)}x}" if codes else value_text(decode(code, fmt), _DIGITS)

    factors = (shown(code, step.operand) for code in (step.a, step.b))
    before, after = (shown(code, step.accumulator) for code in (step.before, step.after))
    addend, exact = ("-" if value is None else decimal_text(value, _DIGITS) for value in (step.addend, step.exact))
    lost = "-"
    if step.lost is not None and step.exact is not None:
        lost = decimal_text(step.lost / ulp(step.exact, step.accumulator), 4).lstrip("~") if step.lost else "0"
    notes = ["swamped"] if step.is_swamped else []
    notes += [str(flag.name).lower() for flag in Flag if flag in step.flags and flag is not Flag.INEXACT]
    return (f"{step.kind.value} {step.index}", *factors, addend, before, exact, after, lost, ", ".join(notes))


def explain(
    a: Sequence[int] | Any,
    b: Sequence[int] | Any,
    *,
    operand: FloatFormat | str | None = None,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
    initial: int = 0,
    rounding: Rounding | str | None = None,
    seed: int | None = None,
    call: int | None = None,
    index: int = 0,
    random_bits: int | None = None,
    subnormals: str | None = None,
) -> Explanation:
    """Explain one reduction ``sum(a[k] * b[k])`` step by step, on exact numbers.

    Parameters
    ----------
    a, b : sequence of int, or array of codes of shape (K,)
        Codes in `operand`.
    operand : FloatFormat or str
    level, chunk, reduction, initial, rounding, seed, call, random_bits, subnormals
        As of `dot`. `initial` is one code in the outer format. The conversion into `out` of a reduction is left out.
    index : int
        Which result of its call it is, row by row; the random bits of mode ``stochastic`` depend on it.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError, ValueError
        As `golden.reference.dot`.

    Examples
    --------
    The accumulator has grown to 256. An ulp of bfloat16 is 2 there, so 1 is lost, and the next 1 again:

    >>> import golden
    >>> a, b = golden.encode([256.0, 1.0, 1.0], "bfloat16"), golden.encode([1.0, 1.0, 1.0], "bfloat16")
    >>> print(golden.explain(a, b, operand="bfloat16", level=2))
    3 products in bfloat16: chunks of 32 in bfloat16, the total in bfloat16
    <BLANKLINE>
    step         a    b  a * b  accumulator  exact sum  rounded  lost, ulp
    product 0    256  1  256    0            256        256      0
    product 1    1    1  1      256          257        256      0.5        swamped
    product 2    1    1  1      256          257        256      0.5        swamped
    promotion 0  256  1  256    0            256        256      0
    <BLANKLINE>
    result   0x4380 = 256 in bfloat16
    exactly  258
    error    -2 (-1 ulp, 7.8e-03 relative)
    swamped  2 of 3 products, 0 of 1 promotions
    """
    if not isinstance(index, int) or isinstance(index, bool):
        raise TypeError(f"index: got {index!r}, must be an int: which result of its call it is")
    if not 0 <= index < 2**64:
        raise ValueError(f"index: got {index}, must be 0 to 2**64 - 1")
    whole = reduction_of(
        operand=operand, level=level, chunk=chunk, reduction=reduction, rounding=rounding, seed=seed, call=call,
        random_bits=random_bits, subnormals=subnormals,
    )  # fmt: skip
    if whole.accumulator is not None:
        raise TypeError(
            f"reduction: got {reduction!r}, must be a Reduction or None: other machines do not go step by step"
        )
    a, b = _as_list(a, "a"), _as_list(b, "b")
    return Explanation(whole, initial, tuple(reduced(a, b, Place(whole, index), initial)))


def _as_list(given: Any, argument: str) -> Any:
    """Return an array's ints; anything else is returned as it is and checked later."""
    if not hasattr(given, "tolist"):
        return given
    if given.ndim != 1:
        raise ValueError(f"{argument}: got an array of shape {given.shape}, must be of shape (K,): one reduction")
    return given.tolist()
