"""Predictions of combinations, and the choice among them."""

import numpy as np
import pytest

from golden.torch.advising import choosing
from golden.torch.advising.advice import level_map_of
from golden.torch.advising.choosing import Candidate, Prediction, Setting
from golden.torch.advising.products import Unit


def prediction(layers, seed=0):
    """Return a prediction of random candidates, uncorrelated in part."""
    generator = np.random.default_rng(seed)
    candidates = [
        Candidate(Unit(f"layer{n}", run), Setting(level, 32))
        for n in range(layers)
        for run in ("fwd", "bwd")
        for level in (1, 2)
    ]
    vectors = generator.normal(size=(len(candidates), 50)) * generator.uniform(0.1, 1, (len(candidates), 1))
    saved = np.repeat(generator.uniform(1, 9, 2 * layers), 2) * np.tile([1.0, 1.03], 2 * layers)
    return Prediction(candidates, vectors @ vectors.T / 50, np.zeros(len(candidates)), saved)


def test_prediction_of_many_layers_is_searched_as_well_as_that_of_few(monkeypatch):
    for limit in (0.5, 1.0, 2.0):
        every = prediction(4)
        monkeypatch.setattr(choosing, "_MOST", 1)
        greedy = prediction(4)
        monkeypatch.undo()
        best, found = (each.cheapest((limit, 1.0), 1.0, set()) for each in (every, greedy))
        assert greedy.change(found)[0] <= limit
        assert greedy.saved(found) >= 0.9 * every.saved(best)


def test_prediction_of_a_combination_is_the_norm_of_the_summed_changes():
    vectors, losses = np.array([[3.0, 0, 0], [0, 4.0, 0], [0, -4.0, 1]]), np.array([0.1, -0.3, 0.5])
    units = [Unit("a", "fwd"), Unit("a", "bwd"), Unit("b", "fwd")]
    found = Prediction([Candidate(each, Setting(2, 32)) for each in units], vectors @ vectors.T, losses, np.ones(3))
    assert found.change((0, 1)) == pytest.approx((5.0, 0.2))
    assert found.change((1, 2)) == pytest.approx((1.0, 0.2))
    assert found.change(()) == (0.0, 0.0)


def test_level_map_of_equal_layers_is_a_pattern_and_of_others_their_paths():
    fast, slow = Setting(2, 32), Setting(1, 16)
    chosen = {"h.0.a": {"fwd": fast, "bwd": fast}, "h.1.a": {"fwd": fast, "bwd": fast}, "h.0.b": {"fwd": slow}}
    layers = ["h.0.a", "h.0.b", "h.1.a", "h.1.b"]
    assert level_map_of(chosen, layers, 32) == {"h.*.a": 2, "h.0.b": {"fwd": 1, "bwd": 0, "chunk": 16}, "h.1.b": 0}
    assert level_map_of(chosen, ["h.0.a"], 32, common=False) == {"h.0.a": 2}
