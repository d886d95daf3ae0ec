"""Why products are bad: each cause by a product that has it, and a model built to break in one layer."""

import math

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.instruments.observe.observer import Observer
from golden.torch.instruments.observe.tallies import cause_of
from golden.torch.settings.scopes import scopes

from .training import train


def cause(a, b, half="float16", level=2, rows=16, **settings):
    """Return the cause of a product that is bad."""
    scopes.observer = observer = Observer(nn.Identity(), 1, rows)
    try:
        with cstorch.precision(half, level=level, **settings):
            cstorch.matmul(a, b)
    finally:
        scopes.observer = None
    return cause_of(next(iter(observer.tallies.values())))


def ones(*shape, value=1.0):
    return torch.full(shape, value)


def test_cause_of_a_good_product_is_none():
    assert cause(ones(4, 8), ones(8, 3)) is None


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_cause_of_an_operand_that_is_not_finite_is_that(value):
    a = ones(4, 8)
    a[1, 2] = value
    assert cause(a, ones(8, 3)) == ("input not finite", {"left values": 1})
    assert cause(ones(3, 4), a) == ("input not finite", {"right values": 1})


def test_cause_of_an_operand_beyond_its_format_is_that():
    found = cause(ones(4, 8, value=70000.0), ones(8, 3))
    assert found == ("input beyond its format", {"format": "float16", "left values": 32})


def test_cause_of_sums_that_overflow_on_the_way_is_that():
    found = cause(ones(4, 8, value=300.0), ones(8, 3, value=200.0))
    assert found.words == "overflow in the sums"
    # The second of 8 addends of 60,000 overflows; infinity plus a number raises nothing.
    assert found.evidence == {"overflows": 12, "steps": 12 * (8 + 1), "rows": 4, "largest exponent": 15, "level": 2}


def test_cause_of_sums_that_overflow_in_a_row_that_is_not_counted_is_that():
    a = ones(64, 8)
    a[37] = 300.0
    found = cause(a, ones(8, 3, value=200.0), rows=2)
    assert (found.words, found.evidence["rows"]) == ("overflow in the sums", 1)


def test_cause_of_a_result_that_the_last_rounding_makes_infinite_is_that():
    found = cause(ones(4, 8, value=300.0), ones(8, 3, value=200.0), level=0)
    assert found == ("overflow of the result", {"results": 12, "format": "float16"})


def test_cause_of_results_that_are_lost_is_underflow():
    found = cause(ones(4, 8, value=2.0**-14), ones(8, 3, value=2.0**-14))
    assert found == ("underflow to zero", {"lost": 12, "results": 12})


def test_cause_of_addends_that_are_lost_is_swamped_sums():
    a = ones(4, 4096)
    found = cause(a, ones(4096, 2), half="bfloat16", chunk=None)
    assert found.words == "swamped sums"
    assert found.evidence["swamped"] == 8 * (4096 - 256)  # 256 + 1 is 256 in bfloat16
    assert found.evidence["relative distance"] == (4096 - 256) / 4096


class Breaks(nn.Module):
    """Sums of the middle layer grow to 98,304 and come back to 0: at level 2 they overflow float16 on the way."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(4, 128), nn.Linear(128, 8), nn.Linear(8, 2)
        with torch.no_grad():
            self.first.weight.fill_(0.0)
            self.first.bias.fill_(48.0)
            signs = torch.ones(128)
            signs[64:] = -1.0
            self.middle.weight.copy_(32.0 * signs.expand(8, 128))

    def forward(self, x):
        return self.last(self.middle(self.first(x)) * 1e-3)


def fit(level):
    def loss_of(model):
        return model(torch.ones(3, 4)).square().mean()

    return train(Breaks(), 1, every=1, loss_of=loss_of, half="float16", level=level, scale=1.0)[0]


def test_first_bad_of_a_model_built_to_break_names_the_layer_and_the_cause():
    bad = fit(level=2).first_bad
    assert (bad.step, bad.module, bad.direction, bad.cause) == (1, "middle", "forward", "overflow in the sums")
    assert bad.evidence["operation"] == "linear"
    assert bad.evidence["overflows"] == 3 * 8
    # Later layers have infinities and NaNs for operands.
    later = {each.cause for each in fit(level=2).all_first_bad[1:]}
    assert later == {"input not finite"}


def test_first_bad_of_the_same_model_at_level_1_is_none():
    assert fit(level=1).first_bad is None


def test_first_bad_without_a_look_at_the_sums_would_be_missed(monkeypatch):
    monkeypatch.setattr("golden.torch.instruments.observe.observation.cause_of", lambda tally: None)
    with pytest.raises(AttributeError):
        test_first_bad_of_a_model_built_to_break_names_the_layer_and_the_cause()
