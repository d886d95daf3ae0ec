"""Metrics that collect over the steps of an evaluation, under the names of ``cerebras.pytorch.metrics``."""

from golden.torch.cerebras.metric import (
    AccuracyMetric,
    MeanMetric,
    MeanPerClassAccuracyMetric,
    Metric,
    PerplexityMetric,
    compute_all_metrics,
    get_all_metrics,
)
from golden.torch.cerebras.ranked_metrics import (
    AUCMetric,
    DiceCoefficientMetric,
    FBetaScoreMetric,
    MeanIOUMetric,
    PrecisionAtKMetric,
    RecallAtKMetric,
)

__all__ = [
    "AUCMetric",
    "AccuracyMetric",
    "DiceCoefficientMetric",
    "FBetaScoreMetric",
    "MeanIOUMetric",
    "MeanMetric",
    "MeanPerClassAccuracyMetric",
    "Metric",
    "PerplexityMetric",
    "PrecisionAtKMetric",
    "RecallAtKMetric",
    "compute_all_metrics",
    "get_all_metrics",
]
