"""Each rule speaks of a run in which something is wrong, shows its numbers, and is silent about one like it."""

from pathlib import Path

import pytest
import yaml

from golden.torch.instruments.report.advice import case_of, merged
from golden.torch.instruments.report.limits import LIMITS
from golden.torch.instruments.report.rules import RULES, advice
from golden.torch.instruments.report.views import RunView, advice_text, levels_text
from golden.torch.settings.level_map import LevelMap
from tests.torch.report.made_up import events, histogram, product, run_of, step

MANY = 1_000_000


def tensors(fmt="cbfloat16", centre=0.0, **specials):
    return dict.fromkeys(("left", "right", "output"), histogram(fmt, centre, **specials))


def one(direction="forward", level=1, **changes):
    """One observed step, in which a layer has something."""
    return [product(1, direction=direction, level=level, **changes), step(1)]


def steps(skipped, **changes):
    """Steps, some of them skipped, by a letter for each."""
    return [
        step(number, skipped=letter == "x", finite=letter != "x", **changes) for number, letter in enumerate(skipped, 1)
    ]


def gradient(centre, scale, others=(), **changes):
    """One step with gradients around an exponent, at a loss scale."""
    line = product(1, direction="gradient_of_weight", tensors=tensors("float16", centre), **changes)
    return [line, step(1, loss_scale=scale), *others]


def far(relative):
    return {"relative": relative, "ulp_mean": 3.0, "ulp_max": 9.0}


#: Tensors of a product whose operands are numbers and whose results are 0.
ZERO = tensors() | {"output": histogram("cbfloat16", 0.0, total=0, zero=4096)}


#: For each rule a run that it must mention, with words and levels of its advice, and a run that it must not mention.
CASES = {
    "run lost": (
        steps("." + "x" * 20), "The last 20 steps were skipped, from step 2 on.", {}, steps("." + "x" * 19 + ".")
    ),
    "not finite": (
        [step(1, finite=False), step(2)], "1 step, the first is step 1.", {}, steps("x.."),
    ),
    "overflow in chunks": (
        one(level=2, products=events(MANY, overflow=0.001)), "0.1 %", {"blocks.0.mlp.fc": {"fwd": 0}},
        one(level=0, products=events(MANY, overflow=0.001)),
    ),
    "overflow of totals": (
        one(level=2, promotions=events(MANY, overflow=0.002)), "0.2 % of the promotions",
        {"blocks.0.mlp.fc": {"fwd": 1}}, one(level=1, promotions=events(MANY, overflow=0.002)),
    ),
    "swamped in chunks": (
        one(products=events(MANY, swamped=0.12)), "12 %", {"blocks.0.mlp.fc": {"fwd": 0}},
        one(products=events(MANY, swamped=0.10)),
    ),
    "swamped totals": (
        one("gradient_of_input", 2, promotions=events(MANY, swamped=0.4)), "40 % of the promotions",
        {"blocks.0.mlp.fc": {"bwd": 1}}, one("gradient_of_input", 1, promotions=events(MANY, swamped=0.4)),
    ),
    "far from fp32": (
        one(level=2, distance=far(0.06)), "6 %", {"blocks.0.mlp.fc": {"fwd": 1}}, one(level=2, distance=far(0.05)),
    ),
    "invalid": (
        one(products=events(MANY, invalid=0.01)), "1 %", {}, one(products=events(MANY, invalid=0.01, overflow=0.01)),
    ),
    "no loss scale": (
        gradient(-18, None), "below the normal numbers of float16", {}, gradient(0, None),
    ),
    "scale too small": (
        gradient(-18, 2.0), "With the last scale, 2¹,", {}, gradient(-4, 2.0),
    ),
    "underflow without room": (
        gradient(5, 2.0**10, [step(2, loss_scale=2.0**11, skipped=True), step(3, loss_scale=2.0**10)],
                 products=events(MANY, underflow=0.03)),
        "the last scale was 2¹⁰, the largest that fits is 2¹⁰", {},
        gradient(-4, 2.0**10, products=events(MANY, underflow=0.03)),
    ),
    "gradient all zero": (
        one("gradient_of_weight", tensors=ZERO, distance=None), "The gradient is all zero in blocks.0.mlp.fc.", {},
        one("forward", tensors=ZERO, distance=None),
    ),
    "scale too large": (
        gradient(14, 2.0**10), "The scale was 2¹⁰ in every step.", {}, gradient(4, 2.0**10),
    ),
    "no scale fits": (
        gradient(-2, 2.0**10, [
            product(2, direction="gradient_of_input", tensors=tensors("float16", -30, width=9.0)),
            product(2, "head", "gradient_of_input", tensors=tensors("float16", 14)), step(2, loss_scale=2.0**10)]),
        "To keep 99 % of them normal in float16", {}, gradient(-2, 2.0**10),
    ),
    "skipped at first": (
        [*(step(n, skipped=True, loss_scale=2.0 ** (30 - n)) for n in (1, 2, 3)), step(4, loss_scale=2.0**26)],
        "The first 3 steps were skipped, until the scale had come down to 2²⁶.", {}, steps("xx.."),
    ),
    "skipped often": (
        steps("." * 18 + "xx"), "2 of 20 steps were skipped, 10 %", {}, steps("." * 19 + "x"),
    ),
    "forward too large": (
        one(tensors=tensors(centre=29)), "topmost binade of cbfloat16", {}, one(tensors=tensors(centre=20)),
    ),
    "forward too small": (
        one(tensors=tensors(centre=-31)), "They are subnormal", {}, one(tensors=tensors(centre=-20)),
    ),
}  # fmt: skip


