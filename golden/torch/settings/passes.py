"""Which kinds of products ran in the latest backward passes: a step in cbfloat16 needs a scaled loss."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from golden.kernels.library import follow
from golden.torch.settings.reductions import is_in_cbfloat16
from golden.torch.settings.scopes import Process

__all__ = ["Latest", "note_backward", "note_product", "note_pytorchs_product", "note_unscaled", "unnoted"]


class Latest:
    """The number of the latest backward pass of each kind, counted from 1; -1 if none waits for its step."""

    backward = -1  # with a product in cbfloat16
    other = -1  # with one in another half type, or whose gradients a scaler has unscaled
    fp32 = -1  # of a loss made in a precision that is not enabled
    plain = -1  # with a product of PyTorch's that no precision covers


def note_backward(*, is_fp32: bool) -> None:
    """Note that a backward pass begins, and whether its loss is meant to be in fp32."""
    Process.backwards += 1
    if is_fp32:
        Latest.fp32 = Process.backwards


def note_product(reduction: str) -> None:
    """Note that an exact product runs now, with as many threads as PyTorch's would."""
    follow(torch.get_num_threads())
    Process.products += 1
    if torch._C._current_graph_task_id() < 0:
        return
    if is_in_cbfloat16(reduction):
        Latest.backward = Process.backwards
    else:
        Latest.other = Process.backwards


def note_pytorchs_product() -> None:
    """Note that a product of PyTorch's runs now that no precision covers."""
    if torch._C._current_graph_task_id() >= 0:
        Latest.plain = Process.backwards


def note_unscaled() -> None:
    """Note that a gradient scaler has unscaled the gradients of the latest backward pass."""
    Latest.backward, Latest.other = -1, Process.backwards


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
    """Forget the products and the precisions of a run that is no training at its end."""
    before = Process.entered, Process.latest, Process.products, Process.backwards
    latest = Latest.backward, Latest.other, Latest.fp32, Latest.plain
    try:
        yield
    finally:
        Process.entered, Process.latest, Process.products, Process.backwards = before
        Latest.backward, Latest.other, Latest.fp32, Latest.plain = latest
