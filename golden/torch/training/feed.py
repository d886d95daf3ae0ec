"""The batches of an epoch: from where a resumed run stopped, in groups for one step, as many on every process."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from golden.torch.common.processes import RandomState, capture, highest_rank_where, message, restore, world_size
from golden.torch.training.identity import hash_of
from golden.torch.training.persistence import Position

__all__ = ["groups", "mark_trained"]


def groups(
    loader: Iterable[Any],
    now: Position,
    resumed: RandomState | None,
    size: int,
    override: bool = False,
    most: float = math.inf,
) -> Iterator[list[Any]]:
    """Give the batches of an epoch that are not yet trained on, in groups of `size`; the last one may be smaller.

    The beginning of an epoch is noted in `now`. `resumed` are the states of the random generators at the batch where a
    resumed run goes on; with `override`, the batches before may be others than those that the run has trained on. The
    whole epoch has `most` groups at most, those that the run has trained on included.
    """
    batches = _at_the_right_batch(loader, now, resumed, override)
    is_first = now.batch == 0
    for number in itertools.count():
        if -(-now.batch // size) >= most:
            return
        group = list(itertools.islice(batches, size))
        _check_equal_on_all_ranks(now, len(group))
        if not group:
            if number == 0 and is_first:
                raise ValueError(_nothing(loader, now))
            return
        yield group


def mark_trained(now: Position, group: list[Any]) -> None:
    """Note that a step was made with these batches."""
    if now.batch == 0:
        now.digest = hash_of(group[0])
    now.step += 1
    now.batch += len(group)


def _at_the_right_batch(
    loader: Iterable[Any], now: Position, resumed: RandomState | None, override: bool
) -> Iterator[Any]:
    """Return an iterator that stands before the next batch, with the random generators as they were then."""
    if isinstance(loader, Iterator) and now.iterator is loader and now.epoch_start is not None:
        return loader  # in the same process, and of data that come once only: it stands there
    if now.epoch_start is not None:
        restore(now.epoch_start, loader)
    elif resumed is not None:
        restore(resumed, loader)
        resumed = None
    now.epoch_start = now.epoch_start or capture(loader)
    for owner in ("sampler", "batch_sampler"):
        set_epoch = getattr(getattr(loader, owner, None), "set_epoch", None)
        if set_epoch is not None:
            set_epoch(now.epoch)
    if getattr(loader, "persistent_workers", False):
        # Workers kept from the epoch before have generators that no checkpoint holds, and draw one number less.
        loader._iterator = None  # type: ignore[attr-defined]
    batches = iter(loader)
    now.iterator = batches if batches is loader else None
    first, seen = None, 0
    for batch in itertools.islice(batches, now.batch):
        # Only of the first one: the numbers that the training drew do not come between the others now, so that a data
        # set that draws from the same generators gives others.
        first, seen = hash_of(batch) if first is None else first, seen + 1
    if not override:
        where = f"the {now.batch} batches of epoch {now.epoch + 1} that the run has trained on"
        problem = ""
        if seen < now.batch:
            problem = f"it gives only {seen} of {where}"
        elif now.batch and now.digest is not None and first != now.digest:
            problem = f"its first batch is not that of {where}"
        # Every process ends, not only the one that sees it: the others would wait for it.
        sees_it = highest_rank_where(bool(problem))
        if sees_it is not None:
            problem = problem or f"on rank {sees_it} it is not that of before"
            advice = "give it the data of then, in the same order, or pass override=True to go on with these"
            raise ValueError(f"train_dataloader: {problem}; {advice}")
    if resumed is not None:
        restore(resumed, loader)
    return batches


def _check_equal_on_all_ranks(now: Position, count: int) -> None:
    """Raise an error on all processes unless all have as many batches for this step."""
    if world_size() == 1:
        return
    counts = message([0] * world_size(), torch.int64)
    dist.all_gather(list(counts.split(1)), message([count], torch.int64))
    numbers: list[int] = counts.tolist()
    if len(set(numbers)) > 1:
        least = numbers.index(min(numbers))
        raise ValueError(
            f"train_dataloader: rank {least} has only {now.batch + min(numbers)} batches in epoch {now.epoch + 1} and "
            f"rank {numbers.index(max(numbers))} has more, must be as many on all ranks; use a DistributedSampler, or "
            "drop the surplus batches"
        )


def _nothing(loader: Iterable[Any], now: Position) -> str:
    if now.iterator is loader and now.step:
        return (
            f"train_dataloader: it is used up after step {now.step}: a {type(loader).__name__} gives its batches once "
            "only; pass what can be iterated once for each epoch (a DataLoader, a list), or ask for no more steps"
        )
    return "train_dataloader: it gives no batch, must give at least one in every epoch"
