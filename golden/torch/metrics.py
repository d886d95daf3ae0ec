"""Metrics that collect over the steps of an evaluation, under the names of ``cerebras.pytorch.metrics``."""

from golden.torch.cerebras.area import AUCMetric
from golden.torch.cerebras.confusion import DiceCoefficientMetric, FBetaScoreMetric, MeanIOUMetric
from golden.torch.cerebras.counts import AccuracyMetric, MeanMetric, MeanPerClassAccuracyMetric, PerplexityMetric
from golden.torch.cerebras.metric import Metric, compute_all_metrics, get_all_metrics
from golden.torch.cerebras.retrieval import PrecisionAtKMetric, RecallAtKMetric

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
