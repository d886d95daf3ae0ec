"""A small training run whose every operation is exact: the same weights on cards and CPUs, on two ranks and on one."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

import golden.torch as cstorch
from golden.torch.common.processes import average_gradients
from tests.cuda.device.judge import differing

__all__ = ["train_on_two_ranks"]

_STEPS = 4


def _batch(step: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return inputs and the gradient of the outputs; the first of rank 0 overflows."""
    generator = torch.Generator().manual_seed(10 * step + rank)
    x, gradient = torch.randn(5, 6, generator=generator), torch.randn(5, 3, generator=generator)
    if (step, rank) == (0, 0):
        x[2, 3] = 1e30
    return x, gradient


class _Run:
    """A model that takes steps of a power of two, so that no update is rounded in another way on a card."""

    def __init__(self, device: torch.device) -> None:
        torch.manual_seed(0)
        self.device = device
        self.model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=2.0**-6)
        self.scaler = cstorch.amp.GradScaler("dynamic", init_scale=2.0**10)

    def backward(self, step: int, rank: int) -> None:
        x, gradient = (each.to(self.device) for each in _batch(step, rank))
        self.optimizer.zero_grad()
        with cstorch.precision("cbfloat16"):
            outputs = self.model(x)
        self.scaler.scale(outputs).backward(gradient)

    def update(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()


def _alone() -> _Run:
    """Do the work of both ranks in this process, on the CPU."""
    run = _Run(torch.device("cpu"))
    for step in range(_STEPS):
        sums = [torch.zeros_like(each) for each in run.parameters]
        for rank in range(2):
            run.backward(step, rank)
            for total, each in zip(sums, run.parameters, strict=True):
                assert each.grad is not None
                total += each.grad
        for total, each in zip(sums, run.parameters, strict=True):
            each.grad = total / 2
        run.update()
    return run


def train_on_two_ranks(rank: int, kind: str) -> None:
    """Train on this rank; compare with one process on the CPU, and with the other rank."""
    cards = torch.cuda.device_count() if kind == "cuda" else 0
    run = _Run(torch.device("cuda", rank % cards) if cards else torch.device("cpu"))
    for step in range(_STEPS):
        run.backward(step, rank)
        average_gradients(run.parameters)
        run.update()
    alone = _alone()
    pairs = zip(run.parameters, alone.parameters, strict=True)
    assert [differing(*pair) for pair in pairs] == [None] * len(run.parameters)
    assert run.scaler.state_dict() == alone.scaler.state_dict()
    assert run.scaler.get_num_skipped_steps() == 1
    mine = torch.cat([each.detach().view(torch.int32).flatten() for each in run.parameters])
    theirs = mine.clone()
    dist.broadcast(theirs, 0)
    assert torch.equal(mine, theirs)
