"""The premises of the proofs can be met, by the cases that a proof is about: one that nothing meets proves anything."""

from functools import cache

import pytest

from lab.proofs.catalogue import proofs
from lab.proofs.engines import bitwuzla_api
from lab.proofs.terms import bits, both, either, equal, inverse, slice_of

pytestmark = pytest.mark.long

_CLAIM = "(assert (not "


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("premises")


@cache
def _every():
    return {proof.id: proof for proof in proofs()}


def premises(claim, folder):
    """Return a formula without its claim, which comes last."""
    text = _every()[claim].build(folder)
    head, found, claimed = text.rpartition(_CLAIM)
    assert found, f"{claim}: no claim"
    assert claimed.count("(assert") == claimed.count("(define") == 0, f"{claim}: something stands behind its claim"
    return head


def meets(text, *cases):
    return [bitwuzla_api.decide(f"{text}(assert {case})\n")[0] for case in cases]


@pytest.mark.parametrize("mode", ["nearest_even", "down", "stochastic"])
def test_premises_of_a_second_half_in_any_mode_are_met_by_numbers_zeros_and_specials(mode, folder):
    for accumulator in ("cbfloat16", "float32"):
        text = premises(f"step/modes/second_half/cbfloat16_into_{accumulator}/{mode}/bitwuzla", folder)
        number = inverse(either("is_zero_product", "is_special_product"))
        assert meets(text, "is_zero_product", "is_special_product", number) == ["sat"] * 3


def test_premises_of_what_is_swamped_are_met_by_products_that_are_and_are_not(folder):
    text = premises("step/swamped/cbfloat16/cbfloat16_into_float32/bitwuzla", folder)
    assert meets(text, *(equal("|top.swamped|", bit) for bit in ("#b0", "#b1"))) == ["sat"] * 2


@pytest.mark.parametrize("accumulator", ["cbfloat16", "float32"])
@pytest.mark.parametrize("core", ["cbfloat16", "modes"])
def test_premises_of_the_lane_are_met_by_products_and_promotions_of_every_class(core, accumulator, folder):
    formats = f"cbfloat16_into_{accumulator}"
    claim = f"lane/own_form/cbfloat16/{formats}" if core == "cbfloat16" else f"lane/own_form/modes/{formats}/up"
    text = premises(f"{claim}/bitwuzla", folder)
    # Exponent fields of the operand: zero or subnormal, ordinary, infinity or NaN.
    fields = [equal(slice_of("|step.a|", 14, 9), bits(value, 6)) for value in (0, 31, 63)]
    for kind in ("is_promotion", inverse("is_promotion")):
        assert meets(text, *(both(kind, field) for field in fields)) == ["sat"] * 3


@pytest.mark.parametrize(
    ("claim", "cycles"),
    [("control/bounded/stages_1", 18), ("control/modes/stages_1", 18), ("control/modes/stages_3", 20)],
)
def test_premises_of_the_control_are_met_by_results_of_every_level_and_by_refusals(claim, cycles, folder):
    text = premises(f"{claim}/bitwuzla", folder)
    leaves = [both(*(equal(f"|t{at}.o__{end}|", "#b1") for end in ("valid", "ready"))) for at in range(cycles)]
    # Beat 5 ends a reduction of register 0 that an earlier beat has begun, at each level; or its second chunk.
    cases = [both("gives_5_0_0", equal("level_0_at_5", bits(level, 2))) for level in range(3)]
    cases += [both("gives_5_0_0", "counts_0_5", inverse("is_first_0_5")), both("gives_1_1_1", "gives_2_0_1")]
    cases += [either(*(both(*leaves[at : at + 3]) for at in range(cycles - 2)))]
    cases += [either(*(both(equal(f"|t{at}.o__valid|", "#b1"), equal(f"|t{at}.o__ready|", "#b0")) for at in range(6)))]
    assert meets(text, *cases) == ["sat"] * len(cases)


def test_distances_at_which_a_second_half_is_cut_leave_none_out():
    claims = [name for name in _every() if "/distances_" in name]
    for engine in ("bitwuzla", "z3+cadical"):
        cuts = [
            name.rpartition("distances_")[2].partition("/")[0].split("..") for name in claims if name.endswith(engine)
        ]
        assert len(cuts) > 4
        # The first has no lower end, the last no upper one; between, where one ends the next begins.
        firsts, ends = zip(*cuts, strict=True)
        assert (firsts[0], ends[-1]) == ("", "")
        assert list(firsts[1:]) == list(ends[:-1]) == sorted(firsts[1:], key=int)


def test_distances_of_a_cut_second_half_are_each_met(folder):
    mode = "bfloat16/bfloat16_into_float32/distances_"
    claims = [name for name in _every() if mode in name and name.endswith("bitwuzla")]
    assert len(claims) >= 6
    texts = [premises(name, folder) for name in claims]
    assert [bitwuzla_api.decide(text)[0] for text in texts] == ["sat"] * len(texts)
