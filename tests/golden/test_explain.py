"""A reduction explained: its steps follow the contract, its counts equal an outside judge's, its words are true."""

import math
from fractions import Fraction

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, Flag, Reduction, dot, encode, explain, reference
from golden.cli import main
from golden.counts import NO_EXPONENT, Counts, Events
from golden.exact_steps import Kind, Step, counted
from golden.formats import SIXTEEN_BIT_FORMATS

from ..shared import full_disk
from .judges import random_codes

NOTHING = Events(0, 0, 0, 0, 0, 0)


def grown(count=300, fmt=BF16):
    """Ones on top of 256, whose ulp in bfloat16 is 2."""
    return encode(np.array([256.0] + [1.0] * count), fmt), encode(np.ones(count + 1), fmt)


def drawn(explained, file, monkeypatch):
    """The figure of a picture."""
    pyplot, figures = pytest.importorskip("matplotlib.pyplot"), []
    with monkeypatch.context() as patch:
        patch.setattr(pyplot, "close", figures.append)
        explained.plot(file)
    (figure,) = figures
    pyplot.close(figure)
    return figure


@pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_explain_any_codes_ends_with_the_code_and_flags_of_dot(fmt, level):
    for seed in range(20):
        a, b = random_codes(fmt, (2, 21), seed=seed)
        explained = explain(a, b, operand=fmt, level=level, chunk=4)
        code, flags = dot(a, b, operand=fmt, level=level, chunk=4, return_flags=True)
        assert (explained.code, explained.flags) == (int(code), int(flags))
        promotions = [step for step in explained.steps if step.kind is Kind.PROMOTION]
        assert len(promotions) == (0 if level == 0 else 6)


def test_explain_stochastic_result_of_a_matrix_product_is_that_result():
    random = np.random.default_rng(1)
    a, b = encode(random.normal(size=(3, 40)), CBFLOAT16), encode(random.normal(size=(40, 5)), CBFLOAT16)
    options = {"operand": CBFLOAT16, "level": 2, "rounding": "stochastic", "seed": 7, "call": 3}
    whole = golden.matmul(a, b, **options)
    assert explain(a[2], b[:, 4], index=14, **options).code == whole[2, 4]
    assert {explain(a[2], b[:, 4], index=index, **options).code for index in range(14)} != {int(whole[2, 4])}


def test_explain_lost_and_error_add_up_to_the_exact_sum():
    random = np.random.default_rng(5)
    a, b = (encode(random.normal(size=100), CBFLOAT16) for _ in "ab")
    explained = explain(a, b, operand=CBFLOAT16, level=2)
    values = [golden.decode(codes, CBFLOAT16).tolist() for codes in (a, b)]
    assert explained.exact == sum(Fraction(x) * Fraction(y) for x, y in zip(*values, strict=True))
    assert explained.error == -sum(step.lost for step in explained.steps)


def test_counts_swamped_and_inexact_are_those_of_numpy_float16():
    # Values of 11 bits between 1 and 2: float64 holds their products and sums exactly.
    random = np.random.default_rng(3)
    a, b = random.uniform(0.01, 1, (2, 400)).astype(np.float16)
    total, swamped, inexact, largest = np.float16(0), 0, 0, 0.0
    for x, y in zip(a.astype(float), b.astype(float), strict=True):
        exact = x * y + float(total)
        before, total = total, np.float16(exact)
        swamped += before == total
        inexact += float(total) != exact
        largest = max(largest, abs(float(total)))
    one_chunk = Reduction(FP16, None, FP16)
    code, _, counts = reference.dot(
        a.view(np.uint16).tolist(), b.view(np.uint16).tolist(), operand=FP16, reduction=one_chunk, counts=True
    )
    assert code == int(total.view(np.uint16))
    exponent = math.frexp(largest)[1] - 1
    assert counts == Counts(Events(400, inexact, 0, 0, 0, swamped), Events(1, 0, 0, 0, 0, 0), exponent)
    assert 10 < swamped < inexact


