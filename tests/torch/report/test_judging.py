"""How layers are judged: shares, grades by the limits, the order, and the window of loss scales."""

import math
from types import SimpleNamespace

import pytest

from golden.torch.instruments.report.judging import judged, share_of_steps, worst_first
from golden.torch.instruments.report.limits import LIMITS
from golden.torch.instruments.report.views import _difference
from golden.torch.instruments.report.window import window_of
from golden.torch.instruments.report.words import count, number, percent, power, short_percent, short_power
from tests.torch.report.made_up import events, histogram, product, run_of, step


def only(tmp_path, *lines):
    (found,) = judged(run_of(tmp_path, [*lines, step(1), step(2)]))
    return found


def test_share_is_the_larger_of_products_and_promotions(tmp_path):
    found = only(
        tmp_path, product(1, products=events(1000, swamped=0.02), promotions=events(100, swamped=0.3, overflow=0.01))
    )
    assert found.shares["swamped"] == 0.3
    assert found.of_products["swamped"] == 0.02
    assert found.shares["overflow"] == 0.01
    assert share_of_steps(found.layer, "swamped").tolist() == [0.3]


def test_share_is_that_of_all_observed_steps_together(tmp_path):
    found = only(
        tmp_path,
        product(1, products=events(3000, underflow=0.01)),
        product(2, products=events(1000, underflow=0.05)),
    )
    assert found.shares["underflow"] == 80 / 4000


def test_layer_without_steps_or_distance_is_not_divided_by_nothing(tmp_path):
    found = only(tmp_path, product(1, products=events(0), promotions=events(0), distance=None))
    assert found.shares == dict.fromkeys(("swamped", "underflow", "overflow", "invalid"), 0.0) | {"distance": None}
    assert (found.score, found.worst, found.ulp_mean) == (0.0, "", None)


@pytest.mark.parametrize(
    ("name", "share", "grade"),
    [
        ("swamped", 0.0, 0), ("swamped", 0.01, 1), ("swamped", 0.011, 2), ("swamped", 0.1, 2), ("swamped", 0.101, 3),
        ("underflow", 0.1, 3), ("underflow", 0.101, 4), ("overflow", 1e-6, 3), ("overflow", 2e-5, 4),
    ],
)  # fmt: skip
def test_grade_compares_a_share_with_its_limit(tmp_path, name, share, grade):
    found = only(tmp_path, product(1, products=events(1_000_000, **{name: share})))
    assert found.grade(name) == grade
    assert found.is_beyond(name) is (grade >= 3)


def test_worst_layers_come_first_and_a_single_overflow_counts_as_a_limit(tmp_path):
    lines = [
        product(1, "quiet"),
        product(1, "once", products=events(10**9, overflow=1e-9)),
        product(1, "swamped", products=events(1000, swamped=0.25)),
        product(1, "far", distance={"relative": 0.2, "ulp_mean": 1.0, "ulp_max": 2.0}),
        step(1),
    ]
    ordered = worst_first(judged(run_of(tmp_path, lines)))
    assert [each.layer.module for each in ordered] == ["far", "swamped", "once", "quiet"]
    assert [each.worst for each in ordered[:3]] == ["distance", "swamped", "overflow"]
    assert [each.is_bad for each in ordered] == [True, True, True, False]
    assert [each.score for each in ordered[:3]] == [4.0, 2.5, 1.0]


def gradients(number, exponents, **changes):
    tensor = histogram("float16", 0) | {"exponents": {str(at): count for at, count in exponents.items()}}
    tensors = {"left": tensor, "right": tensor, "output": tensor}
    return product(number, direction="gradient_of_weight", tensors=tensors, **changes)


def test_window_keeps_all_but_a_hundredth_normal_and_two_binades_free(tmp_path):
    # Without the scale of 2^10 the exponents are -30, -20 and -2.
    run = run_of(tmp_path, [gradients(1, {-20: 1, -10: 98, 8: 1}), step(1, loss_scale=2.0**10)])
    window = window_of(run)
    assert (window.low, window.high) == (-14 + 20, 15 - 2 + 2)  # float16: normal from 2^-14, the top binade is 2^15
    assert window.below_normal(6) == 0.01
    assert window.below_normal(5) == 0.99
    assert [window.place(scale) for scale in (5, 6, 15, 16)] == ["below", "inside", "inside", "above"]


def test_window_ends_at_the_largest_scale_that_was_made_if_larger_ones_were_skipped(tmp_path):
    lines = [step(1, loss_scale=2.0**12, skipped=True), gradients(2, {0: 100}), step(2, loss_scale=2.0**9)]
    assert window_of(run_of(tmp_path / "tried", lines)).high == 9
    assert window_of(run_of(tmp_path / "not", lines[1:])).high == 15 - 2 + 9


def test_window_needs_gradients_of_a_known_format(tmp_path):
    assert window_of(run_of(tmp_path / "forward", [product(1), step(1)])) is None
    strange = gradients(1, {0: 1})
    strange["tensors"]["output"]["format"] = "my own"
    assert window_of(run_of(tmp_path / "strange", [strange, step(1)])) is None


def test_numbers_are_written_for_a_reader():
    assert [percent(share).replace("\u00a0", " ") for share in (None, 0, 1e-9, 0.00012, 0.1, 1)] == [
        "not measured", "0 %", "under 0.0001 %", "0.012 %", "10 %", "100 %",
    ]  # fmt: skip
    assert [short_percent(share) for share in (None, 0, 1e-7, 0.0012, 0.13)] == ["–", "0", "<.01", ".12", "13"]
    assert [number(value) for value in (None, math.inf, 0.0, -1.234, 29263, 1e-7)] == [
        "–", "∞", "0", "−1.2", "29,000", "1.0e−07",
    ]  # fmt: skip
    assert [power(-12), short_power(2.0**31), short_power(3.0), short_power(None)] == ["2⁻¹²", "2³¹", "3", "none"]
    assert [count(999), count(12_345_678)] == ["999", "12.3 million"]


@pytest.mark.parametrize(("share", "is_shown"), [(0.6, True), (0.599, False)])
def test_runs_whose_shares_differ_by_a_fifth_are_shown_beside_each_other(share, is_shown):
    runs = [SimpleNamespace(shares=dict.fromkeys(LIMITS, 0.0) | {"swamped": each}) for each in (share, 0.5)]
    found = _difference(("head", "forward", "linear"), runs)
    assert (found is not None) == is_shown
    if found is not None:
        assert (found.event, round(found.ratio, 12)) == ("swamped", 1.2)
