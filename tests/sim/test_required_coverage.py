"""Required coverage of the regression's stimulus, written out: bins taken from the stimulus would shrink with it."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP32, FloatFormat, decode, encode
from golden.arrays.checks import code_dtype
from hdl.catalogue import Kind
from sim.run.simulate import prepare
from sim.scenario import Scenario
from sim.stimulus.converter import required_bins
from sim.stimulus.coverage import classes, rounding_cases
from sim.stimulus.long_chunks import _wrong_lengths
from sim.stimulus.mac import MacMaker
from sim.stimulus.mac_coverage import chunk_lengths
from sim.stimulus.matrix import MatrixMaker
from sim.stimulus.operands import with_exponents
from sim.stimulus.patterns import PATTERNS
from sim.stimulus.vector import VectorMaker
from sim.units import UNITS, port_of

CLASSES = ("zero", "subnormal", "normal", "infinity", "nan", "signalling")
EIGHTHS = (1, 2, 3, 4, 5, 8)
RESETS = {f"reset/{state}" for state in ("in_operation", "payload_refused", "answer_waits", "answers_on_their_way")}


def maker_of(name: str) -> MacMaker:
    component = UNITS[name].build()
    kind = VectorMaker if UNITS[name].kind is Kind.VECTOR else MacMaker
    return kind(component, port_of(UNITS[name], component), 1, name, UNITS[name].effort)


@cache
def required_of(name: str) -> frozenset[str]:
    return frozenset(maker_of(name).required())


def steps(level: int) -> set[str]:
    """The bins of single steps in cbfloat16: into fp32 none overflows or underflows."""
    names = {f"operands/{a}/{b}" for a, b in product(CLASSES, CLASSES)}
    names |= {f"{what}/{kind}" for what in ("result", "accumulator") for kind in ("zero", "normal", "infinity", "nan")}
    names |= {f"rounding/{case}" for case in ("exact", "below_half", "tie", "above_half", "not_finite")}
    names |= {f"event/{each}" for each in ("infinity_minus_infinity", "infinity_times_zero", "cancels_to_zero")}
    names |= {"flag/INEXACT", "flag/INVALID"}
    if level:
        names |= {"result/subnormal", "accumulator/subnormal", "flag/UNDERFLOW", "flag/OVERFLOW", "rounding/overflow"}
    return {f"cbfloat16/level_{level}/{name}" for name in names}


def edges(level: int, chunk: int) -> set[str]:
    lengths = {"empty", "one", "chunk", "above_chunk", "two_chunks", "three_chunks_and_one"}
    lengths |= {"below_chunk"} if chunk > 1 else set()
    if not chunk:
        lengths = {"empty", "one", "two", "default_chunk", "above_default_chunk", "many"}
    return {f"cbfloat16/level_{level}/chunk_{chunk}/{length}" for length in lengths}


def directed(level: int) -> set[str]:
    names = {f"promotion/{name}" for name in ("quiet_nan", "only_it_raises_INEXACT", "only_it_raises_INVALID")}
    names |= {"promotion/only_it_raises_OVERFLOW"} if level == 2 else set()
    names |= {f"tininess/{side}_{at}_eighths_below_normal" for side in ("less", "exactly", "more") for at in EIGHTHS}
    for larger in ("product", "accumulator"):
        names |= {f"tininess/of_larger_{larger}_above_{at}_quarters" for at in range(4)}
        names |= {f"tininess/of_larger_{larger}_exactly_{at}_quarters" for at in range(1, 4)}
    names |= {f"near_limit/{field}" for field in range(1, 20)}
    return {f"cbfloat16/level_{level}/{name}" for name in names}


def distances(latest: int) -> set[str]:
    pairs = {f"level_{before}_then_{after}_starts" for before, after in product(range(3), range(3))}
    pairs |= {f"level_{level}_then_{level}_continues" for level in range(3)}
    pairs |= {f"level_{level}_then_{level}_within_chunk" for level in (1, 2)}
    pairs |= {f"level_{before}_then_{after}_crosses" for before, after in ((0, 2), (2, 0), (1, 2), (2, 1))}
    return {f"distance/{pair}/{cycles}" for pair in pairs for cycles in range(latest + 1)}


def test_steps_of_every_level_must_meet_every_class_flag_and_way_to_round() -> None:
    for level in range(3):
        assert required_of("mac_cbfloat16") >= steps(level)


def test_chunks_of_the_default_length_and_of_none_must_meet_their_edges_at_every_level() -> None:
    for unit in ("mac_cbfloat16", "mac_stages_3", "vector_mac_no_flags"):
        for level, chunk in product(range(3), (0, 1, 2, 3, 32)):
            names = edges(level, chunk)
            names = names if "vector" not in unit else {name.replace("cbfloat16", "bfloat16") for name in names}
            operand = maker_of(unit).operands[0].name
            assert required_of(unit) >= {f"{operand}/{name.partition('/')[2]}" for name in names}


def test_products_at_the_edges_of_a_chunk_are_as_many_as_their_names_say() -> None:
    around = {"empty": 0, "one": 1, "below_chunk": 31, "chunk": 32, "above_chunk": 33}
    assert chunk_lengths(32) == around | {"two_chunks": 64, "three_chunks_and_one": 97}
    assert chunk_lengths(1) == {"empty": 0, "one": 1, "chunk": 1, "above_chunk": 2, "two_chunks": 2} | {
        "three_chunks_and_one": 4
    }
    none = {"empty": 0, "one": 1, "two": 2, "default_chunk": 32, "above_default_chunk": 33, "many": 70}
    assert chunk_lengths(0) == none


def test_directed_reductions_must_meet_tininess_promotions_and_limits_at_both_levels_of_chunks() -> None:
    for level in (1, 2):
        assert required_of("mac_cbfloat16") >= directed(level)


def test_sums_in_fp32_must_cancel_at_every_exponent_that_leaves_fewer_places_than_digits() -> None:
    # Products of bfloat16 alone are as small as the smallest numbers of fp32.
    wanted = {f"bfloat16/level_0/near_limit/{field}" for field in range(1, 25)}
    assert required_of("mac_bfloat16") >= wanted | {
        f"bfloat16/level_0/tininess/{side}_{at}_eighths_below_normal"
        for side in ("less", "exactly", "more") for at in EIGHTHS
    }  # fmt: skip


@pytest.mark.parametrize("fmt", [CBFLOAT16, BF16, FP32], ids=str)
def test_codes_of_given_exponents_have_them_below_the_normal_numbers_too(fmt: FloatFormat) -> None:
    lowest = fmt.emin - fmt.fraction_bits
    exponents = np.repeat(np.arange(lowest, fmt.emin + 4), 200)
    codes = with_exponents(fmt, exponents, np.random.default_rng(1)).astype(code_dtype(fmt))
    _, above = np.frexp(decode(codes, fmt).astype(np.float64))
    assert (above - 1).tolist() == exponents.tolist()
    assert (classes(codes, fmt)[exponents < fmt.emin] == "subnormal").all()


@pytest.mark.parametrize("unit", ["mac_stages_1", "mac_stages_9", "mac_cbfloat16"])
def test_products_must_follow_each_other_after_every_number_of_cycles_that_one_takes(unit: str) -> None:
    mac = maker_of(unit).mac
    assert required_of(unit) >= distances(mac.latency)


def test_long_chunks_must_be_told_from_their_neighbours_up_to_the_largest() -> None:
    lengths = {1, 2, 3, 31, 32, 33, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 32767, 32768, 32769, 65535}
    wanted = {f"long_chunk/level_{level}/{length}" for level in (1, 2) for length in (*lengths, "unlimited")}
    assert required_of("mac_cbfloat16") >= wanted
    short = {f"long_chunk/level_{level}/{length}" for level in (1, 2) for length in (31, 32, 33, 255, 256, 257)}
    assert required_of("vector_mac_no_flags") >= short | {
        "long_chunk/level_1/unlimited",
        "long_chunk/level_2/unlimited",
    }


@pytest.mark.parametrize(
    ("chunk", "end", "wrong"),
    [
        (1, 1, [2]),
        (32, 32, [31, 33, 37]),
        (33, 33, [1, 32, 34]),
        (65535, 65535, [*((1 << bit) - 1 for bit in range(1, 16)), 65534, 65536]),
        (0, 65536, [32768, 65535, 65536]),
    ],
)
def test_long_chunk_is_told_from_one_more_one_less_and_one_without_its_upper_bits(
    chunk: int, end: int, wrong: list[int]
) -> None:
    assert _wrong_lengths(chunk, end).tolist() == wrong


def test_neighbours_must_meet_every_exponent_that_limits_a_shift() -> None:
    head = "neighbours/cbfloat16/level_2"
    names = {f"{head}/cancels", *(f"{head}/cancels_beyond_exponent/{field}" for field in range(1, 20))}
    names |= {f"{head}/carries_from_exponent/{field}" for field in (30, 62)}
    names |= {f"{head}/cancels_after_exponent/{field}" for field in range(1, 26)}
    for larger, first in (("product", 1), ("accumulator", 2)):
        below = {f"{field}/{at}_eighths" for field in range(first, 8) for at in range(1, 5)}
        names |= {f"{head}/larger_{larger}/exponent_{each}_below_normal" for each in below}
    assert required_of("mac_cbfloat16") >= names


def test_control_must_meet_resets_registers_that_keep_and_the_port_for_chunks() -> None:
    names = RESETS | {"reset/nothing_due", "reset/registers_kept", "reset/held_payload_with_answer"}
    assert required_of("mac_cbfloat16") >= names | {
        "chunk_port/between_reductions", "chunk_port/during_a_reduction_of_level_0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "names"),
    [
        (
            "float32_to_cbfloat16",
            {"normal/normal/tie", "normal/normal/below_half", "normal/normal/above_half", "normal/infinity/overflow"}
            | {f"normal/subnormal/{case}" for case in ("exact", "below_half", "tie", "above_half")}
            | {"normal/zero/below_half", "flag/INEXACT", "flag/OVERFLOW", "flag/UNDERFLOW"},
        ),
        ("float16_to_float32", {"subnormal/normal/exact"}),
        (
            "bfloat16_to_float16",
            {"normal/infinity/overflow", "normal/zero/below_half", "flag/OVERFLOW", "flag/UNDERFLOW"}
            | {f"normal/subnormal/{case}" for case in ("exact", "below_half", "tie", "above_half")},
        ),
        ("float16_to_bfloat16", {"normal/normal/tie", "normal/normal/below_half", "normal/normal/above_half"}),
    ],
)
def test_conversions_must_meet_every_class_and_way_to_round(name: str, names: set[str]) -> None:
    component = UNITS[name].build()
    always = {"zero/zero/exact", "normal/normal/exact", "infinity/infinity/not_finite", "nan/nan/not_finite"}
    always |= {"signalling/nan/not_finite", "flag/INVALID"} | RESETS
    assert required_bins(component.source, component.destination, component.latency + 1) >= always | names


def scenarios_of(name: str, effort: float, seed: int = 1) -> list[Scenario]:
    made: list[Scenario] = prepare.__wrapped__(UNITS[name], seed, effort)[0]
    return made


@pytest.mark.turns
@pytest.mark.parametrize(
    "name",
    ["float16_to_float32", "float32_to_float8_e4m3fn_any_rounding", "mx_quantize_float8_e4m3fn", "mac_level_2",
     "mac_counters", "mac_axi_stream", "vector_mac_no_flags"],
)  # fmt: skip
def test_streams_pause_at_either_side_as_their_names_say(name: str) -> None:
    made = {scenario.name: scenario for scenario in scenarios_of(name, 0.01)}
    for idle, backpressure in product(PATTERNS, PATTERNS):
        scenario = made[f"stream_idle_{idle}_backpressure_{backpressure}"]
        for values, pattern in ((scenario.offers, idle), (scenario.takes, backpressure)):
            assert values.any()
            assert values.all() == (pattern == "none"), (idle, backpressure)


@pytest.mark.parametrize("name", ["mac_any_rounding", "vector_mac_any_rounding"])
def test_mixed_reductions_in_every_mode_pause_at_both_sides(name: str) -> None:
    mixed = [scenario for scenario in scenarios_of(name, 0.01) if scenario.name.startswith("mixed_")]
    assert len(mixed) == 4
    for values in (each for scenario in mixed for each in (scenario.offers, scenario.takes)):
        assert values.any()
        assert not values.all()


@pytest.mark.turns
@pytest.mark.parametrize("name", ["mac_level_2", "mac_stages_9", "vector_mac_no_flags"])
def test_full_queue_is_left_alone_for_longer_than_it_takes_to_fill_it(name: str) -> None:
    takes = next(each for each in scenarios_of(name, 0.01) if each.name == "full_queue").takes
    waits = "".join("01"[take] for take in takes.astype(int)).split("1")
    assert max(map(len, waits)) > 2 * maker_of(name).mac.parameters.results


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["float32_to_cbfloat16", "float8_e4m3fn_to_float8_e4m3fnuz", "mx_quantize_float8_e4m3fn", "mac_level_2",
     "mac_counters", "vector_mac_any_rounding"],
)  # fmt: skip
def test_seed_of_the_command_line_reaches_every_scenario_but_those_without_chance(name: str) -> None:
    one, other = (
        {scenario.name: scenario.payloads.tolist() for scenario in scenarios_of(name, 0.01, seed)} for seed in (5, 6)
    )
    assert one.keys() == other.keys()
    same = {scenario for scenario in one if one[scenario] == other[scenario]}
    assert same <= {"neighbours", "watched_over_resets", "counted_events", "lanes_apart"}


def signed(codes: Any, fmt: Any) -> set[tuple[bool, str]]:
    given = np.asarray(codes).astype(np.uint64)
    minus = given & np.uint64(fmt.sign_mask) != 0
    return set(zip(minus.tolist(), classes(given, fmt).tolist(), strict=True))


@pytest.mark.parametrize("name", ["float32_to_cbfloat16", "float32_to_cbfloat16_stages_3", "bfloat16_to_float16"])
def test_conversions_are_given_and_must_give_both_signs_of_everything(name: str) -> None:
    component = UNITS[name].build()
    source, destination, port = component.source, component.destination, port_of(UNITS[name], component)
    for scenario in scenarios_of(name, UNITS[name].effort)[:2]:
        assert scenario.name in ("boundary_codes", "all_codes", "sampled_codes")
        assert signed(scenario.payloads, source) >= set(product((False, True), CLASSES))
        bits, flags = (port.answer.get(scenario.answers, key) for key in ("bits", "flags"))
        assert signed(bits, destination) >= set(product((False, True), CLASSES[:4])) | {(False, "nan")}
        minus = bits & np.uint64(destination.sign_mask) != 0
        assert 0.3 < minus.mean() < 0.7
        for flag in (1, 2, 4):
            raised = flags & np.uint64(flag) != 0
            assert (raised & minus).any()
            assert (raised & ~minus).any()


def test_steps_of_a_unit_are_given_both_signs_of_everything() -> None:
    (whole,) = (each for each in scenarios_of("mac_level_2", 0.5) if each.name == "steps")
    fmt = maker_of("mac_level_2").operands[0]
    every = set(product((False, True), CLASSES))
    assert signed(whole.details["a"], fmt) >= every
    assert signed(whole.details["b"], fmt) >= every


def test_ties_go_to_the_even_number_below_and_above_for_both_signs() -> None:
    component = UNITS["float32_to_cbfloat16"].build()
    port = port_of(UNITS["float32_to_cbfloat16"], component)
    whole = scenarios_of("float32_to_cbfloat16", 1.0)[0]
    codes, bits = whole.payloads.astype(np.uint32), port.answer.get(whole.answers, "bits")
    # In the binades of normal numbers 14 bits of the fraction are lost: the lowest of them alone set is a tie.
    is_tie = (codes & 0x3FFF == 0x2000) & (np.abs(codes.view(np.float32)) < 2.0**31)
    is_tie &= np.abs(codes.view(np.float32)) >= 2.0**CBFLOAT16.emin
    rounded = decode(bits.astype(np.uint16), CBFLOAT16)
    up = np.abs(rounded) > np.abs(codes.view(np.float32))
    for goes_up, minus in product((False, True), (False, True)):
        assert (is_tie & (up == goes_up) & ((codes >> 31 == 1) == minus)).any()


@pytest.mark.parametrize(
    ("high", "low", "case"),
    [
        (1.0, 0.0, "exact"),
        (1.0 + 2.0**-10, 0.0, "tie"),
        (-1.0 - 2.0**-10, 0.0, "tie"),
        (1.0 + 2.0**-10, 2.0**-60, "above_half"),
        (1.0 + 2.0**-10, -(2.0**-60), "below_half"),
        (-1.0 - 2.0**-10, -(2.0**-60), "above_half"),
        (1.0, 2.0**-60, "below_half"),
        (1.0, -(2.0**-60), "above_half"),
        (2.0**-40, 0.0, "tie"),
        (1e30, 0.0, "overflow"),
        (np.inf, 0.0, "not_finite"),
    ],
)
def test_rounding_cases_of_one_value(high: float, low: float, case: str) -> None:
    result = np.array([encode(high, CBFLOAT16)])
    assert rounding_cases(np.array([high]), np.array([low]), result, CBFLOAT16).tolist() == [case]


def test_classes_of_specials() -> None:
    codes = np.array([0x8000, 0x0001, 0x3E00, 0xFE00, 0x7F00, 0x7E01], np.uint64)
    expected = ["zero", "subnormal", "normal", "infinity", "nan", "signalling"]
    assert classes(codes, CBFLOAT16).tolist() == expected


@pytest.mark.parametrize("seed", [1, 2, 2568593255])
def test_initial_values_of_an_array_are_of_every_kind_with_every_seed(seed: int) -> None:
    # Seed 2568593255 left float16/level_0/initial/-0 empty, which failed the regression.
    unit = UNITS["matrix_mac_initial"]
    component = unit.build()
    maker = MatrixMaker(component, port_of(unit, component), seed, unit.name, unit.effort)
    maker.make("initial_random", maker.initial_values, "random")
    kinds = ("+0", "-0", "subnormal", "normal", "infinity", "nan", "signalling")
    wanted = {
        f"{fmt}/level_{level}/initial/{kind}"
        for fmt in unit.arguments["operands"]
        for level in (0, 1, 2)
        for kind in kinds
    }
    assert wanted - {name for name, count in maker.bins.items() if count} == set()