@pytest.mark.parametrize(
    ("a", "b", "acc", "swamped", "flags"),
    [
        (0x0000, 0x3F80, 0x4380, 0, Flag(0)),  # 0 * 1 + 256: nothing to lose
        (0x3F80, 0x3F80, 0x4380, 1, Flag.INEXACT),  # 1 + 256
        (0x0001, 0x0001, 0x8000, 1, Flag.INEXACT | Flag.UNDERFLOW),  # a tiny product onto -0 gives +0: the same value
        (0x7F7F, 0x3F80, 0x7F7F, 0, Flag.INEXACT | Flag.OVERFLOW),  # the sum overflows
        (0x3F80, 0x3F80, 0x7F80, 0, Flag(0)),  # 1 + infinity: the accumulator is not finite
        (0x7F80, 0x3F80, 0x3F80, 0, Flag(0)),  # infinity + 1: the addend is not finite
        (0x7F80, 0x0000, 0x3F80, 0, Flag.INVALID),
        (0x3F80, 0x7FC0, 0x3F80, 0, Flag(0)),
    ],
)
def test_counts_of_one_step_follow_the_definition(a, b, acc, swamped, flags):
    after, raised = reference.multiply_accumulate(a, b, acc, operand=BF16, accumulator=BF16)
    step = Step(Kind.PRODUCT, 0, a, b, acc, after, raised, BF16, BF16)
    assert (int(step.is_swamped), raised) == (swamped, flags)
    counts = counted([step, step])
    assert (counts.products.steps, counts.products.swamped, counts.promotions) == (2, 2 * swamped, NOTHING)
    for flag in Flag:
        assert getattr(counts.products, flag.name.lower()) == 2 * (flag in flags)


def test_counts_add_up_and_sum_over_arrays():
    array = Events(*(np.array([1, 2]) for _ in range(6)))
    assert array.sum() == Events(3, 3, 3, 3, 3, 3)
    assert Counts(array, array).sum() + Counts(NOTHING, array.sum()) == Counts(array.sum(), (array + array).sum())
    assert array.sum() + Events(1, 2, 3, 4, 5, 6) == Events(4, 5, 6, 7, 8, 9)
    assert (array + array).sum() == Events(6, 6, 6, 6, 6, 6)
    exponents = Counts(array, array, np.array([-3, 5])) + Counts(array, array, np.array([7, -9]))
    assert exponents.largest_exponent.tolist() == [7, 5]
    assert (exponents.sum() + Counts(NOTHING, NOTHING, 11)).largest_exponent == 11
    assert (Counts(NOTHING, NOTHING) + Counts(NOTHING, NOTHING)).largest_exponent == NO_EXPONENT < -10_000


@pytest.mark.parametrize(
    ("codes", "exponent"),
    [
        ([0x3F80, 0x3F80], 1),  # 1, then 2
        ([0x4080, 0xC080], 2),  # 4, then 0
        ([0x0000, 0x8000], NO_EXPONENT),  # zeros only
        ([0x7F80, 0x7FC0], NO_EXPONENT),  # infinity, then NaN
        ([0x3F00, 0x7F80], -1),  # 0.5, then infinity
        ([0x0001], -133),  # the smallest subnormal
        ([], NO_EXPONENT),
    ],
)
def test_largest_exponent_is_that_of_the_largest_finite_value_left(codes, exponent):
    ones = [0x3F80] * len(codes)
    *_, counts = reference.dot(codes, ones, operand=BF16, level=2, counts=True)
    assert counts.largest_exponent == exponent


def test_explain_long_sum_shows_first_and_last_steps():
    explained = explain(*grown(), operand=BF16, level=2, chunk=None)
    lines = explained.text(rows=4).splitlines()
    assert lines[0] == "301 products in bfloat16: one chunk in bfloat16, the total in bfloat16"
    assert [line.split("  ")[0] for line in lines[3:8]] == [
        "product 0", "product 1", "... 298 steps ...", "product 300", "promotion 0",
    ]  # fmt: skip
    assert lines[-4:] == [
        "result   0x4380 = 256 in bfloat16",
        "exactly  556",
        "error    -300 (-75 ulp, 5.4e-01 relative)",
        "swamped  300 of 301 products, 0 of 1 promotions",
    ]
    assert len(explained.text(rows=None).splitlines()) == 302 + 8


def test_alternatives_of_a_swamped_sum_name_the_remedies():
    found = {way.name: way for way in explain(*grown(), operand=BF16, level=2, chunk=None).alternatives()}
    assert {name: int(way.error) for name, way in found.items()} == {
        "as given": -300, "level 0": 0, "level 1": -300, "level 2": -300,
        "chunks of 8": -8, "chunks of 32": -32, "chunks of 128": -128,
        "in reverse": -44, "smallest first": -44, "largest first": -300, "compensated": 0,
    }  # fmt: skip
    assert str(explain(*grown(), operand=BF16, level=2).alternatives()).splitlines()[1].startswith("as given")


