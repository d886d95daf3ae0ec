"""Metrics: equal to scikit-learn's, collected over batches."""

import copy

import numpy as np
import pytest
import sklearn.metrics as theirs
import torch

import golden.torch as cstorch
from golden.torch import metrics

CLASSES = 4


def batches(weighted=False):
    generator = torch.Generator().manual_seed(6)
    for length in (7, 12, 5):
        labels = torch.randint(0, CLASSES, (length,), generator=generator)
        predictions = torch.where(
            torch.rand(length, generator=generator) < 0.5,
            labels,
            torch.randint(0, CLASSES, (length,), generator=generator),
        )
        weights = torch.randint(0, 3, (length,), generator=generator).float()
        yield (labels, predictions, weights) if weighted else (labels, predictions)


def whole(weighted=False):
    return [torch.cat(each).numpy() for each in zip(*batches(weighted), strict=True)]


def collected(metric, weighted=False):
    for batch in batches(weighted):
        metric.update(*batch)
    assert metric.num_updates == 3
    return float(metric)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (lambda: metrics.AccuracyMetric(), theirs.accuracy_score),
        (lambda: metrics.MeanPerClassAccuracyMetric(CLASSES), theirs.balanced_accuracy_score),
        (lambda: metrics.MeanIOUMetric(CLASSES), lambda a, b: theirs.jaccard_score(a, b, average="macro")),
        (
            lambda: metrics.MeanIOUMetric(CLASSES, [1]),
            lambda a, b: theirs.jaccard_score(a, b, labels=[0, 2, 3], average="macro"),
        ),
        (lambda: metrics.DiceCoefficientMetric(CLASSES), lambda a, b: theirs.f1_score(a, b, average="macro")),
        (
            lambda: metrics.FBetaScoreMetric(CLASSES, 2.0),
            lambda a, b: theirs.fbeta_score(a, b, beta=2.0, average="micro"),
        ),
        (
            lambda: metrics.FBetaScoreMetric(CLASSES, 0.5, "macro", [3]),
            lambda a, b: theirs.fbeta_score(a, b, beta=0.5, labels=[0, 1, 2], average="macro"),
        ),
    ],
)
def test_metric_of_classes_equals_that_of_scikit_learn(metric, expected):
    assert collected(metric()) == pytest.approx(expected(*whole()), rel=1e-6)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (lambda: metrics.MeanPerClassAccuracyMetric(CLASSES), theirs.balanced_accuracy_score),
        (
            lambda: metrics.MeanIOUMetric(CLASSES),
            lambda a, b, sample_weight: theirs.jaccard_score(a, b, average="macro", sample_weight=sample_weight),
        ),
    ],
)
def test_weights_count_as_in_scikit_learn(metric, expected):
    labels, predictions, weights = whole(weighted=True)
    assert collected(metric(), weighted=True) == pytest.approx(
        expected(labels, predictions, sample_weight=weights), rel=1e-6
    )


def test_accuracy_counts_what_has_a_weight():
    metric = metrics.AccuracyMetric()
    metric(torch.tensor([1, 2, 3]), torch.tensor([1, 2, 0]), weights=torch.tensor([1.0, 0.0, 1.0]))
    assert float(metric) == 0.5
    assert metric(torch.tensor([[1]]), torch.tensor([1]), dtype=torch.float16).dtype == torch.float16


def test_perplexity_is_the_exponential_of_the_loss_per_token():
    metric = metrics.PerplexityMetric()
    for labels, _ in batches():
        metric.update(labels, loss=2.0 * torch.tensor(float(len(labels))))
    assert float(metric) == pytest.approx(np.exp(2.0))


def test_mean_weights_its_values():
    metric = metrics.MeanMetric(name="mean")
    metric.update(torch.tensor([1.0, 2.0]), weight=torch.tensor([3.0, 1.0]))
    assert float(metric(5.0)) == pytest.approx((3 + 2 + 5) / 5)


