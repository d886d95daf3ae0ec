"""One seed, one stimulus; the expectations cover every required bin."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from golden import LEVELS, FloatFormat, dot, format_named
from golden.formats import WIDE_FORMATS
from hdl.catalogue import Kind
from sim.fields import Fields
from sim.kinds import bench_of
from sim.scenario import Scenario
from sim.stimulus.converter_modes import mode_scenarios, required_mode_bins
from sim.stimulus.mac_coverage import accumulator_of, count_steps, required_steps
from sim.stimulus.maker import generator_for
from sim.stimulus.makers import reduction_scenarios
from sim.stimulus.operands import one_of_each_class
from sim.stimulus.patterns import PATTERNS, pattern
from sim.stimulus.resets import stalled_and_cut_off
from sim.stimulus.step_operands import Steps, directed_steps
from sim.units import UNITS, core_of, port_of


def scenarios_of(name: str, seed: int) -> list[Scenario]:
    unit = UNITS[name]
    component = unit.build()
    return bench_of(unit.kind).prepare(component, port_of(unit, component), seed, name, 0.1)[0]


def contents(scenarios: list[Scenario]) -> list[bytes]:
    keys = ("payloads", "answers", "offers", "takes", "case")
    return [getattr(scenario, key).tobytes() for scenario in scenarios for key in keys]


@cache
def contents_of_seed_5(name: str) -> list[bytes]:
    return contents(scenarios_of(name, 5))


@pytest.mark.parametrize("name", ["mac_level_2", "float32_to_cbfloat16"])
def test_stimulus_same_seed_is_the_same(name: str) -> None:
    assert contents(scenarios_of(name, 5)) == contents_of_seed_5(name)


@pytest.mark.parametrize("name", ["mac_level_2", "float32_to_cbfloat16"])
def test_stimulus_other_seed_is_another(name: str) -> None:
    assert contents(scenarios_of(name, 6)) != contents_of_seed_5(name)


def test_stimulus_of_mac_expects_answers_in_every_scenario() -> None:
    scenarios = scenarios_of("mac", 1)
    assert all(len(scenario.answers) for scenario in scenarios)
    assert len({scenario.name for scenario in scenarios}) == len(scenarios)


@pytest.mark.parametrize(
    "name", [name for name, unit in UNITS.items() if "rounding" in name and unit.kind is Kind.CONVERTER]
)
def test_converter_stimulus_meets_every_required_bin_with_every_seed(name: str) -> None:
    # Seed 30048999 left float32_to_float8_e4m3fn_any_rounding without an infinity to odd.
    component = UNITS[name].build()
    # The resets are met by the simulation, not by the stimulus.
    required = {found for found in required_mode_bins(component) if not found.startswith("reset/")}
    assert required
    for seed in [*range(12), 30048999]:
        rng = generator_for(seed, name)
        scenarios = mode_scenarios(component, port_of(UNITS[name], component), rng, UNITS[name].effort)
        met = {found for scenario in scenarios for found in scenario.coverage}
        assert required <= met, f"seed {seed}: {required - met}"


@pytest.mark.parametrize("latency", [1, 2, 5])
def test_resets_of_a_unit_that_answers_everything_meet_it_empty_and_full_with_every_seed(latency: int) -> None:
    # Seed 16146515 reset float8_e4m3fn_to_float8_e4m3fnuz only when no answer was on its way.
    for seed in range(20):
        count = 32 * 100
        scenario = Scenario("resets", *(np.zeros(count, np.uint64) for _ in range(2)), np.arange(count))
        scenario.ends = np.arange(count)
        stalled_and_cut_off(scenario, range(0, count, 100), latency, np.random.default_rng(seed))
        soon, full = scenario.episodes[:2, 2].tolist()
        assert scenario.offers[:full].all()
        assert not scenario.takes[:full].any()
        assert (0 < soon <= latency + 1, full > latency + 2) == (True, True)
        assert scenario.episodes[-1, 2] == 0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("operand", WIDE_FORMATS[1:], ids=str)
def test_directed_steps_meet_every_required_bin_without_any_random_number(operand: FloatFormat, level: int) -> None:
    # Seed 1782660615 left bfloat16 at level 2 without an overflow in mac_stages_2, whose stimulus is short.
    a, b = (axis.ravel() for axis in np.meshgrid(one_of_each_class(operand), one_of_each_class(operand)))
    plain = Steps(np.zeros(len(a), np.uint64), np.full(len(a), operand.one, np.uint64), a, b)
    met = count_steps(operand, level, plain) + count_steps(
        operand, level, directed_steps(operand, accumulator_of(level, operand))
    )
    assert required_steps(operand, level) <= set(met)


def test_patterns_pause_and_go_on() -> None:
    for name in PATTERNS:
        values = pattern(name, np.random.default_rng(1))
        assert values.any()
        assert values.all() == (name == "none")


def test_patterns_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'often', must be one of none, random, bursts"):
        pattern("often", np.random.default_rng(1))


def test_fields_pack_and_unpack_are_inverse() -> None:
    fields = Fields({"a": 16, "nothing": 0, "b": 3, "c": 40})
    word = fields.pack(a=0xBEEF, b=5, c=1 << 39)
    assert fields.unpack(word) == {"a": 0xBEEF, "nothing": 0, "b": 5, "c": 1 << 39}


def test_fields_wider_than_a_machine_word_are_as_those_that_are_not() -> None:
    fields = Fields({"a": 16, "wide": 100, "b": 3})
    words = fields.pack(a=np.array([1, 0xBEEF], np.uint64), wide=np.array([1 << 99 | 5, 0], object), b=7)
    assert fields.get(words, "wide").tolist() == [1 << 99 | 5, 0]
    assert fields.get(words, "b").tolist() == [7, 7]
    assert fields.unpack(words[1]) == {"a": 0xBEEF, "wide": 0, "b": 7}


@pytest.mark.parametrize("words", [[3, 1 << 139], [3, 1 << 64], [0, 0], []])
def test_scenario_with_wide_words_is_read_as_it_was_written(tmp_path: Path, words: list[int]) -> None:
    scenario = Scenario("one", np.array(words, object), np.array([1, 2], np.uint64), np.arange(2))
    scenario.save(tmp_path)
    loaded = Scenario.load(tmp_path, "one")
    assert loaded.payloads.tolist() == words
    assert loaded.answers.tolist() == [1, 2]


def test_scenario_in_a_simulator_has_every_pause_chunk_and_episode_that_it_was_made_with(tmp_path: Path) -> None:
    # A simulator does not drive operations that get lost on the way, and nothing there asks for coverage.
    every = {
        "offers": np.array([True, False]), "takes": np.array([False, True, True]), "chunks": np.array([3, 2]),
        "gaps": np.array([1, 5]), "pauses": np.array([0, 7]), "episodes": np.array([[0, 0, 9], [1, 1, 0]]),
        "ends": np.array([0, 1]), "counts": np.array([[1, 2], [3, 4]]), "clears": np.array([True, False, False]),
    }  # fmt: skip
    words = np.array([1, 2], np.uint64)
    Scenario("one", words, words + np.uint64(2), np.arange(2), cycles=4, **every).save(tmp_path)
    loaded = Scenario.load(tmp_path, "one")
    assert {name: getattr(loaded, name).tolist() for name in every} == {
        key: each.tolist() for key, each in every.items()
    }
    assert (loaded.payloads.tolist(), loaded.answers.tolist(), loaded.case.tolist()) == ([1, 2], [3, 4], [0, 1])
    assert loaded.cycles == 4


def test_vector_answers_are_laid_out_as_the_tables_of_the_unit_say() -> None:
    unit = UNITS["vector_mac"]
    component = unit.build()
    port = port_of(unit, component)
    scenarios, required, formats = reduction_scenarios(component, port, 3, unit.name, 0.02)
    assert required >= {"same_row/1_then_0", "bfloat16/level_2/element_3"}
    steps = next(scenario for scenario in scenarios if scenario.name == "steps")
    for case in np.unique(steps.case)[::40].tolist():
        fmt, level, chunk = (int(steps.details[key][case]) for key in ("format", "level", "chunk"))
        elements, results = component.lanes // (1 if level else 2), []
        for at in range(case, case + elements):
            start = steps.details["start"][at]
            products = slice(start, start + steps.details["products"][at])
            a, b = (steps.details[key][products] for key in "ab")
            results.append(int(dot(a, b, operand=format_named(formats[fmt]), level=level, chunk=chunk or None)))
        found = [port.answer.unpack(word)["result"] for word in steps.answers[steps.case == case]]
        if level == 2:
            assert found == [sum(code << 16 * at for at, code in enumerate(results))]
        else:
            step = 1 + level
            assert found == [results[at] | results[at + step] << 32 for at in range(step)]


@pytest.mark.turns
@pytest.mark.parametrize(
    ("name", "effort", "sampled"),
    [
        ("vector_mac_no_flags", 0.05, True), ("mac_cbfloat16_flush", 1.0, True), ("mac_level_2", 1.0, False),
        # A bus, which machine code does not drive.
        ("mac_axi_counters", 0.1, False),
    ],
)  # fmt: skip
def test_stimulus_of_a_variant_leaves_the_simulator_a_sample_with_every_kind_of_control(
    name: str, effort: float, sampled: bool
) -> None:
    component = UNITS[name].build()
    port = port_of(UNITS[name], component)
    made = reduction_scenarios(core_of(UNITS[name], component), port, 1, name, effort)[0]
    simulated = {scenario.name for scenario in made if not scenario.is_bulk}
    if port.counters:
        assert {"counted_events", "resets_while_counting"} <= simulated
    else:
        assert {"power_up", "steps_sampled", "hazards", "resets_sampled"} < simulated
        assert "stream_idle_bursts_backpressure_bursts" in simulated
    if name.startswith("vector"):
        assert {"last_place", "throughput_level_1_chunk_5"} < simulated
    assert simulated.isdisjoint({"continuations", "chunk_edges", "port_changes", "full_queue"}) == sampled
