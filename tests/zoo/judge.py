"""An outside judge of what ran: PyTorch's profiler, which records every operator, whoever calls it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from torch.profiler import ProfilerActivity, profile

from golden.torch.settings.scopes import Process

# Operators that multiply and sum, by what their kernels are called. Names and not golden's own table, which is judged.
_PRODUCT = re.compile(
    r"""(aten|mkldnn|mkldnn_prepacked|mkl|quantized|onednn|inductor|prims)::
    (_?(addmm|mm|bmm|baddbmm|addbmm|mv|addmv|dot|vdot|int_mm|scaled_mm|grouped_mm|scaled_grouped_mm|trilinear|cdist)
    |addr|.*convolution.*|.*linear_pointwise.*|.*_linear.*|.*attention.*|.*lstm.*|.*gru.*|.*rnn.*|linalg_solve.*|.*einsum.*)
    (_forward|_backward|_out|_)?$""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Seen:
    """The number of exact products that ran, and the other products."""

    exact: int
    unseen: Counter[str]


def watched(run: Callable[[], None]) -> Seen:
    """Run something under the profiler; tell its products."""
    before = Process.products  # the kernels' own count: they are called without PyTorch where nobody else looks
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run()
    names = Counter(event.name for event in profiler.events())
    return Seen(
        exact=Process.products - before,
        unseen=Counter({name: count for name, count in names.items() if _PRODUCT.match(name)}),
    )
