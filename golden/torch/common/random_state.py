"""The states of all random number generators that a training run draws from, so that a resumed run draws the same."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

__all__ = ["RandomState", "capture", "restore", "seed_everything"]

RandomState = dict[str, Any]


def seed_everything(seed: int) -> None:
    """Seed the global generators of PyTorch, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002 - data sets of others may use the global generator


def _generators(loader: Iterable[Any]) -> list[torch.Generator]:
    """Return the generators of a data loader and its samplers, each once."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    owners = (loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    return list({id(each): each for each in found if isinstance(each, torch.Generator)}.values())


def capture(loader: Iterable[Any]) -> RandomState:
    """Return the states of the global generators (PyTorch's, Python's, NumPy's) and of those of a data loader.

    The values are tensors and plain Python objects, which ``torch.load(weights_only=True)`` reads.
    """
    algorithm, key, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 - the global generator, which data sets may use
    of_card = {"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_initialized() else {}
    return of_card | {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": (algorithm, np.asarray(key).tolist(), *rest),
        "loader": [each.get_state() for each in _generators(loader)],
    }


def restore(state: RandomState, loader: Iterable[Any]) -> None:
    """Set all generators to what `capture` returned.

    Raises
    ------
    ValueError
        If the data loader has another number of generators than then.
    """
    generators = _generators(loader)
    if len(generators) != len(state["loader"]):
        raise ValueError(
            f"train_loader: got one with {len(generators)} random generators, must have {len(state['loader'])} as the "
            "one of the checkpoint; build it in the same way"
        )
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    for generator, its_state in zip(generators, state["loader"], strict=True):
        generator.set_state(its_state)
