"""An overflow on one rank of torch.distributed skips the step on all of them."""

import torch
from torch import nn

from golden.torch.amp import GradScaler
from golden.torch.common.processes import average_gradients, highest_rank_where, rank, world_size

from .processes import run_on_two_ranks


def overflow_on_the_first_rank(here):
    tensor = nn.Parameter(torch.zeros(1))
    optimizer, scaler = torch.optim.SGD([tensor], lr=1.0), GradScaler("dynamic", init_scale=8.0)
    scaler.scale(tensor.sum()).backward()
    if here == 0:
        tensor.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    assert (tensor.item(), scaler.get_scale(), scaler.get_num_skipped_steps()) == (0.0, 4.0, 1)
    reason = "gradient of parameter 0 of parameter group 0 is inf" if here == 0 else "are not finite on rank 0"
    assert reason in scaler.get_skip_reason()
    optimizer.zero_grad()
    scaler.scale(tensor.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert (tensor.item(), scaler.get_num_skipped_steps(), scaler.get_skip_reason()) == (-1.0, 1, None)


def test_overflow_on_one_rank_skips_the_step_on_both():
    run_on_two_ranks(overflow_on_the_first_rank)


def averages(here):
    assert (rank(), world_size()) == (here, 2)
    assert [highest_rank_where(here == which) for which in range(3)] == [0, 1, None]
    both, one, none = (nn.Parameter(torch.zeros(2, 2)) for _ in range(3))
    both.grad = torch.full((2, 2), 1.0 + 2 * here)
    if here == 1:
        one.grad = torch.arange(4.0).view(2, 2)
    average_gradients([both, one, none])
    assert both.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert one.grad.tolist() == [[0.0, 0.5], [1.0, 1.5]]
    assert none.grad is None


def test_gradients_are_averaged_over_ranks_and_missing_ones_count_as_zero():
    run_on_two_ranks(averages)


def test_one_process_alone_needs_no_distributed():
    tensor = nn.Parameter(torch.zeros(1))
    tensor.grad = torch.ones(1)
    average_gradients([tensor])
    assert (rank(), world_size(), tensor.grad.item()) == (0, 1, 1.0)
    assert [highest_rank_where(True), highest_rank_where(False)] == [0, None]