def test_alternatives_say_how_many_steps_each_takes():
    explained = explain(*grown(), operand=BF16, level=2)
    assert {way.name: way.steps for way in explained.alternatives()} == {
        "as given": 311, "level 0": 301, "level 1": 311, "level 2": 311,
        "chunks of 8": 339, "chunks of 32": 311, "chunks of 128": 304,
        "in reverse": 311, "smallest first": 311, "largest first": 311, "compensated": 4 * 301,
    }  # fmt: skip


@pytest.mark.parametrize("count", [0, 3])
def test_alternatives_from_an_initial_value_keep_its_format(count):
    ones = [BF16.one] * count
    ways = explain(ones, ones, operand=BF16, initial=FP32.one).alternatives()
    assert [way.name for way in ways] == [
        "as given", "level 0", "level 1", "chunks of 8", "chunks of 32", "chunks of 128", "in reverse",
        "smallest first", "largest first",
    ]  # fmt: skip
    assert {(way.fmt, golden.decode(way.code, way.fmt).item()) for way in ways} == {(FP32, 1.0 + count)}


def test_explanation_picture_has_the_title_and_the_lost_products(tmp_path):
    pytest.importorskip("matplotlib")
    explain(*grown(), operand=BF16, level=2, chunk=None).plot(tmp_path / "sum.svg")
    drawn = (tmp_path / "sum.svg").read_text(encoding="utf-8")
    assert "301 products in bfloat16: one chunk" in drawn
    assert "product, swamped (300)" in drawn
    assert "magnitude" in drawn
    assert "error so far" in drawn
    with pytest.raises(ValueError, match="nothing to draw"):
        explain([], [], operand=BF16).plot(tmp_path / "none.svg")


def test_explanation_picture_tells_kept_products_from_swamped_ones(tmp_path, monkeypatch):
    figure = drawn(explain(*grown(), operand=BF16, level=2, chunk=None), tmp_path / "sum.svg", monkeypatch)
    assert tuple(figure.get_size_inches()) == (8, 5.5)
    above, below = figure.axes
    total, half_ulp, kept, swamped = above.lines
    assert list(total.get_xdata()) == list(range(301))
    assert list(total.get_ydata()) == [256.0] * 301
    assert (list(half_ulp.get_ydata())[1:], list(kept.get_xdata())) == ([1.0] * 300, [0])
    assert list(swamped.get_xdata()) == list(range(1, 301))
    assert [line.get_color() for line in above.lines] == ["#333333", "#333333", "#2c7fb8", "#c0392b"]
    legend = above.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "accumulator", "half an ulp of it", "product", "product, swamped (300)",
    ]  # fmt: skip
    assert (legend._ncols, legend.get_frame_on()) == (4, False)
    for axes in figure.axes:
        assert all(line.get_visible() and line.get_alpha() == 0.3 for line in axes.get_xgridlines())
    assert (above.get_yscale(), above.get_ylabel()) == ("log", "magnitude")
    assert (below.get_xlabel(), below.get_ylabel()) == ("product, 0 to 300", "error so far")
    assert list(below.lines[1].get_ydata()) == [0, 0]


def test_explanation_picture_draws_the_error_so_far(tmp_path, monkeypatch):
    terms = encode([256.0, 1.0, -256.0, 3.0], BF16)
    explained = explain(terms, [BF16.one] * 4, operand=BF16, level=2, chunk=2)
    above, below = drawn(explained, tmp_path / "sum.svg", monkeypatch).axes
    # Product 1 is lost beside 256; the promotions of 256 and -253 are exact.
    assert list(above.lines[0].get_ydata()) == [256.0, 256.0, 256.0, 253.0]
    assert list(below.lines[0].get_xdata()) == [0, 1, 1, 2, 3, 3]
    assert list(below.lines[0].get_ydata()) == [0.0, -1.0, -1.0, -1.0, -1.0, -1.0]


def test_explanation_picture_of_a_sum_of_zero_does_not_draw_another(tmp_path, monkeypatch):
    explained = explain(encode([2.0, -2.0, 4.0], BF16), [BF16.one] * 3, operand=BF16)
    above, _ = drawn(explained, tmp_path / "sum.svg", monkeypatch).axes
    assert list(above.lines[0].get_ydata()) == [2.0, 0.0, 4.0]


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_explanation_picture_is_of_the_kind_that_its_suffix_says(tmp_path, suffix, start):
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"sum{suffix}"
    explain(*grown(3), operand=BF16).plot(picture)
    assert picture.read_bytes().startswith(start)
    assert b"<dc:date>" not in picture.read_bytes()


