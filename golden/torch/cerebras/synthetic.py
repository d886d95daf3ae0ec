"""Made-up samples of a given shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.data import IterableDataset

from golden.torch.cerebras.steps import check_count

__all__ = ["SyntheticDataset"]


class SyntheticDataset(IterableDataset[Any]):
    """Samples after a pattern.

    Parameters
    ----------
    sample_spec : nested lists, tuples and dictionaries
        Of tensors, which every sample gets a copy of, and of callables, which get the index of the sample.
    num_samples : int, optional
        How many; None for ever.

    Raises
    ------
    TypeError, ValueError
        If the pattern is empty or has something else in it, or the number is wrong.
    """

    def __init__(self, sample_spec: Any, num_samples: int | None = None) -> None:
        self._leaves, self._structure = pytree.tree_flatten(sample_spec)
        if not self._leaves:
            raise ValueError(f"sample_spec: got {sample_spec!r}, must have a tensor or a callable in it")
        for leaf in self._leaves:
            if not isinstance(leaf, torch.Tensor) and not callable(leaf):
                raise TypeError(f"sample_spec: got {leaf!r} in it, must be tensors and callables")
        self._number = None if num_samples is None else check_count(num_samples, "num_samples")

    def __iter__(self) -> Iterator[Any]:
        index = 0
        while self._number is None or index < self._number:
            yield pytree.tree_unflatten([self._sample(leaf, index) for leaf in self._leaves], self._structure)
            index += 1

    @staticmethod
    def _sample(leaf: torch.Tensor | Callable[[int], torch.Tensor], index: int) -> torch.Tensor:
        return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf(index)

    def __len__(self) -> int:
        if self._number is None:
            raise TypeError("num_samples: got None, so that the data have no length")
        return self._number
