"""The catalogue: every entry is a unit that exists, by a name that can be asked for."""

import pytest

from hdl.verilog import to_verilog
from lab.fpga.measurement import plain_verilog
from lab.fpga.units import catalogue, parameters_of, select


@pytest.mark.parametrize("name", catalogue())
def test_every_unit_can_be_built(name: str) -> None:
    unit = catalogue()[name]()
    # Behind the stages of a MAC stands the queue of results; operands of 8 bits are widened a cycle ahead of them.
    widens = any(fmt.width <= 8 for fmt in getattr(unit, "operands", ()))
    assert unit.latency == getattr(unit, "stages", unit.latency) + ("mac" in name) + widens
    if "stages" in name:
        assert f"_stages_{unit.stages}" in name
    assert getattr(unit, "flags", True) == (not name.endswith("no_flags"))


def test_names_are_those_of_different_units_but_for_the_recommended_depth() -> None:
    told = {name: f"{type(build()).__name__} {parameters_of(build())}" for name, build in catalogue().items()}
    twice = [name for name, text in told.items() if list(told.values()).count(text) > 1]
    assert twice == ["mac_cbfloat16", f"mac_cbfloat16_stages_{catalogue()['mac_cbfloat16']().stages}"]


def test_parameters_are_told_with_defaults() -> None:
    assert (
        parameters_of(catalogue()["mac_no_flags"]())
        == "operands cbfloat16, float16, bfloat16; levels 0, 1, 2; registers 16; stages 13; no flags"
    )
    assert (
        parameters_of(catalogue()["float32_to_float16_stages_3"]())
        == "source float32; destination float16; stages 3; flags"
    )


@pytest.mark.parametrize(
    "name", ["float32_to_bfloat16_stages_1_no_flags", "cbfloat16_to_float32", "mac_cbfloat16_level_2"]
)
def test_verilog_is_the_same_every_time_and_has_no_header(name: str) -> None:
    # Otherwise an unchanged unit would be measured again.
    texts = {plain_verilog(to_verilog(catalogue()[name](), "unit")) for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    assert "\nmodule unit(" in text
    assert "//" not in text


def test_selection_by_name_and_pattern() -> None:
    assert list(select([])) == list(catalogue())
    assert list(select(["mac"])) == ["mac"]
    assert list(select(["mac_no_flags", "*_to_float32"])) == [
        "float16_to_float32", "bfloat16_to_float32", "cbfloat16_to_float32", "mac_no_flags",
    ]  # fmt: skip


def test_name_that_matches_nothing_lists_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"unit: got 'nac\*', must match one of float16_to_.*, mac, "):
        select(["mac", "nac*"])