def test_explanation_table_shows_values_or_codes_and_which_products_are_swamped():
    explained = explain(*grown(1), operand=BF16, level=2)
    assert [line.split() for line in explained.table().splitlines()[1:]] == [
        ["product", "0", "256", "1", "256", "0", "256", "256", "0"],
        ["product", "1", "1", "1", "1", "256", "257", "256", "0.5", "swamped"],
        ["promotion", "0", "256", "1", "256", "0", "256", "256", "0"],
    ]
    assert [line.split() for line in explained.table(codes=True).splitlines()[1:]] == [
        ["product", "0", "0x4380", "0x3f80", "256", "0x0000", "256", "0x4380", "0"],
        ["product", "1", "0x3f80", "0x3f80", "1", "0x4380", "257", "0x4380", "0.5", "swamped"],
        ["promotion", "0", "0x4380", "0x3f80", "256", "0x0000", "256", "0x4380", "0"],
    ]


def test_explanation_says_no_relative_error_of_an_exact_sum_or_of_a_sum_of_zero():
    exact = explain([BF16.one], [BF16.one], operand=BF16).text().splitlines()
    assert "error    0 (0 ulp)" in exact
    lost = explain(encode([256.0, 1.0, -256.0, -1.0], BF16), [BF16.one] * 4, operand=BF16, level=2).text()
    assert "\nexactly  0\nerror    -1 (-1.089e+40 ulp)\n" in lost


def test_explanation_of_one_product_has_two_rows_and_no_step_that_is_swamped():
    lines = explain([BF16.one], [BF16.one], operand=BF16).text(rows=2).splitlines()
    assert [line.split("  ")[0] for line in lines[3:5]] == ["product 0", "promotion 0"]
    assert not any("swamped" in line for line in lines[3:5])
    assert "exactly  1" in lines


def test_explanation_of_an_infinite_sum_has_no_exact_value():
    lines = explain([BF16.inf], [BF16.one], operand=BF16).text().splitlines()
    assert not [line for line in lines if line.startswith(("exactly", "error"))]
    assert lines[-2] == "result   0x7f800000 = inf in float32"


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"a": [1, 2]}, ValueError, "a, b: got 2 and 1 codes"),
        ({"a": np.ones((2, 2), np.uint16)}, ValueError, r"a: got an array of shape \(2, 2\)"),
        ({"a": 3}, TypeError, "a: got 3, must be a list or tuple"),
        ({"a": [1 << 16]}, ValueError, "a: got 0x10000"),
        ({"operand": "half"}, ValueError, "operand"),
        ({"index": -1}, ValueError, r"index: got -1, must be 0 to 2\*\*64 - 1"),
        ({"index": 2**64}, ValueError, f"index: got {2**64}, must be 0"),
        ({"index": 1.5}, TypeError, "index: got 1.5"),
        ({"rounding": "away"}, ValueError, "rounding: got 'away'"),
    ],
)
def test_explain_bad_argument_is_named(changed, error, words):
    given = {"a": [0x3F80], "b": [0x3F80], "operand": "bfloat16"} | changed
    with pytest.raises(error, match=words):
        explain(given.pop("a"), given.pop("b"), **given)


