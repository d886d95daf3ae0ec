"""Data-parallel training on two ranks: same losses, same weights, same skipped steps, and resumed alike."""

import json
import os
import signal

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from golden.torch import MixedPrecision, RunStopped, Trainer

from .processes import run_on_two_ranks

PRECISION = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", initial_loss_scale=2.0**20)


def data(ranks):
    fixed = torch.Generator().manual_seed(3)  # the global one is each rank's own, for its dropout
    dataset = TensorDataset(torch.randn(24, 4, generator=fixed), torch.randint(3, (24,), generator=fixed))
    dataset.tensors[0][5] = 1e30  # overflows on the one rank that draws it
    sampler = DistributedSampler(dataset, ranks, dist.get_rank() if dist.is_initialized() else 0, seed=1)
    return DataLoader(dataset, batch_size=4, sampler=sampler)


def trainer(folder, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    return Trainer(net, optimizer, nn.functional.cross_entropy, PRECISION, model_dir=folder, progress=False)


def train(rank, folder, steps, resume, result):
    done = trainer(folder, seed=rank)
    losses = done.fit(data(2), steps=steps, resume=resume)
    mine = {
        "losses": losses,
        "weights": [each.detach().view(torch.int32).tolist() for each in done.model.parameters()],
        "scaler": done.scaler.state_dict(),
    }
    (folder / f"{result}{rank}.json").write_text(json.dumps(mine))


def results(folder, name):
    return [json.loads((folder / f"{name}{rank}.json").read_text()) for rank in range(2)]


def test_two_ranks_have_the_same_losses_and_weights_and_resume_bit_for_bit(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    run_on_two_ranks(train, whole, 9, False, "end")
    one, two = results(whole, "end")
    assert one == two
    assert len(one["losses"]) == 9
    assert 0 < one["scaler"]["num_skipped_steps"] < 9
    run_on_two_ranks(train, parts, 5, False, "begin")
    run_on_two_ranks(train, parts, 9, True, "end")
    begin, end = results(parts, "begin")[0], results(parts, "end")
    assert begin["losses"] + end[0]["losses"] == one["losses"]
    assert [each | {"losses": one["losses"]} for each in end] == [one, one]


def halves_of_a_batch(rank, path):
    torch.manual_seed(0)
    net = nn.Linear(4, 3)
    torch.manual_seed(5)
    inputs, targets = torch.randn(8, 4), torch.randint(3, (8,))
    batch = (inputs[rank * 4 : rank * 4 + 4], targets[rank * 4 : rank * 4 + 4])
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    plain = MixedPrecision(enabled=False)
    losses = Trainer(net, optimizer, nn.functional.cross_entropy, plain, progress=False).fit([batch], steps=1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        alone = nn.Linear(4, 3)
    loss = nn.functional.cross_entropy(alone(inputs), targets)
    loss.backward()
    torch.testing.assert_close(net.weight, alone.weight - alone.weight.grad)
    torch.testing.assert_close(torch.tensor(losses[0]), loss.detach())


def test_mean_over_two_ranks_is_the_gradient_of_the_whole_batch(tmp_path):
    run_on_two_ranks(halves_of_a_batch, tmp_path)


def ends(rank, folder):
    """Train on unequal numbers of batches, validate on unequal parts, then be stopped by a signal to rank 1."""
    torch.manual_seed(1)
    net = nn.Linear(4, 3)

    def built():
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        return Trainer(net, optimizer, nn.functional.cross_entropy, PRECISION, model_dir=folder, progress=False)

    run = built()
    batches = [(torch.full((2, 4), float(number)), torch.tensor([0, 1])) for number in range(5)]
    with pytest.raises(ValueError, match="train_dataloader: rank 1 has only 3 batches in epoch 1 and rank 0 has more"):
        run.fit(Shard(batches[rank : 5 - rank], rank), epochs=1)
    assert run.step == 3
    with PRECISION.autocast():
        each = [nn.functional.cross_entropy(net(x), y).item() for x, y in batches]
    result = run.validate(batches[:2] if rank == 0 else batches[2:])
    torch.testing.assert_close(result["val_loss"], sum(each) / 5, rtol=1e-6, atol=0)
    if rank == 1:
        net.register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGTERM) if run.step == 4 else None)
    with pytest.raises(RunStopped) as stopped:
        run.fit(Shard(batches[rank : 3 + rank], rank), steps=9)
    assert stopped.value.code == 143
    (folder / f"{rank}").write_text(f"{run.step}")
    # Each rank has its own data; then rank 1 alone begins with another batch.
    message = "on rank 1 it is not that of before" if rank == 0 else "its first batch is not that of the 3 batches"
    with pytest.raises(ValueError, match=f"^train_dataloader: {message}"):
        built().fit(Shard(batches[:3], rank), steps=run.step + 1, resume=True)
    resumed = built()
    resumed.fit(Shard(batches[rank : 3 + rank], rank), steps=run.step + 1, resume=True)
    assert resumed.step == run.step + 1


class Shard:
    """The batches of one rank; their data set, which is not read, differs from rank to rank."""

    def __init__(self, batches, rank):
        self.batches, self.dataset = batches, TensorDataset(torch.full((3,), float(rank)))

    def __iter__(self):
        return iter(self.batches)


def test_unequal_numbers_of_batches_are_an_error_on_all_ranks_and_a_signal_to_one_stops_all(tmp_path):
    run_on_two_ranks(ends, tmp_path)
    steps = [int((tmp_path / f"{rank}").read_text()) for rank in range(2)]
    assert steps[0] == steps[1] < 9
    names = sorted(each.name for each in (tmp_path / "checkpoints").iterdir())
    assert names == [f"step_{steps[0]:08}", f"step_{steps[0] + 1:08}"]
