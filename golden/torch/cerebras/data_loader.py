"""Data loaders that can begin in the middle of an epoch, and synthetic data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import torch
from torch.utils import _pytree as pytree
from torch.utils.data import IterableDataset

from golden.torch.cerebras.backends import current_executor
from golden.torch.common.arguments import check_count

__all__ = ["DataLoader", "RestartableDataLoader", "SyntheticDataset"]


@runtime_checkable
class RestartableDataLoader(Protocol):
    """The methods by which `DataLoader` saves and restores the state of an iterable."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of one worker."""

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take over the state of one worker."""

    def aggregate_state_dict(self, worker_states: list[dict[str, Any]]) -> dict[str, Any]:
        """Combine the states of all workers."""

    def deaggregate_state_dict(self, aggregated_state_dict: dict[str, Any], strict: bool = True) -> dict[str, Any]:
        """Return one worker's part of the combined state."""


class DataLoader:
    """Batches from a function that makes the loader.

    Parameters
    ----------
    input_fn : callable
        Called once, when the batches or their number are first asked for; returns a `torch.utils.data.DataLoader` or
        another iterable.
    *args, **kwargs
        For `input_fn`; copied now.

    Raises
    ------
    TypeError
        If `input_fn` cannot be called.
    """

    def __init__(self, input_fn: Callable[..., Iterable[Any]], *args: Any, **kwargs: Any) -> None:
        if not callable(input_fn):
            raise TypeError(f"input_fn: got {input_fn!r}, must be a function that returns a data loader")
        self.input_fn = input_fn
        self.input_fn_params = copy.deepcopy((args, kwargs))
        #: Rows of the latest batch, None before the first one.
        self.batch_size: int | None = None

    @cached_property
    def dataloader(self) -> Any:
        """The loader that `input_fn` made."""
        args, kwargs = copy.deepcopy(self.input_fn_params)
        return self.input_fn(*args, **kwargs)

    @property
    def is_restartable(self) -> bool:
        """Whether the loader has the methods of `RestartableDataLoader`."""
        return isinstance(self.dataloader, RestartableDataLoader)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the loader, in a checkpoint closure.

        Raises
        ------
        RuntimeError
            If the loader has none, or the step is no checkpoint step.
        """
        self._check_restartable()
        executor = current_executor()
        if not (executor.is_checkpoint_step or executor.is_pre_initial_step or executor.on_final_iteration):
            raise RuntimeError("state_dict: must be called on a checkpoint step; decorate it with checkpoint_closure")
        state = self.dataloader.aggregate_state_dict([self.dataloader.state_dict()])
        return copy.deepcopy(state)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take over the state of the loader, before the run.

        Raises
        ------
        RuntimeError
            If the loader has none.
        """
        self._check_restartable()
        self.dataloader.load_state_dict(
            self.dataloader.deaggregate_state_dict(state_dict, strict=strict), strict=strict
        )

    def _check_restartable(self) -> None:
        if not self.is_restartable:
            raise RuntimeError(
                f"state_dict: {type(self.dataloader).__name__} has no state to save; give it the methods of "
                "RestartableDataLoader"
            )

    def __len__(self) -> int:
        return len(self.dataloader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.dataloader:
            tensors = [leaf for leaf in pytree.tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
            if not tensors:
                raise TypeError(f"dataloader: got the batch {batch!r}, must have tensors in it")
            self.batch_size = len(tensors[0]) if tensors[0].ndim else 1
            yield batch


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
