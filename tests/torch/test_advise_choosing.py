"""Predictions of combinations, and the choice among them."""

import numpy as np
import pytest

from golden.torch import MixedPrecision
from golden.torch.instruments.advise import choosing
from golden.torch.instruments.advise.advice import level_map_of
from golden.torch.instruments.advise.choosing import Candidate, Prediction, Setting, Start
from golden.torch.instruments.advise.formats import Formats
from golden.torch.instruments.advise.measuring import Unit


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


def with_formats(start, seed=3):
    """Return a prediction of three formats, one of them cheap and coarse, after a start with one change."""
    generator = np.random.default_rng(seed)
    kinds = {None: (2.0, 0.5), "float16": (2.0, 0.1), "float8_e4m3fn": (4.0, 4.0)}
    units = [Unit(f"layer{n}", run) for n in range(2) for run in ("fwd", "bwd")]
    candidates = [Candidate(unit, Setting(2, 32, half)) for unit in units for half in kinds]
    scales = [kinds[each.setting.half] for each in candidates]
    errors = generator.normal(size=(len(candidates), 50)) * np.array([[scale] for _, scale in scales]) / 7
    # All units together make the start's change, and each candidate takes the place of its unit's.
    own = generator.normal(size=(4, 50)) * start / 14
    vectors = errors - np.repeat(own, 3, axis=0)
    change = own.sum(0)
    begin = Start(vectors @ change, float(change @ change), 0.0)
    saved = np.array([speed for speed, _ in scales])
    found = Prediction(candidates, vectors @ vectors.T, np.zeros(len(candidates)), saved, begin)
    return found, np.vstack([change, vectors])


def test_best_combination_has_the_smallest_share_of_either_budget():
    units = [Unit("a", "fwd"), Unit("b", "fwd")]
    candidates = [Candidate(unit, Setting(2, 32)) for unit in units]
    gradients, losses = np.diag([0.01, 0.04]), np.array([0.3, 0.0])  # alone they change the gradient by 0.1 and by 0.2
    found = Prediction(candidates, gradients, losses, np.ones(2))
    assert found.best((1.0, 0.5), (), 1.0, set()) == (1,)  # 0.2 of the gradient's budget, not 0.6 of the loss's
    assert found.best((1.0, 5.0), (), 1.0, set()) == (0,)
    assert found.best((1.0, 0.5), (), 1.0, {(1,), (0, 1)}) == (0,)


def test_prediction_adds_the_changes_to_that_of_the_start():
    found, vectors = with_formats(3.0)
    assert found.change(())[0] == pytest.approx(np.linalg.norm(vectors[0]))
    assert found.change((1, 4))[0] == pytest.approx(np.linalg.norm(vectors[[0, 2, 5]].sum(0)))
    assert found.change(found.cheapest((9.0, 1.0), 1.0, set()))[0] <= 9.0


def test_prediction_of_many_layers_mends_a_start_beyond_the_budget_and_exchanges_formats(monkeypatch):
    for start in (0.5, 3.0):
        for limit in (0.4, 2.0, 9.0):
            every, _ = with_formats(start)
            monkeypatch.setattr(choosing, "_MOST", 1)
            greedy, _ = with_formats(start)
            monkeypatch.undo()
            best = every.cheapest((limit, 1.0), 1.0, set())
            found = greedy.cheapest((limit, 1.0), 1.0, set())
            assert greedy.change(found)[0] <= limit
            assert greedy.saved(found) >= 0.9 * every.saved(best)
            coarse = tuple(number for number in range(0, 12, 3))  # all in the format of the precision
            least = every.best((limit, 1.0), coarse, every.saved(coarse), set())
            mended = greedy.best((limit, 1.0), coarse, greedy.saved(coarse), set())
            assert greedy.change(mended)[0] <= 1.1 * every.change(least)[0] < every.change(coarse)[0]


def test_prediction_lets_passes_share_a_chunk_except_at_level_0():
    settings = [Setting(1, 16), Setting(2, 32), Setting(0, None, "float16")]
    units = [Unit("a", "fwd"), Unit("a", "bwd")]
    candidates = [Candidate(unit, each) for unit in units for each in settings]
    found = Prediction(candidates, np.zeros((6, 6)), np.zeros(6), np.array([1.0, 3.0, 0.5] * 2))
    assert found.cheapest((1.0, 1.0), 1.0, set()) == (1, 4)
    seen = {(1, 4)}
    while (choice := found.cheapest((1.0, 1.0), 1.0, seen)) is not None:
        seen.add(choice)
    assert (2, 3) in seen
    assert (0, 4) not in seen


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


def test_level_map_of_formats_names_those_that_are_not_the_precisions():
    formats = Formats("bfloat16", "bfloat16", ("float16", "float8_e4m3fn"))
    narrow, wide = Setting(2, 32, "float8_e4m3fn"), Setting(2, 32, "float16")
    chosen = {
        "a": {"fwd": narrow, "bwd": wide},
        "b": {"fwd": wide, "bwd": wide},
        "c": {"fwd": Setting(2, 32), "bwd": narrow},
        "d": {"fwd": Setting(0, None), "bwd": Setting(0, None)},
    }
    found = level_map_of(chosen, list(chosen), 32, formats=formats)
    assert found == {
        "a": {"fwd": 2, "bwd": 2, "half": {"fwd": "float8_e4m3fn", "bwd": "float16"}, "inner": "bfloat16"},
        "b": {"fwd": 2, "bwd": 2, "half": "float16"},
        "c": {"fwd": 2, "bwd": 2, "half": {"fwd": "bfloat16", "bwd": "float8_e4m3fn"}, "inner": "bfloat16"},
        "d": 0,
    }
    assert formats.by_range == (None, "float16", "float8_e4m3fn")
    assert [formats.width(each) for each in formats.choices] == [16, 16, 8]
    assert formats.largest_sum("float8_e4m3fn") == formats.largest_sum(None) > formats.largest_sum("float16") == 65504


@pytest.mark.parametrize(
    ("name", "given", "others", "scale"),
    [
        ("cbfloat16", {}, (), 2.0**31),
        ("cbfloat16", {}, ("float16",), 2.0**15),
        ("float16", {"max_loss_scale": 2.0**10}, ("cbfloat16",), 2.0**10),
        ("float16", {"initial_loss_scale": 8.0}, ("cbfloat16",), 8.0),
        ("float16", {"loss_scaling_factor": 4.0}, ("cbfloat16",), 4.0),
        ("bfloat16", {"loss_scaling_factor": None}, ("float16",), 1.0),
    ],
)
def test_first_loss_scale_of_a_search_is_the_lowest_of_its_formats(name, given, others, scale):
    precision = MixedPrecision(fp16_type=name, **{"loss_scaling_factor": "dynamic", **given})
    assert Formats(name, name, others).first_scale(precision) == scale
