"""Some products, convolutions, softmax and roundings of each kind on a card, for compute-sanitizer: few outputs, every
kernel. ``make test-gpu`` runs it under memcheck and racecheck.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import torch
import torch.nn.functional as F

import golden.torch as cstorch
from golden.torch.products.gpu import devices
from lab.gpu.card import skipped
from lab.gpu.comparison import HALVES, MODES, Case, Outcome, differences
from tools.interrupts import ending_on_interrupt

__all__ = ["SHAPES", "main", "selection"]

# For a card with one processor: in tiles of 32, 64 and 128, none of them full.
SHAPES = ((5, 33, 9), (40, 21, 61), (130, 37, 129))


def selection() -> Iterator[Case]:
    """Yield a product for every format, level and mode; the shapes take turns."""
    shapes = itertools.cycle(SHAPES)
    for half, level in itertools.product(HALVES, (0, 1, 2)):
        for native in (True, False) if half in ("float16", "bfloat16") else (True,):
            for shape in SHAPES:
                yield Case(half, level, "nearest_even", shape, native, 0)
    for mode, level in itertools.product(MODES, (0, 1)):
        yield Case("cbfloat16", level, mode, next(shapes), True, 0)


def _other_operators() -> list[str]:
    """Run convolutions, softmax and rounding on the card and on the CPU; return the names of differing operators."""
    x, weight, turned = (torch.randn(shape, generator=torch.Generator().manual_seed(1))
                         for shape in ((2, 4, 9, 8), (6, 2, 3, 2), (4, 3, 3, 2)))  # fmt: skip
    wrong = []
    for name, given in {
        "convolution": lambda to: F.conv2d(to(x), to(weight), stride=2, padding=1, groups=2),
        "transposed convolution": lambda to: F.conv_transpose2d(to(x), to(turned), stride=2),
        "softmax": lambda to: torch.ops.cbfloat.softmax16(to(x), "cbfloat16", torch.float32),
        "rounding": lambda to: torch.ops.cbfloat.rounded(to(x), "bfloat16", torch.bfloat16),
    }.items():
        try:
            with cstorch.precision("cbfloat16", 1):
                on_card, on_cpu = (given(lambda each, to=to: each.to(to)).cpu().float() for to in ("cuda", "cpu"))
        except Exception as error:  # the other operators may show more
            wrong.append(f"{name}: {type(error).__name__}: {error}")
            continue
        if not torch.equal(on_card.view(torch.int32), on_cpu.view(torch.int32)):
            wrong.append(name)
    return wrong


@ending_on_interrupt("lab.gpu.sanitized", "nothing is kept of this run")
def main() -> int:
    """Run everything once; return the exit status."""
    if skipped("sanitized"):
        return 0
    card = devices.device_of(torch.device("cuda", 0))
    processors, card.processors = card.processors, 1
    outcome = Outcome()
    try:
        for case in selection():
            differences(case, outcome)
        outcome.wrong += _other_operators()
    finally:
        card.processors = processors
    print(f"{outcome.outputs:,} outputs of {outcome.products} products compared, {len(outcome.wrong)} differ")
    print("\n".join(outcome.wrong))
    return int(bool(outcome.wrong))


if __name__ == "__main__":
    sys.exit(main())
