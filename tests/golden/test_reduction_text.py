"""A reduction as one value: its line of text, there and back; refused lines; keywords that build it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import (
    BF16,
    CBFLOAT16,
    FLOAT8_E4M3FN,
    FORMATS,
    FP16,
    FP32,
    FloatFormat,
    FusedSum,
    Provenance,
    Randomness,
    Reduction,
    Rounding,
    accumulators,
    dot,
    matmul,
    reference,
)
from golden.reduction import reduction_of

from .judges import formats

NAMES = st.sampled_from(["mine", "e4m3", "float16", "two words", 'say "x=1"', "\n", "=", "é", "a:1:2:3:ieee"])


@st.composite
def named_formats(draw: st.DrawFn) -> FloatFormat:
    """Known formats, and any others under any name, a known one among them."""
    if draw(st.booleans()):
        return draw(st.sampled_from(FORMATS))
    fmt = draw(formats())
    return FloatFormat(draw(NAMES), fmt.exponent_bits, fmt.fraction_bits, fmt.bias, fmt.specials)


@st.composite
def rules(draw: st.DrawFn) -> Any:
    """Accumulators of other machines: presets, and others that differ from one in some numbers."""
    rule = draw(st.sampled_from(list(accumulators.values())))
    changes: dict[str, Any] = {}
    if draw(st.booleans()):
        changes["total_reach"] = draw(st.none() | st.integers(1, 40))
        changes["zero_exponent"] = draw(st.none() | st.integers(-1000, 256))
        changes["order"] = draw(st.just(()) | st.permutations(range(rule.block)).map(tuple))
        changes["flush"] = draw(st.sampled_from(["none", "signed", "positive"] if rule.outer == FP32 else ["none"]))
    if draw(st.booleans()):
        changes["provenance"] = Provenance("a machine", "its own", ("float16",), "me", "", "all of it", 'a "word"')
    if draw(st.booleans()):
        odd = FloatFormat("odd one", 8, draw(st.integers(1, 22)))
        half = draw(st.sampled_from([odd, FP16])) if rule.outer == FP16 else odd
        changes["join"] = FusedSum(rule.join.terms, draw(st.integers(1, 40)), "down", "toward_zero", half)
        changes["nan"] = FP32.nan if half == odd else rule.nan
    return replace(rule, **changes)


@st.composite
def reductions(draw: st.DrawFn) -> Reduction:
    """Reductions with every option."""
    able = named_formats().filter(lambda fmt: fmt.has_inf)
    modes = draw(st.tuples(*[st.sampled_from(Rounding)] * 2))
    random = Randomness(draw(st.integers(1, 32)), draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**32 - 1)))
    some: dict[str, Any] = {"out": draw(st.none() | named_formats()), "random": draw(st.sampled_from([None, random]))}
    if draw(st.booleans()):
        rule = draw(rules())
        operand = draw(st.none() | st.just(FP16 if rule.operand_bits == 16 else FLOAT8_E4M3FN))
        return Reduction(accumulator=rule, operand=operand, out_rounding=modes[1], **some)
    some |= {"operand": draw(st.none() | named_formats()), "rounding": modes[0], "out_rounding": modes[1]}
    chunk = draw(st.none() | st.integers(1, 2**63 - 1))
    return Reduction(draw(able.filter(lambda fmt: fmt.has_one)), chunk, draw(able), **some)


@given(reductions())
def test_reduction_any_is_read_back_from_its_line(reduction):
    line = str(reduction)
    assert line == line.strip()
    assert len(line.splitlines()) == 1
    back = Reduction.parse(line)
    assert back == reduction
    assert hash(back) == hash(reduction)
    assert str(back) == line
    if reduction.accumulator is not None:
        assert back.accumulator.provenance == reduction.accumulator.provenance
    for twin in (pickle.loads(pickle.dumps(reduction)), copy.deepcopy(reduction), replace(reduction)):
        assert twin == reduction
        assert hash(twin) == hash(reduction)


@given(reductions(), st.data())
def test_reduction_that_differs_in_one_part_has_another_line(reduction, data):
    """Two lines are equal exactly if the reductions and the provenance of their accumulators are."""
    other = data.draw(reductions())
    sources = [None if each.accumulator is None else each.accumulator.provenance for each in (reduction, other)]
    assert (str(reduction) == str(other)) == (reduction == other and sources[0] == sources[1])


LINES = {
    "operand=cbfloat16 inner=cbfloat16 chunk=32 outer=float32": Reduction(CBFLOAT16, 32, FP32, operand=CBFLOAT16),
    "inner=bfloat16 chunk=none outer=bfloat16 out=float8_e4m3fn out_rounding=toward_zero": Reduction(
        BF16, None, BF16, out=FLOAT8_E4M3FN, out_rounding="toward_zero"
    ),
    "inner=float16 chunk=8 outer=float32 rounding=stochastic random_bits=8 seed=3 call=4": Reduction(
        FP16, 8, FP32, rounding="stochastic", random=Randomness(8, seed=3, call=4)
    ),
    "operand=float16 accumulator=nvidia_hopper": Reduction(operand=FP16, accumulator=accumulators["nvidia_hopper"]),
    'inner="my own":4:3:7:ieee chunk=none outer=float32': Reduction(FloatFormat("my own", 4, 3), None, FP32),
}


@pytest.mark.parametrize("line", LINES)
def test_line_written_by_hand_is_the_reduction(line):
    assert str(LINES[line]) == line
    assert Reduction.parse(f"  {'   '.join(reversed(line.split(' ')))} " if '"' not in line else line) == LINES[line]


def test_line_is_the_same_in_another_process():
    """Hashes differ there, and a hash that was kept would be wrong."""
    code = "import pickle, sys; r = pickle.load(sys.stdin.buffer); print(r, {r: 1}[type(r).parse(str(r))])"
    reduction = LINES["operand=float16 accumulator=nvidia_hopper"]
    hash(reduction)
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(reduction), capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"{reduction} 1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("inner", "text: got 'inner', which at 'inner' must be words such as inner=cbfloat16"),
        ("chunk=3 chunk=4", "at 'chunk=4' has a key twice"),
        ("level=1", "text: got the key 'level', must be one of operand, inner, outer, out, chunk"),
        ("inner=float17", "text: got inner=float17 .*must be one of float32"),
        ("inner=x:1:2:3:ieee", "text: got inner=x:1:2:3:ieee .exponent_bits: got 1"),
        ("inner=float16:5:10", "text: got inner=float16:5:10 "),
        ("chunk=0", "chunk: got 0, must be at least 1"),
        ("chunk=x", "text: got chunk=x "),
        ("accumulator=nvidia", "text: got accumulator=nvidia .accumulator: got 'nvidia', must be one of x86_vdpbf16ps"),
        ("accumulator={}", "text: got accumulator={} .accumulator: got '{}', must be as str.reduction. writes it"),
        ("rounding=upwards", "rounding: got 'upwards', must be a Rounding or one of"),
        ("rounding=stochastic random_bits=33", "random_bits: got 33, must be 1 to 32"),
        ("accumulator=nvidia_hopper chunk=3", "inner, chunk, outer: got float32, 3, float32, must be left out beside"),
        ("accumulator=nvidia_hopper operand=float8_e5m2", "operand: got float8_e5m2 of 8 bits, must have 9 to 16"),
        ("accumulator=nvidia_hopper rounding=up", "rounding: got another mode than nearest_even"),
    ],
)
def test_line_that_is_wrong_raises_saying_what(line, message):
    with pytest.raises(ValueError, match=message):
        Reduction.parse(line)


def test_line_that_is_no_text_raises():
    with pytest.raises(TypeError, match="text: got 3, must be a string"):
        Reduction.parse(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random": 3}, "random: got 3, must be a golden.Randomness"),
        ({"accumulator": "nvidia_hopper"}, "accumulator: got 'nvidia_hopper', must be one of golden.accumulators"),
        ({"operand": "float16"}, r"operand: got 'float16', must be a FloatFormat; golden.format_named\('float16'\)"),
        ({"rounding": 1}, "rounding: got 1, must be a Rounding or the name of one"),
    ],
)
def test_reduction_of_another_type_raises_naming_it(options, message):
    with pytest.raises(TypeError, match=message):
        Reduction(CBFLOAT16, 32, FP32, **options)


def test_reduction_without_a_random_mode_has_no_random_bits():
    one = Reduction(CBFLOAT16, 32, FP32, random=Randomness(seed=5))
    assert one.random is None
    assert one == Reduction(CBFLOAT16, 32, FP32)
    assert one.with_random(Randomness(seed=6)) is one
    drawn = replace(one, rounding="stochastic")
    assert drawn.random == Randomness()
    assert drawn.with_random(Randomness(seed=6)) == replace(drawn, random=Randomness(seed=6)) != drawn


def test_reduction_that_carries_everything_is_that_of_the_keywords():
    codes = [[0x3E01, 0x4003, 0xBC07], [0x3A11, 0x3E0F, 0x4101]]
    keywords = {"level": 2, "chunk": 2, "out": "bfloat16", "rounding": "stochastic", "out_rounding": "up", "seed": 9}
    other = [list(row) for row in zip(*codes, strict=True)]
    for more in (keywords, {"reduction": accumulators["nvidia_hopper"], "out": "float16"}):
        operand = "float16" if "reduction" in more else "cbfloat16"
        whole = reduction_of(operand=operand, **more)
        assert Reduction.parse(str(whole)) == whole
        given = [[code for code in row] for row in codes]
        expected = reference.matmul(given, other, operand=operand, **more)
        assert reference.matmul(given, other, reduction=whole) == expected
        assert matmul(given, other, reduction=whole).tolist() == expected
        assert dot(given[0], given[1], reduction=whole) == reference.dot(*given, operand=operand, **more)[0]


def test_keyword_beside_a_reduction_takes_the_place_of_that_part():
    whole = Reduction(CBFLOAT16, 32, FP32, operand=CBFLOAT16, rounding="stochastic", random=Randomness(8, 1, 2))
    assert reduction_of(reduction=whole) == whole
    assert reduction_of(reduction=whole, seed=3).random == Randomness(8, 3, 2)
    assert reduction_of(reduction=whole, out="float16", rounding="up") == Reduction(
        CBFLOAT16, 32, FP32, CBFLOAT16, FP16, "up"
    )
    with pytest.raises(ValueError, match="operand: got bfloat16, must be cbfloat16 as in the reduction"):
        dot([0], [0], operand="bfloat16", reduction=whole)
    with pytest.raises(TypeError, match="operand: got None, must be a FloatFormat or the name of one"):
        dot([0], [0], reduction=Reduction(CBFLOAT16, 32, FP32))


@pytest.mark.parametrize("keywords", [{"level": True}, {"chunk": True}, {"seed": True}, {"random_bits": 3.0}])
def test_keyword_that_equals_an_int_and_is_none_raises_after_it_was_one(keywords):
    """Built reductions are cached; True equals 1 and must not get its cached reduction."""
    (name, wrong), *_ = keywords.items()
    dot([0], [0], operand=CBFLOAT16, **{name: int(wrong)})
    with pytest.raises(TypeError, match=f"{name}: got {wrong}"):
        dot([0], [0], operand=CBFLOAT16, **keywords)
