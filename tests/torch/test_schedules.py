"""Schedules: the curves of PyTorch where the original has them, its own closed forms otherwise."""

import math

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.optim import SGD, lr_scheduler, scheduler, weight_decay_scheduler

THEIRS = torch.optim.lr_scheduler


def sgd(lr=0.1, **group):
    return SGD([{"params": [nn.Parameter(torch.zeros(1))], **group}], lr=lr)


def values(make, steps=9):
    optimizer = sgd()
    schedule = make(optimizer)
    seen = []
    for _ in range(steps):
        seen.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
    return seen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda o: lr_scheduler.ConstantLR(o, 0.1), lambda o: THEIRS.LambdaLR(o, lambda _: 1)),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.1, 1, 0.9), lambda o: THEIRS.ExponentialLR(o, 0.9)),
        (lambda o: lr_scheduler.PolynomialLR(o, 0.1, 0.0, 6, 2.0), lambda o: THEIRS.PolynomialLR(o, 6, 2.0)),
        (lambda o: lr_scheduler.LinearLR(o, 0.1, 0.0, 6), lambda o: THEIRS.PolynomialLR(o, 6)),
        (lambda o: lr_scheduler.StepLR(o, 0.1, 3, 0.5), lambda o: THEIRS.StepLR(o, 3, 0.5)),
        (lambda o: lr_scheduler.MultiStepLR(o, 0.1, 0.5, [2, 5]), lambda o: THEIRS.MultiStepLR(o, [2, 5], 0.5)),
        (lambda o: lr_scheduler.MultiplicativeLR(o, 0.1, 0.7), lambda o: THEIRS.ExponentialLR(o, 0.7)),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 0.1, 4, 0.01), lambda o: THEIRS.CosineAnnealingLR(o, 4, 0.01)),
        (
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0.1, 4, eta_min=0.01),
            lambda o: THEIRS.CosineAnnealingWarmRestarts(o, 4, eta_min=0.01),
        ),
        *(
            (
                lambda o, mode=mode: lr_scheduler.CyclicLR(o, 0.1, 0.5, 2, 3, mode, 0.9),
                lambda o, mode=mode: THEIRS.CyclicLR(o, 0.1, 0.5, 2, 3, mode, 0.9, cycle_momentum=False),
            )
            for mode in ("triangular", "triangular2", "exp_range")
        ),
        *(
            (
                lambda o, way=way, three=three: lr_scheduler.OneCycleLR(o, 0.02, 0.5, 9, 0.4, 10.0, three, way),
                lambda o, way=way, three=three: THEIRS.OneCycleLR(
                    o,
                    0.5,
                    9,
                    pct_start=0.4,
                    anneal_strategy=way,
                    cycle_momentum=False,
                    div_factor=25.0,
                    final_div_factor=10.0,
                    three_phase=three,
                ),
            )
            for way in ("cos", "linear")
            for three in (False, True)
        ),
    ],
)
def test_schedule_equals_that_of_pytorch(ours, theirs):
    plain = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    schedule, expected = theirs(plain), []
    for _ in range(9):
        expected.append(plain.param_groups[0]["lr"])
        plain.step()
        schedule.step()
    assert values(ours) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def cosine(start, end, share):
    return (1 + math.cos(math.pi * share)) / 2 * (start - end) + end


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: lr_scheduler.CosineDecayLR(o, 0.1, 0.02, 4), [cosine(0.1, 0.02, min(t / 4, 1)) for t in range(9)]),
        (
            lambda o: lr_scheduler.InverseSquareRootDecayLR(o, 0.1, 2.0, 3),
            [0.2 / math.sqrt(max(3, t)) for t in range(9)],
        ),
        (
            lambda o: lr_scheduler.InverseExponentialTimeDecayLR(o, 0.1, 2, 4, 0.5),
            [0.1 / (1 + 0.5 * t**2 / 4) for t in range(9)],
        ),
        (
            lambda o: lr_scheduler.ExponentialLR(o, 0.1, 4, 0.5, staircase=True),
            [0.1 * 0.5 ** (t // 4) for t in range(9)],
        ),
        (lambda o: lr_scheduler.LambdaLR(o, 0.1), [0.1 * t / 30 * 0.1 * 0.95**t for t in range(9)]),
        (
            lambda o: lr_scheduler.PiecewiseConstantLR(o, [0.3, 0.2, 0.1], [2, 5]),
            [0.3] * 2 + [0.2] * 3 + [0.1] * 4,
        ),
        (
            lambda o: lr_scheduler.SequentialLR(
                o, [lr_scheduler.LinearLR(o, 0.0, 0.4, 4), lr_scheduler.CosineDecayLR(o, 0.4, 0.0, 5)], [4]
            ),
            [0.1 * t for t in range(4)] + [cosine(0.4, 0.0, t / 5) for t in range(5)],
        ),
        (
            lambda o: lr_scheduler.ChainedLR(
                [lr_scheduler.StepLR(o, 0.4, 4, 0.5), lr_scheduler.MultiplicativeLR(o, 2.0, 0.9)]
            ),
            [0.4 * 0.5 ** (t // 4) * 0.9**t for t in range(9)],
        ),
    ],
)
def test_schedule_follows_its_closed_form(make, expected):
    assert values(make) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_tags_choose_the_groups_and_scales_adjust_them():
    parameters = [nn.Parameter(torch.zeros(1)) for _ in range(3)]
    groups = [
        {"params": parameters[:1], "tags": "head", "adjust_learning_rate": 0.5},
        {"params": parameters[1:2], "tags": ["body", "all"]},
        {"params": parameters[2:]},
    ]
    optimizer = SGD(groups, lr=9.0)

    def rates():
        return [float(group["lr"]) for group in optimizer.param_groups]

    lr_scheduler.ConstantLR(optimizer, 1.0, param_group_tags="head")
    assert rates() == [1.0, 9.0, 9.0]
    lr_scheduler.ConstantLR(optimizer, 2.0, param_group_tags=[None])
    assert rates() == [1.0, 9.0, 2.0]
    schedule = lr_scheduler.ScalePerParamLR(optimizer, lr_scheduler.ConstantLR(optimizer, 4.0))
    assert rates() == [2.0, 4.0, 4.0]
    assert [float(rate) for rate in schedule.get_last_lr()] == [2.0, 4.0, 4.0]
    with pytest.raises(ValueError, match=r"^param_group_tags: got \{'tail'\}"):
        lr_scheduler.ConstantLR(optimizer, 1.0, param_group_tags="tail")


def test_weight_decay_follows_a_schedule():
    optimizer = sgd(weight_decay=0.3)
    schedule = weight_decay_scheduler.LinearWD(optimizer, 0.2, 0.0, 2)
    seen = []
    for _ in range(3):
        seen.append(float(optimizer.param_groups[0]["weight_decay"]))
        schedule.step()
    assert seen == pytest.approx([0.2, 0.1, 0.0])
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.1)


def test_weight_decay_takes_one_value_after_another():
    optimizer = sgd(weight_decay=0.3)
    schedule, seen = weight_decay_scheduler.PiecewiseConstantWD(optimizer, [0.5, 0.25], [2]), []
    for _ in range(4):
        seen.append(float(optimizer.param_groups[0]["weight_decay"]))
        schedule.step()
    assert seen == [0.5, 0.5, 0.25, 0.25]


def test_schedule_of_a_learning_rate_has_its_parameters_under_both_names():
    schedule = lr_scheduler.CosineDecayLR(sgd(), initial_learning_rate=0.5, end_learning_rate=0.25, total_iters=4)
    assert (schedule.initial_learning_rate, schedule.end_learning_rate) == (0.5, 0.25)
    assert (schedule.initial_val, schedule.end_val) == (0.5, 0.25)


def test_schedule_waits_after_a_skipped_step():
    weight = nn.Parameter(torch.ones(()))
    optimizer = SGD([weight], lr=0.0)
    schedule = lr_scheduler.LinearLR(optimizer, 0.4, 0.0, 4)
    scaler = cstorch.amp.GradScaler("dynamic", init_scale=8.0)
    seen = []
    for factor in (1.0, float("inf"), 1.0):
        scaler.scale(weight * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
        seen.append((cstorch.amp.isfinite(optimizer), float(schedule.get_last_lr()[0])))
    assert seen == [(True, pytest.approx(0.3)), (False, pytest.approx(0.3)), (True, pytest.approx(0.2))]


@pytest.mark.parametrize("name", ["SequentialLR", "LinearLR", "ScalePerParamLR"])
def test_state_of_a_schedule_goes_on(name):
    def make(optimizer):
        line = lr_scheduler.LinearLR(optimizer, 0.4, 0.0, 8)
        if name == "LinearLR":
            return line
        if name == "ScalePerParamLR":
            return lr_scheduler.ScalePerParamLR(optimizer, line)
        return lr_scheduler.SequentialLR(optimizer, [line, lr_scheduler.ConstantLR(optimizer, 0.7)], [3])

    first = make(sgd())
    for _ in range(2):
        first.step()
    second = make(sgd())
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        assert [float(rate) for rate in first.get_last_lr()] == [float(rate) for rate in second.get_last_lr()]
        first.step()
        second.step()


@pytest.mark.parametrize(
    ("description", "cls"),
    [
        (0.05, lr_scheduler.ConstantLR),
        ({"scheduler": "Linear", "initial_learning_rate": 0.1, "end_learning_rate": 0.0, "total_iters": 4}, None),
        (
            [
                {"scheduler": "LinearLR", "initial_learning_rate": 0.0, "end_learning_rate": 0.1, "total_iters": 4},
                {"scheduler": "constant", "learning_rate": 0.1},
            ],
            lr_scheduler.SequentialLR,
        ),
        (
            [
                {
                    "scheduler": "step",
                    "initial_learning_rate": 0.1,
                    "step_size": 2,
                    "gamma": 0.5,
                    "main_scheduler": "chained",
                },
                {"scheduler": "multiplicative", "initial_learning_rate": 0.1, "coefficient": 0.5},
            ],
            lr_scheduler.ChainedLR,
        ),
        ({"scheduler": "cyclic", "base_lr": 0.1, "max_lr": 0.2, "step_size_up": 3}, lr_scheduler.CyclicLR),
        ({"scheduler": "PiecewiseConstant", "learning_rates": [0.1, 0.2], "milestones": [3]}, None),
    ],
)
def test_schedule_by_name(description, cls):
    schedule = cstorch.optim.configure_lr_scheduler(sgd(), description)
    assert isinstance(schedule, torch.optim.lr_scheduler.LRScheduler)
    assert cls is None or type(schedule) is cls
    scaled = cstorch.optim.configure_lr_scheduler(sgd(), 0.1, adjust_learning_rate={"layer": 0.5})
    assert type(scaled) is lr_scheduler.ScalePerParamLR


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda o: lr_scheduler.ConstantLR(torch.optim.SGD(o.param_groups, lr=1.0), 1.0),
            TypeError,
            r"^optimizer: got",
        ),
        (lambda o: cstorch.optim.configure_lr_scheduler(o, {"scheduler": "linaer"}), ValueError, r"^scheduler: got 'l"),
        (
            lambda o: cstorch.optim.configure_lr_scheduler(o, {"scheduler": "constant", "steps": 3}),
            TypeError,
            r"^steps: ConstantLR has no such parameter, must be one of learning_rate",
        ),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0.1, 4, 2), ValueError, r"^T_mult: got 2, must be 1"),
        (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="round"), ValueError, r"^mode: got 'round'"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 0.2, anneal_strategy="no"), ValueError, r"^anneal_strategy: got"),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.1)], [3]),
            ValueError,
            r"^milestones: got 1 for 1 schedulers",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.1)] * 2, 3),
            TypeError,
            r"^milestones: got 3, must be a list of ints",
        ),
        (
            lambda o: lr_scheduler.PiecewiseConstantLR(o, [0.1, 0.2, 0.3], [4, 2]),
            ValueError,
            r"^milestones: got \[4, 2\], must ascend",
        ),
        (
            lambda o: lr_scheduler.ChainedLR([weight_decay_scheduler.ConstantWD(o, 0.1)]),
            ValueError,
            r"^schedulers: the one at 0 sets weight_decay, must set lr",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [3], []),
            TypeError,
            r"^schedulers: got 3 at 0, must be a scheduler of",
        ),
        (lambda o: lr_scheduler.ChainedLR([]), ValueError, r"^schedulers: got none"),
        (
            lambda o: lr_scheduler.ConstantLR(o, 0.1).load_state_dict({"step": 3, "lr": 1}),
            ValueError,
            r"^state_dict: got \['lr', 'step'\], must have last_epoch",
        ),
        (
            lambda o: lr_scheduler.ConstantLR(o, 0.1).momentum,
            AttributeError,
            "^momentum: ConstantLR has no such attribute",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(sgd(), 0.1)], []),
            ValueError,
            r"^schedulers: the one at 0 is of another optimizer",
        ),
        (lambda o: lr_scheduler.ExponentialLR(o, 1.0, 0, 0.9), ValueError, "^total_iters: got 0, must be at least 1"),
        (lambda o: lr_scheduler.CosineDecayLR(o, 1.0, 0.0, 0), ValueError, "^total_iters: got 0, must be at least 1"),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, -5), ValueError, "^total_iters: got -5, must be at least 0"),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 1.0, 0), ValueError, "^T_max: got 0, must be at least 1"),
        (lambda o: lr_scheduler.StepLR(o, 1.0, 0, 0.5), ValueError, "^step_size: got 0, must be at least 1"),
        (lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0, 0), ValueError, "^step_size_up: got 0, must be at least 1"),
        (
            lambda o: lr_scheduler.InverseSquareRootDecayLR(o, 1.0, 1.0, 0.0),
            ValueError,
            r"^warmup_steps: got 0.0, must be above 0",
        ),
        (lambda o: lr_scheduler.ConstantLR(o, math.nan), ValueError, "^learning_rate: got nan, must be finite"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 1.0, 10, 2.0), ValueError, "^pct_start: got 2.0, must be 0 to 1"),
        (
            lambda o: lr_scheduler.LinearLR(o, initial_learning_rate=1.0, initial_val=0.5, end_val=0.0, total_iters=3),
            ValueError,
            "^initial_learning_rate: got 1.0 beside initial_val 0.5, two names of one parameter",
        ),
        (
            lambda o: lr_scheduler.ChainedLR([lr_scheduler.ConstantLR(o, 1.0), lr_scheduler.LinearLR(o, 0.0, 1.0, 4)]),
            ValueError,
            "^schedulers: the one at 1 starts with 0, must start with another value",
        ),
    ],
)
def test_wrong_schedule_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make(sgd())


@pytest.mark.parametrize("way", ["cos", "linear"])
def test_schedule_of_one_cycle_stays_at_its_last_value(way):
    found = values(lambda o: lr_scheduler.OneCycleLR(o, 0.1, 1.0, 5, anneal_strategy=way), steps=12)
    assert found[4:] == [found[4]] * 8
    assert found[4] == pytest.approx(0.1 / 1e4, rel=1e-4)


def test_schedules_that_are_chained_are_shares_of_their_first_value():
    chained = values(
        lambda o: lr_scheduler.ChainedLR(
            [lr_scheduler.StepLR(o, 1.0, 2, 0.5), lr_scheduler.PiecewiseConstantLR(o, [4.0, 1.0], [3])]
        ),
        steps=5,
    )
    assert chained == [1.0, 1.0, 0.5, 0.125, 0.0625]


def test_every_curve_has_a_schedule_of_learning_rate_and_of_weight_decay():
    for name in scheduler.__all__:
        if name != "Scheduler":
            curve = name.removesuffix("Scheduler")
            assert hasattr(weight_decay_scheduler, f"{curve}WD"), name
            assert hasattr(lr_scheduler, f"{curve}LR") or hasattr(lr_scheduler, curve), name
