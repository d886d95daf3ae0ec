"""Coordinates of drawings: paths of steps, labels in the middle of bars, panels of a timeline."""

import math

import pytest

from golden.torch.instruments.report.curves import Axis, stairs
from golden.torch.instruments.report.histograms import frames
from golden.torch.instruments.report.records import Histogram
from golden.torch.instruments.report.timeline import timeline
from golden.torch.instruments.report.words import power
from tests.torch.report.made_up import run_of, step

X, Y = Axis(0, 10, 0, 100), Axis(0, 4, 40, 0)


@pytest.mark.parametrize(
    ("points", "path"),
    [
        ([(0, 1.0), (2, 1.0), (5, 3.0), (10, 3.0)], "M0 30H50V10H100"),
        ([(1, 2.0), (3, math.nan), (4, 2.0), (6, 4.0)], "M10 20M40 20H60V0H60"),
        ([(3, math.nan)], ""),
        ([], ""),
    ],
    ids=["rises", "with a gap", "nothing finite", "nothing"],
)
def test_path_of_steps_holds_each_value_until_the_next(points, path):
    assert stairs(X, Y, points) == path


def test_label_of_an_exponent_stands_in_the_middle_of_its_bar():
    frame = frames([Histogram("float16", exponents={"-3": 5, "2": 1})])["float16"]
    exponents = {power(exponent): exponent for exponent in range(-60, 60)}
    assert len(frame.ticks) >= 3
    for tick in frame.ticks:
        exponent = exponents[tick.label]
        middle = (frame.axis(exponent) + frame.axis(exponent + 1)) / 2
        assert abs(tick.place - middle) < 0.3, tick


def test_timeline_has_its_panels_below_each_other_and_room_for_the_steps_below(tmp_path):
    drawn = timeline([run_of(tmp_path, [step(1, loss_scale=None), step(2, loss_scale=None)])])
    names = ["first bad", "loss", "loss scale", "skipped", "swamped", "underflow", "overflow", "invalid"]
    assert [panel.label for panel in drawn.panels] == names
    scale = drawn.panels[2]
    assert (scale.unit, scale.height, scale.empty) == ("", 24, "the loss was not scaled")
    for above, below in zip(drawn.panels, drawn.panels[1:], strict=False):
        assert below.top > above.bottom
    assert drawn.height > drawn.panels[-1].bottom + 20
