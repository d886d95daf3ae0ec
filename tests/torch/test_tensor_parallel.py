"""Training with DTensor on two ranks has the bits of one process: weights, batches and channels split, sums never."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import golden.torch as cstorch
from golden import Randomness
from golden.torch.products.functions.attention import weights_of

from .oracle import normal
from .processes import run_on_two_ranks


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(12, 12) for _ in range(4))

    def forward(self, x):
        split = (each(x).view(*x.shape[:2], -1, 3).transpose(1, 2) for each in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(*split, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(*x.shape[:2], -1))


class Block(nn.Module):
    def __init__(self, norm=True):
        super().__init__()
        self.norm = nn.LayerNorm(12, elementwise_affine=norm)
        self.attention, self.up, self.down = Attention(), nn.Linear(12, 25), nn.Linear(25, 12, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.down(F.gelu(self.up(x)))


def images():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 2, stride=2), nn.ConvTranspose2d(4, 3, 2, stride=2),
        nn.Conv2d(3, 6, 3, groups=3),
    )  # fmt: skip


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def trained(model, x, place=lambda x: x, optimizer=torch.optim.AdamW, **precision):
    """Train for two steps, whose gradients are clipped; return the weights, whole."""
    optimizer = optimizer(model.parameters(), lr=0.05)
    scaler = cstorch.amp.GradScaler("dynamic", init_scale=64.0, max_gradient_norm=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        with cstorch.precision(**{"half": "cbfloat16", "level": 1, **precision}):
            loss = (whole(model(place(x))).float() - 1).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_num_skipped_steps() == 0
    return {name: whole(each.detach()) for name, each in model.named_parameters()}


def assert_bits(got, wanted, what):
    assert got.dtype == wanted.dtype, what
    assert torch.equal(got.contiguous().view(torch.uint8), wanted.contiguous().view(torch.uint8)), what


def assert_trains_alike(make, split, x, **how):
    torch.manual_seed(3)
    model = make()
    one = trained(copy.deepcopy(model), x, **{**how, "place": lambda x: x})
    several = trained(split(model), x, **how)
    for name, wanted in one.items():
        assert_bits(several[name], wanted, (name, how))


def columns_then_rows(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )  # fmt: skip

    mesh = init_device_mesh("cpu", (2,))
    columns, rows = ColwiseParallel(use_local_output=False), RowwiseParallel()

    def split(model):
        model = parallelize_module(model, mesh, {"0": columns, "2": rows})
        assert [each.placements for each in model.parameters()] == [
            (Shard(0),), (Shard(0),), (Shard(1),), (Replicate(),),
        ]  # fmt: skip
        return model

    def layers():
        return nn.Sequential(nn.Linear(12, 25), nn.GELU(), nn.Linear(25, 10))  # 25: the ranks have 13 and 12

    x = normal(5, 6, 12, seed=4)
    for how in ({"level": 0}, {}, {"level": 2}, {"half": "float8_e4m3fn"}, {"rounding": "stochastic", "seed": 5}):
        assert_trains_alike(layers, split, x, **how)
    first_rows = {"0": RowwiseParallel(input_layouts=Replicate()), "2": ColwiseParallel(output_layouts=Replicate())}
    assert_trains_alike(layers, lambda model: parallelize_module(model, mesh, first_rows), x)

    heads = {f"attention.{name}": ColwiseParallel() for name in ("query", "key", "value")}
    tensors = {**heads, "attention.out": RowwiseParallel(), "up": columns, "down": rows}
    assert_trains_alike(Block, lambda model: parallelize_module(model, mesh, tensors), x)
    back = RowwiseParallel(output_layouts=Shard(1), use_local_output=False)
    sequences = {
        **heads, "norm": SequenceParallel(), "attention.out": back, "down": back,
        "attention": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "up": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
    }  # fmt: skip
    assert_trains_alike(
        lambda: Block(norm=False), lambda model: parallelize_module(model, mesh, sequences), x,
        place=lambda x: distribute_tensor(x, mesh, [Shard(1)]),
    )  # fmt: skip


def test_tensor_parallel_training_column_and_row_wise_has_the_bits_of_one_process():
    run_on_two_ranks(columns_then_rows)


def batches_and_channels(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))

    def channels(name, module, mesh):
        for name, each in list(module.named_parameters(recurse=False)):
            module.register_parameter(name, nn.Parameter(distribute_tensor(each, mesh, [Shard(0)])))

    x, rows = normal(4, 2, 6, 6, seed=6), normal(4, 6, 12, seed=7)
    for how in ({}, {"rounding": "stochastic", "seed": 8}):
        assert_trains_alike(
            images, lambda model: distribute_module(model, mesh), x,
            place=lambda x: distribute_tensor(x, mesh, [Shard(0)]), **how,
        )  # fmt: skip
        assert_trains_alike(
            images, lambda model: distribute_module(model, mesh, channels), x,
            place=lambda x: distribute_tensor(x, mesh, [Replicate()]), **how,
        )  # fmt: skip
        for axis in range(2):
            assert_trains_alike(
                lambda: Block(norm=False), lambda model: distribute_module(model, mesh), rows,
                place=lambda x, axis=axis: distribute_tensor(x, mesh, [Shard(axis)]), **how,
            )  # fmt: skip


@pytest.mark.long
def test_training_with_split_batches_and_channels_has_the_bits_of_one_process():
    run_on_two_ranks(batches_and_channels)


def convolved(stride):
    return lambda x, weight, bias: F.conv1d(x, weight, bias, stride=stride)


def blocks_of_nvfp4(how):
    return lambda x: cstorch.mx.fake_quantize(x, "nvfp4", gradient_element="nvfp4", axis=1, **how)


#: Function of tensors, and their shapes; the ends of groups follow as integers.
OPERATORS = [
    (torch.matmul, [(6, 8), (8, 4)]),
    (torch.matmul, [(2, 4, 6, 8), (4, 8, 5)]),
    (torch.matmul, [(4, 1, 8), (1, 8, 5)]),
    (torch.matmul, [(1, 8), (8, 1)]),
    (torch.baddbmm, [(1, 1, 4), (2, 6, 8), (2, 8, 4)]),
    (F.linear, [(2, 6, 8), (4, 8), (4,)]),
    *((convolved(stride), [(2, 4, 9), (6, 4, 3), (6,)]) for stride in (1, 2, 3)),
    (F.conv_transpose1d, [(2, 4, 9), (4, 6, 3), (6,)]),
    (lambda x, weight: F.conv1d(x, weight, groups=2), [(2, 4, 9), (6, 2, 3)]),
    (lambda x: weights_of(x), [(64, 512)]),
    *((lambda x, axis=axis: cstorch.mx.fake_quantize(x, "float8_e4m3fn", axis=axis), [(4, 6, 64)]) for axis in (0, 2)),
    (blocks_of_nvfp4({}), [(4, 6, 64)]),
    (blocks_of_nvfp4({"gradient_rounding": "stochastic", "random": Randomness(seed=3)}), [(4, 6, 64)]),
    (lambda a, b, ends: F.grouped_mm(a, b, offs=ends), [(8, 6), (3, 6, 4), [2, 5, 8]]),
    (lambda a, b, ends: F.grouped_mm(a, b, offs=ends), [(3, 5, 6), (6, 8), [2, 5, 8]]),
    (lambda a, b, ends: F.grouped_mm(a, b, offs=ends), [(5, 8), (8, 4), [2, 5, 8]]),
]
#: Those that are tried with random bits, too, by their numbers: a product and a convolution.
STOCHASTIC = (1, 7)


def split_anywhere(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))

    def run(function, given, upstream, **precision):
        given = [each.detach().requires_grad_(each.is_floating_point()) for each in given]
        with cstorch.precision("cbfloat16", **precision):
            result = function(*given)
        result.backward(upstream)
        return [result.detach(), *(each.grad for each in given if each.is_floating_point())]

    for number, (function, shapes) in enumerate(OPERATORS):
        given = [
            torch.tensor(shape) if isinstance(shape, list) else normal(*shape, seed=9 + which)
            for which, shape in enumerate(shapes)
        ]
        with cstorch.precision("cbfloat16"):
            upstream = normal(*function(*given).shape, seed=20)
        for precision in ({"level": 2}, {"rounding": "stochastic", "seed": 1})[: 1 + (number in STOCHASTIC)]:
            wanted = run(function, given, upstream, **precision)
            for split in range(max(each.ndim for each in given)):
                for alone in (None, *range(len(given))):  # which tensor is split; None: each one that has the axis
                    at = [
                        Shard(split)
                        if each.is_floating_point() and split < each.ndim and alone in (None, which)
                        else Replicate()
                        for which, each in enumerate(given)
                    ]
                    if Shard(split) not in at:
                        continue
                    placed = [distribute_tensor(each, mesh, [place]) for each, place in zip(given, at, strict=True)]
                    last = distribute_tensor(upstream, mesh, [Shard(upstream.ndim - 1)])
                    got = run(function, placed, last, **precision)
                    for each, bits in zip(got, wanted, strict=True):
                        assert not any(isinstance(place, Partial) for place in each.placements)
                        assert_bits(whole(each), bits, (number, precision, at))


@pytest.mark.long
def test_operators_of_dtensors_split_anywhere_have_the_bits_of_whole_ones():
    run_on_two_ranks(split_anywhere)


def overflows(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    mesh, columns = init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(output_layouts=Replicate())}
    reasons = []
    for split in (
        lambda model: model, lambda model: parallelize_module(model, mesh, columns),
        lambda model: fully_shard(model, mesh=mesh),
    ):  # fmt: skip
        torch.manual_seed(10)
        model = split(nn.Sequential(nn.Linear(6, 8)))
        before = [whole(each.detach()).clone() for each in model.parameters()]
        scaler = cstorch.amp.GradScaler("dynamic", init_scale=8.0, named_parameters=model.named_parameters())
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        with cstorch.precision("bfloat16"):
            out = model(torch.ones(3, 6))
        gradient = torch.zeros(3, 8)
        gradient[:, 0] = 1e38  # of a weight that only the first rank has
        scaler.scale((out.float() * gradient).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert (scaler.get_scale(), scaler.get_num_skipped_steps()) == (4.0, 1)
        for each, old in zip(model.parameters(), before, strict=True):
            assert_bits(whole(each.detach()), old, "after a skipped step")
        reasons.append(scaler.get_skip_reason())
    assert reasons == ["the gradient of 0.weight is inf in 6 of 48 places"] * 3


def test_overflow_in_a_part_of_a_split_gradient_skips_the_step_on_both_ranks_and_is_named():
    run_on_two_ranks(overflows)


def fully_sharded(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))

    def split(model):
        for each in model.children():
            fully_shard(each, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    x, rows = normal(4, 2, 6, 6, seed=6), normal(4, 6, 12, seed=7)
    for how in ({}, {"rounding": "stochastic", "seed": 8}, {"half": "float8_e4m3fn"}):
        assert_trains_alike(images, split, x, **how)
        assert_trains_alike(Block, split, rows, **how)
    places = []
    for model in (Block(), split(Block())):
        with cstorch.observe(model, every=1) as report:
            trained(model, rows)
        places.append(
            [(each.module, each.direction, each.operation, each.shape) for each in report.rows] if rank == 0 else None
        )
    assert places[0] == places[1]


def test_fully_sharded_training_and_observing_are_those_of_one_process():
    run_on_two_ranks(fully_sharded)