def said_by(rule, run):
    (found,) = [each for each in RULES if each.name == rule]
    return found.speak(case_of(run))


def test_every_rule_has_a_run_here():
    assert [rule.name for rule in RULES if rule.name not in CASES] == []
    assert set(CASES) == {rule.name for rule in RULES}


@pytest.mark.parametrize("rule", CASES)
def test_rule_speaks_with_its_numbers_and_is_silent_below_its_limit(tmp_path, rule):
    wrong, words, levels, right = CASES[rule]
    said = said_by(rule, run_of(tmp_path / "wrong", wrong))
    assert said is not None
    assert words in said.because.replace("\u00a0", " ")
    assert said.levels == levels
    assert said.title.endswith(".")
    assert said.change.endswith(".")
    assert said_by(rule, run_of(tmp_path / "right", right)) is None


def test_quiet_run_gets_no_advice(tmp_path):
    lines = [line for number in range(1, 31) for line in (product(number), step(number))]
    assert advice(case_of(run_of(tmp_path, lines))) == []


def test_fixed_scale_that_skips_often_is_let_adapt_itself(tmp_path):
    said = said_by("skipped often", run_of(tmp_path, steps("." * 18 + "xx")))
    assert said.setting == "precision: {loss_scaling_factor: dynamic}"


def test_dynamic_scale_that_skips_often_gets_the_largest_scale_that_was_good(tmp_path):
    lines = [*steps("." * 18), *(step(n, skipped=True, loss_scale=2.0**20) for n in (19, 20))]
    said = said_by("skipped often", run_of(tmp_path, lines))
    assert said.setting == "precision: {max_loss_scale: 32768.0}"


def test_invalid_layer_points_to_the_earliest_bad_step(tmp_path):
    bad = {"kind": "first_bad", "step": 1, "module": "deep", "pass": "forward", "cause": "overflow in the sums"}
    run = run_of(tmp_path, [*one(products=events(MANY, invalid=0.01)), bad])
    assert "The earliest bad step is 1, in deep: overflow in the sums." in said_by("invalid", run).change


def small(module, underflow, swamped, **changes):
    """A gradient some of whose steps underflow, or lose their addend."""
    shares = events(MANY, underflow=underflow, swamped=swamped)
    return product(1, module, "gradient_of_input", products=shares, distance=far(0.4), **changes)


def test_swamped_and_distant_gradients_that_underflow_are_left_to_the_loss_scale(tmp_path):
    lines = [small("a", 0.8, 0.6), small("b", 0.3, 0.25), *gradient(-18, 2.0)]
    said = dict(advice(case_of(run_of(tmp_path, lines))))
    assert list(said) == ["scale too small"]
    assert [place.partition(",")[0] for place in said["scale too small"].layers[:2]] == ["a", "b"]


def test_swamped_gradients_are_not_explained_by_fewer_steps_that_underflow(tmp_path):
    # A step that loses its addend below the normal numbers underflows, too: half of these are above.
    lines = [small("a", 0.3, 0.6), small("b", 0.8, 0.6), *gradient(-18, 2.0)]
    said = dict(advice(case_of(run_of(tmp_path, lines))))
    assert list(said) == ["scale too small", "swamped in chunks"]
    assert said["swamped in chunks"].levels == {"a": {"bwd": 0}}


def test_swamped_gradients_are_told_where_no_loss_scale_helps(tmp_path):
    lines = [small("a", 0.8, 0.6), *gradient(14, 2.0**10, [step(2, loss_scale=2.0**11, skipped=True)])]
    assert [name for name, _ in advice(case_of(run_of(tmp_path, lines)))][:2] == [
        "underflow without room",
        "swamped in chunks",
    ]


