"""Products on a card, compared with the same products on the CPU: by the billion, or a few of each kind.

Formats, levels, rounding modes and shapes take turns, with specials among the operands; products in float16 and
bfloat16 run both in the card's fused steps and in the scaled ones.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from rich.progress import Progress

import golden.torch as cstorch
from golden.rounding import Rounding
from golden.torch.products.gpu import devices

__all__ = ["Case", "Outcome", "cases", "compare", "differences"]

HALVES = ("cbfloat16", "bfloat16", "float16", "cb16", "float8_e4m3fn", "float8_e5m2")
MODES = tuple(map(str, Rounding))
SHAPES = ((1, 1, 1), (7, 33, 129), (128, 128, 128), (300, 65, 515), (1024, 96, 1000), (2048, 64, 4096))
SPECIALS = (0.0, -0.0, 1e-45, 3e-39, -1e-20, 1e20, -3.3e38, float("inf"), float("-inf"), float("nan"))
_SHOWN = 40


@dataclass(frozen=True)
class Case:
    """A product: half type, level, rounding mode, M, K and N, whether the card's fused steps run it, and a seed."""

    half: str
    level: int
    mode: str
    shape: tuple[int, int, int]
    native: bool
    seed: int


@dataclass
class Outcome:
    """The numbers of products and outputs compared, and the cases in which outputs differ."""

    outputs: int = 0
    products: int = 0
    wrong: list[str] = field(default_factory=list)


def cases() -> Iterator[Case]:
    """Yield products for ever: every combination, with operands of a new seed in each round.

    Small shapes come first, so that a fault of any format, level or mode shows within seconds, even if time runs out
    before a round ends.
    """
    for seed in itertools.count():
        for shape, half, level, mode in itertools.product(SHAPES, HALVES, (0, 1, 2), MODES):
            for native in (True, False) if half in ("float16", "bfloat16") and mode == "nearest_even" else (True,):
                yield Case(half, level, mode, shape, native, seed)


def _operand(shape: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Return values near 1, and special values in about one row of a hundred."""
    near = torch.randn(shape, generator=generator) * torch.exp2(torch.randint(-8, 9, shape, generator=generator))
    special = torch.tensor(SPECIALS)[torch.randint(len(SPECIALS), shape, generator=generator)]
    return torch.where(torch.rand(shape, generator=generator) < 0.01 / shape[1], special, near)


def differences(case: Case, outcome: Outcome) -> None:
    """Compute a case on the card and on the CPU, and note differences, or the error of a product."""
    outcome.products += 1
    try:
        got, wanted = _bits(case)
    except Exception as error:  # such as a failed check of the card's own: other kernels may be right
        outcome.wrong.append(f"{case}: {type(error).__name__}: {error}")
        return
    places = (got != wanted).nonzero()
    outcome.outputs += got.numel()
    if len(places):
        at = tuple(places[0].tolist())
        outcome.wrong.append(
            f"{case}: {len(places)} of {got.numel()} differ; {at} is {int(got[at]) & 0xFFFFFFFF:#x} and must be "
            f"{int(wanted[at]) & 0xFFFFFFFF:#x}"
        )


def _bits(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the bits of a product on the card and on the CPU."""
    generator = torch.Generator().manual_seed(case.seed)
    m, k, n = case.shape
    a, b, bias = (_operand(shape, generator) for shape in ((m, k), (k, n), (1, n)))
    card = devices.device_of(torch.device("cuda", 0))
    native, results = card.native, []
    try:
        card.native = native if case.native else (False, False)
        for device in ("cuda", "cpu"):
            with cstorch.precision(case.half, case.level, rounding=case.mode, seed=case.seed), torch.no_grad():
                results.append(torch.addmm(bias.to(device), a.to(device), b.to(device)).cpu().contiguous())
    finally:
        card.native = native
    bits = torch.int32 if results[0].element_size() == 4 else torch.int16
    on_card, on_cpu = (each.view(bits) for each in results)
    return on_card, on_cpu


def compare(outputs: int, seconds: float = float("inf"), *, visible: bool = True) -> Outcome:
    """Compare at least `outputs` outputs, and every combination once, but stop after `seconds`.

    It also stops after forty products that differ or raise.
    """
    outcome, begun = Outcome(), time.monotonic()
    with Progress(disable=not visible) as bar:
        task = bar.add_task("comparing outputs", total=outputs)
        for case in cases():
            enough = case.seed > 0 and outcome.outputs >= outputs
            if enough or len(outcome.wrong) >= _SHOWN or time.monotonic() - begun >= seconds:
                return outcome
            differences(case, outcome)
            bar.update(task, completed=outcome.outputs)
    raise AssertionError
