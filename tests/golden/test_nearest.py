"""Unknown names: the message has the nearest known one; tables: it has the entries that they must have."""

import numpy as np
import pytest

import golden
from golden.nearest import complete, did_you_mean


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("cbfloat61", "; did you mean cbfloat16?"),
        ("CBFLOAT16", "; did you mean cbfloat16?"),
        ("float8_e4m3", "; did you mean float8_e4m3fn?"),
        ("posit", ""),
        ("", ""),
    ],
)
def test_nearest_name_is_offered_where_one_is_near(given, said):
    assert did_you_mean(given, [each.name for each in golden.FORMATS]) == said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: golden.format_named("float8_e4m3"), r"name: got 'float8_e4m3', .*; did you mean float8_e4m3fn\?$"),
        (lambda: golden.encode(1.0, "bf61"), r"fmt: got 'bf61', .*; did you mean bf16\?$"),
        (lambda: golden.encode(1.0, "fp16", rounding="nearest_evn"), r"rounding: .*; did you mean nearest_even\?$"),
    ],
)
def test_unknown_name_of_a_format_or_mode_is_answered_with_the_nearest(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_accumulators_unknown_name_lists_all_and_offers_the_nearest():
    with pytest.raises(KeyError, match=r"golden.accumulators: got 'nvidia_hoper', .* deepseek_fp8; did you mean nvi"):
        golden.accumulators["nvidia_hoper"]
    assert golden.accumulators.get("nvidia_hoper") is None
    assert "nvidia_hoper" not in golden.accumulators


def test_softmax_of_a_scalar_asks_for_an_axis():
    with pytest.raises(ValueError, match="codes: got a scalar, must have at least one axis"):
        golden.softmax(golden.encode(1.0, "cbfloat16"), "cbfloat16")


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (np.float32([1]), r"\(uint16\); golden.encode turns values into codes$"),
        (np.int64([1]), r"\(uint16\); astype\(np.uint16\) makes codes of signed bits$"),
        (np.array([None]), r"got an array of object, must be unsigned codes of float16 \(uint16\)$"),
    ],
)
def test_codes_of_a_wrong_dtype_are_told_the_remedy_of_that_dtype(codes, said):
    with pytest.raises(TypeError, match=said):
        golden.decode(codes, "float16")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.uint16([1]), "values; golden.decode turns codes into values, astype"),
        ("1.5", "got an array of <U3, must be float16, float32 or float64 values$"),
    ],
)
def test_values_of_a_wrong_dtype_are_told_to_decode_only_if_they_are_codes(values, said):
    with pytest.raises(TypeError, match=said):
        golden.encode(values, "float16")


def test_table_of_every_point_is_returned_in_any_order():
    table = {"b": 1, "a": 2}
    assert complete("table", table, ("a", "b")) is table


@pytest.mark.parametrize("table", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, ["a", "b", "b"]], ids=["fewer", "more", "twice"])
def test_table_with_other_points_raises_naming_it_and_all_points(table):
    said = f"table: got entries for {', '.join(table)}; must have one for each of a, b"
    with pytest.raises(ValueError, match=f"^{said}$"):
        complete("table", table, ("a", "b"))
