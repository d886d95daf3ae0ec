"""Metrics that collect over the steps of an evaluation, under the names of ``cerebras.pytorch.metrics``."""

from golden.torch.cerebras import metric, ranked_metrics
from golden.torch.cerebras.metric import *  # noqa: F403 - its names; so the next
from golden.torch.cerebras.ranked_metrics import *  # noqa: F403

__all__: list[str] = []
__all__ += metric.__all__
__all__ += ranked_metrics.__all__
