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
        Accept elements that differ but lie within the bound.

    Raises
    ------
    AssertionError
        If an element differs, with the first ones that do.
    TypeError, ValueError
        As `golden.check`.
    """
    __tracebackhide__ = True
    checked = check(results, a, b, like=like, **options)
    if not (checked.within_bound if bound else checked.exact):
        raise AssertionError(str(checked))