@pytest.mark.parametrize(("rows", "error"), [(1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_explanation_text_bad_number_of_rows_is_named(rows, error):
    with pytest.raises(error, match="rows: got"):
        explain([1], [1], operand=FP16).text(rows)


def test_explain_command_shows_steps_alternatives_and_a_picture(capsys, tmp_path):
    arguments = ["explain", "256,1x2,-0.5", "--operand", "bfloat16", "--level", "2", "--alternatives"]
    assert main([*arguments, "--picture", str(tmp_path / "sum.svg")]) == 0
    said = capsys.readouterr().out
    explained = explain(encode([256.0, 1.0, 1.0, -0.5], BF16), encode(np.ones(4), BF16), operand=BF16, level=2)
    line = "operand=bfloat16 inner=bfloat16 chunk=32 outer=bfloat16"
    assert said == f"{explained}\nreduction {line}\n\n{explained.alternatives()}\n"
    assert main(["explain", "256,1x2,-0.5", "--reduction", line, "--alternatives"]) == 0
    assert capsys.readouterr().out == said
    assert (tmp_path / "sum.svg").stat().st_size > 1000


def test_explain_command_shows_24_steps_unless_asked_for_others(capsys):
    assert main(["explain", "1x40", "--operand", "bfloat16"]) == 0
    said = capsys.readouterr().out
    ones = encode(np.ones(40), BF16)
    explained = explain(ones, ones, operand=BF16)
    assert said == f"{explained.text(rows=24)}\nreduction {explained.reduction}\n"
    assert explained.text(rows=24) != explained.text(rows=25)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["inner=bfloat16 chunk=0"], "argument --reduction: chunk: got 0, must be at least 1"),
        (["inner=bloat16"], "argument --reduction: got inner=bloat16"),
        (["operand=bfloat16 accumulator=nvidia_volta"], "other machines do not go step by step"),
        (["operand=bfloat16 inner=bfloat16", "--level", "1"], "must come without --level and --chunk"),
        (["inner=bfloat16 outer=float32"], "required: --operand, or a --reduction with operand="),
        (["operand=bfloat16", "--operand", "float16"], "operand: got float16, must be bfloat16"),
    ],
)
def test_explain_command_with_a_wrong_line_says_what_is_wrong(capsys, given, message):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", "1,2", "--reduction", *given])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_explain_command_takes_modes_from_the_line_and_in_its_place(capsys):
    arguments = ["explain", "256,1x2", "--operand", "bfloat16", "--reduction"]
    for more, mode in (([], "up"), (["--rounding", "down"], "down")):
        assert main([*arguments, "inner=bfloat16 chunk=none outer=bfloat16 rounding=up", *more]) == 0
        said = capsys.readouterr().out
        assert said.endswith(f"reduction operand=bfloat16 inner=bfloat16 chunk=none outer=bfloat16 rounding={mode}\n")


def test_explain_command_without_a_format_asks_for_it(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", "1,2"])
    assert stopped.value.code == 2
    assert "the following arguments are required: --operand" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--rows", "0"], ["--picture", "sum.bmp"], ["--picture", "/nowhere/sum.svg"]], ids="/".join
)
def test_explain_command_is_refused_ahead_of_the_work(capsys, monkeypatch, wrong):
    for work in ("_codes", "explain"):
        monkeypatch.setattr(f"golden.cli.{work}", lambda *_, **__: pytest.fail("a million factors were rounded"))
    with pytest.raises(SystemExit) as stopped:
        main(["explain", "1x1000000", "--operand", "bfloat16", *wrong])
    assert stopped.value.code == 2
    assert wrong[0].lstrip("-") in capsys.readouterr().err


def test_explain_command_with_a_picture_on_a_full_disk_leaves_what_was_there(capsys, tmp_path):
    picture = tmp_path / "sum.svg"
    for before in ([], [picture]):
        for path in before:
            path.write_text("what was there")
        with pytest.raises(SystemExit) as stopped, full_disk():
            main(["explain", "1,2", "--operand", "bfloat16", "--picture", str(picture)])
        assert stopped.value.code == 2
        assert f"argument --picture: cannot write {picture}: File too large" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == before
    assert picture.read_text() == "what was there"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1,2", "1"], "got 2 factors and then 1, must be equally many, or the first alone"),
        (["1x0"], "must have a number from 1 to"),
        (["1x"], "got '1x', must have a number from 1 to"),
        (["1.5,x"], "argument VALUES: got 'x', must be a decimal value"),
        (["0x10000"], "argument a: got code 0x10000, must be 0x0 to 0xffff for bfloat16"),
        (["1", "--chunk", "-1"], "argument --chunk: got -1, must be 1 or more, or 0"),
        (["1", "--picture", "sum.bmp"], "argument --picture: got 'sum.bmp', must end in .svg, .png or .pdf"),
        (["1", "--rows", "1"], "rows: got 1"),
        (["1", "--picture", "/nowhere/sum.svg"], "argument --picture: cannot write /nowhere/sum.svg"),
    ],
)
def test_explain_command_bad_argument_is_named(capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", *arguments, "--operand", "bfloat16"])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_explain_without_products_is_the_initial_value():
    explained = explain([], [], operand=CBFLOAT16, initial=0x3F800000)
    assert (explained.code, explained.flags, explained.exact, explained.error) == (0x3F800000, Flag(0), 1, 0)
    assert explain([0x7F80], [0], operand=BF16).exact is None
    assert explained.reduction.outer == FP32