def test_swamped_forward_pass_is_not_explained_by_gradients(tmp_path):
    lines = [product(1, "a", products=events(MANY, underflow=0.8, swamped=0.6)), *gradient(-18, 2.0)]
    said = dict(advice(case_of(run_of(tmp_path, lines))))
    assert list(said)[:2] == ["scale too small", "swamped in chunks"]


@pytest.mark.parametrize(("scale", "rule"), [(None, "no loss scale"), (1.0, "scale too small")])
def test_layer_whose_gradient_becomes_all_zero_asks_for_a_scale_though_all_others_are_normal(tmp_path, scale, rule):
    lost = product(1, "weak", "gradient_of_weight", tensors=ZERO, distance=far(1.0))
    said = dict(advice(case_of(run_of(tmp_path, [lost, *gradient(0, scale)]))))
    assert list(said) == [rule]
    assert " The gradient is all zero in weak." in said[rule].because
    assert "loss_scaling_factor: dynamic" in said[rule].setting


def trial(levels, **changes):
    return {"kind": "trial", "step": 1, "levels": levels, "before": 0.12, "after": 0.004, "helps": True} | changes


def test_map_that_was_tried_and_does_not_help_is_not_offered(tmp_path):
    lines = [*one(products=events(MANY, swamped=0.2)), *steps("...")[1:]]
    levels = {"blocks.0.mlp.fc": {"fwd": 0}}
    for name, line, kept in (
        ("helps", trial(levels), levels),
        ("not", trial(levels, after=None, helps=False), {}),
        ("other", trial({"head": {"fwd": 0}}, helps=False), levels),
        ("none", step(4), levels),
    ):
        view = RunView(case_of(run_of(tmp_path / name, [*lines, line])))
        ((_, said),) = view.advice
        assert (said.levels, bool(view.levels)) == (kept, bool(kept))
        shown = view.trial if kept else said.change
        start = {"helps": "It helps: ", "not": "Other levels do not help: "}.get(name, "It is untried.")
        assert shown.startswith(start)
        if name == "not":
            assert "were not finite with new levels and 12 % away without" in shown.replace("\u00a0", " ")


def test_advice_as_text_has_its_numbers_settings_and_levels(tmp_path):
    lines = [*one(products=events(MANY, swamped=0.2)), trial({"blocks.0.mlp.fc": {"fwd": 0}})]
    said = advice_text(case_of(run_of(tmp_path, lines)))
    assert said.startswith("What to change:\n1. Addends are swamped within a chunk. Steps lose their addend whole in 1")
    assert "\n   precision: {chunk: 16}\n" in said
    assert said.endswith("\nlevels:\n  blocks.0.mlp.fc: {fwd: 0}")
    assert advice_text(case_of(run_of(tmp_path, [step(1)]))) == "What to change: nothing, no rule speaks."


def test_layers_of_one_rule_are_told_together_the_worst_first(tmp_path):
    lines = [
        product(1, name, products=events(MANY, swamped=share)) for name, share in (("a", 0.2), ("b", 0.5), ("c", 0.05))
    ]
    said = said_by("swamped in chunks", run_of(tmp_path, [*lines, step(1)]))
    assert "in 2 places, most in b, forward: 50" in said.because
    assert [place.partition(",")[0] for place in said.layers] == ["b", "a"]


def test_map_of_levels_is_yaml_and_the_lower_of_two_levels_holds():
    levels = merged([{"a": {"fwd": 1}}, {"a": {"fwd": 0, "bwd": 1}, "b.c": {"bwd": 2}}, {"a": {"bwd": 2}}])
    assert levels == {"a": {"fwd": 0, "bwd": 1}, "b.c": {"bwd": 2}}
    assert levels_text(levels) == "levels:\n  a: {fwd: 0, bwd: 1}\n  b.c: {bwd: 2}"
    assert LevelMap.of(yaml.safe_load(levels_text(levels))["levels"]).document == levels
    assert levels_text({}) == ""


def test_product_without_a_path_gets_no_level(tmp_path):
    for name in ("", "(compiled)"):
        lines = [product(1, name, products=events(MANY, swamped=0.5)), step(1)]
        said = said_by("swamped in chunks", run_of(tmp_path, lines))
        assert (said.levels, len(said.layers)) == ({}, 1)


def test_manual_has_every_limit_and_every_rule_as_they_are():
    manual = (Path(__file__).parents[3] / "docs" / "report.md").read_text(encoding="utf-8")
    rows = [f"| {rule.name} | {rule.when} |" for rule in RULES]
    rows += [f"| {limit.label} | {limit.allowed} | {limit.meaning} |" for limit in LIMITS.values()]
    assert [row for row in rows if row.replace("\u00a0", " ") not in manual] == []
