"""For tests: a product must be exactly a model's."""

from __future__ import annotations

from typing import Any

from golden.checking import check

__all__ = ["assert_like"]


def assert_like(results: Any, a: Any, b: Any, *, like: Any, bound: bool = False, **options: Any) -> None:
    """Fail unless a product has the bits of a model, or with `bound` keeps the bound of any order of sums.

    Parameters
    ----------
    results, a, b, like, **options
        As in `golden.check`.
    bound : bool
        Accept elements that differ but lie within the bound. If the bound accepts zeros in place of all sums that are
        not 0, it cannot judge the product, and elements that differ fail.

    Raises
    ------
    AssertionError
        If an element differs, with the first ones that do; with `bound`, as said there.
    TypeError, ValueError
        As `golden.check`.
    """
    __tracebackhide__ = True
    checked = check(results, a, b, like=like, **options)
    if not checked.exact and not (bound and checked.within_bound and checked.excludes_zeros):
        raise AssertionError(str(checked))
