"""The machine of a run: processes of ``torch.distributed``, devices, the state of random generators."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from golden.torch.common.terminal import say_once

__all__ = [
    "RandomState",
    "average_gradients",
    "batch_for",
    "capture",
    "device_of_kind",
    "highest_rank_where",
    "message",
    "rank",
    "restore",
    "seed_everything",
    "state_to",
    "world_size",
]


def world_size() -> int:
    """Return the number of processes, 1 without ``torch.distributed``."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the distributed rank of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def message(values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return numbers where the processes can exchange them: on the CPU, unless their backend knows CUDA alone."""
    only_cuda = "cpu:" not in dist.get_backend_config()
    return torch.tensor(values, dtype=dtype, device="cuda" if only_cuda else "cpu")


def highest_rank_where(condition: bool) -> int | None:
    """Return the highest distributed rank on which a condition holds, or None. Every process must ask."""
    if world_size() == 1:
        return 0 if condition else None
    found = message(rank() if condition else -1)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return None if found < 0 else int(found)


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace every gradient by its mean over the processes, summed in fp32. All must have the same parameters.

    Where a parameter has no gradient, though it has one elsewhere, zero counts. Gradients travel in one message.
    """
    parameters, ranks = list(parameters), world_size()
    if ranks == 1 or not parameters:
        return
    has_gradient = message([each.grad is not None for each in parameters], torch.int32)
    dist.all_reduce(has_gradient, dist.ReduceOp.MAX)
    used = [each for each, used_somewhere in zip(parameters, has_gradient.tolist(), strict=True) if used_somewhere]
    flat = torch.cat(
        [(torch.zeros_like(each) if each.grad is None else each.grad).reshape(-1).float() for each in used]
    )
    dist.all_reduce(flat)
    flat /= ranks
    for parameter, mean in zip(used, torch.split(flat, [each.numel() for each in used]), strict=True):
        parameter.grad = mean.view_as(parameter).to(parameter.dtype)


def device_of_kind(kind: str, argument: str) -> torch.device:
    """Return where a backend of a kind computes: GPU on the current CUDA device if there is one, all else on the CPU.

    Where the products of another kind than CPU run on the CPU, it is said once. The bits are the same.
    """
    if kind == "GPU" and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if kind == "GPU":
        say_once(
            f"{argument}: got 'GPU', but PyTorch finds no CUDA device; the exact products run on the CPU, and so does "
            "everything else. A build of PyTorch for CUDA and NVIDIA's driver are needed: see https://pytorch.org"
        )
    elif kind != "CPU":
        say_once(f"{argument}: got {kind!r}; the exact products run on the CPU, and so does this run")
    return torch.device("cpu")


def batch_for(model: nn.Module, batch: Any) -> Any:
    """Return a structure of tensors on the CUDA device of a model; as it is, if the model is on none."""
    first = next(model.parameters(), None)
    if first is None or first.device.type != "cuda":
        return batch
    device = first.device
    return pytree.tree_map_only(torch.Tensor, lambda each: each.to(device, non_blocking=True), batch)


def state_to(optimizer: Optimizer, device: torch.device) -> None:
    """Move the state of an optimizer after its parameters; counters, which have no axes, stay."""
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.ndim:
                state[name] = value.to(device)


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
    """Return the states of the global generators (PyTorch, Python, NumPy) and of the generators of a data loader.

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
    """Set all generators to what `capture` returned, of a loader with as many generators as then."""
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