@pytest.mark.parametrize("k", [1, 2])
def test_precision_and_recall_at_k_count_the_best(k):
    labels = torch.tensor([[0, 1], [2, 3]])
    logits = torch.tensor([[3.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    precision, recall = metrics.PrecisionAtKMetric(k), metrics.RecallAtKMetric(k)
    found = {1: 2, 2: 3}[k]
    assert precision(labels, logits) == pytest.approx(found / (2 * k))
    assert recall(labels, logits) == pytest.approx(found / 4)
    assert precision(labels, logits, weights=torch.tensor([1.0, 0.0])) == pytest.approx((found + 1) / (3 * k))


def scores():
    generator = torch.Generator().manual_seed(8)
    labels = torch.randint(0, 2, (200,), generator=generator)
    return labels, (labels * 0.3 + torch.rand(200, generator=generator) * 0.7).clamp(0, 1)


def test_area_under_roc_equals_that_of_scikit_learn():
    labels, predictions = scores()
    areas = {
        way: metrics.AUCMetric(num_thresholds=2000, summation_method=way)(labels, predictions)
        for way in ("interpolation", "minoring", "majoring")
    }
    expected = theirs.roc_auc_score(labels, predictions)
    assert areas["interpolation"] == pytest.approx(expected, abs=1e-3)
    assert areas["minoring"] <= areas["interpolation"] <= areas["majoring"]


def test_area_under_precision_and_recall_is_near_the_average_precision():
    labels, predictions = scores()
    area = metrics.AUCMetric(num_thresholds=2000, curve="PR")(labels, predictions)
    assert area == pytest.approx(theirs.average_precision_score(labels, predictions), abs=5e-3)


def test_reset_begins_anew_and_a_copy_counts_for_itself():
    metric = metrics.MeanMetric(name="copied")
    metric.update(3.0)
    twin = copy.deepcopy(metric)
    twin.update(5.0)
    assert (float(metric), metric.num_updates, float(twin), twin.num_updates) == (3.0, 1, 4.0, 2)
    metric.reset()
    metric.update(1.0)
    assert (float(metric), metric.num_updates) == (1.0, 1)


def test_update_of_a_subclass_that_calls_its_base_counts_once():
    class Twice(metrics.MeanMetric):
        def update(self, value):
            super().update(value)
            super().update(value)

    metric = Twice()
    metric.update(2.0)
    assert (metric.num_updates, float(metric.weight)) == (1, 2.0)


def test_all_metrics_are_found_by_name_while_they_live():
    kept = [metrics.MeanMetric(name="here"), metrics.MeanMetric(name="here"), metrics.MeanMetric(name="there")]
    metrics.MeanMetric(name="gone")
    kept[1].update(7.0)
    found = {
        name: metric for name, metric in metrics.get_all_metrics() if name.split(".")[0] in ("here", "there", "gone")
    }
    assert found == {"here.0": kept[0], "here.1": kept[1], "there": kept[2]}
    assert float(cstorch.metrics.compute_all_metrics()["here.1"]) == 7.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.AUCMetric(curve="RPC"), r"^curve: got 'RPC'"),
        (lambda: metrics.AUCMetric(summation_method="sum"), r"^summation_method: got 'sum'"),
        (lambda: metrics.AUCMetric(num_thresholds=1), r"^num_thresholds: got 1"),
        (lambda: metrics.AUCMetric()(torch.ones(2), torch.full((2,), 1.5)), r"^predictions: got 1.5 to 1.5"),
        (lambda: metrics.FBetaScoreMetric(3, beta=0), r"^beta: got 0"),
        (lambda: metrics.MeanIOUMetric(1), r"^num_classes: got 1"),
        (lambda: metrics.MeanIOUMetric(3, [3]), r"^ignore_classes: got class 3, must be 0 to 2"),
        (lambda: metrics.PrecisionAtKMetric(0), r"^k: got 0, must be at least 1"),
        (lambda: metrics.MeanIOUMetric(3)(torch.tensor([3]), torch.tensor([0])), r"^labels: got classes 3 to 3"),
        (lambda: metrics.MeanIOUMetric(3)(torch.ones(2), torch.ones(3)), r"^predictions: got shape \(3,\)"),
        (lambda: metrics.AccuracyMetric()(torch.ones(2), torch.ones(3)), r"^predictions: got shape \(3,\)"),
        (
            lambda: metrics.PrecisionAtKMetric(1)(torch.ones(2, 1), torch.ones(2, 3), torch.ones(3)),
            r"^weights: got 3, must be one or 2",
        ),
    ],
)
def test_wrong_argument_of_a_metric_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
