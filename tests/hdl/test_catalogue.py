"""The catalogue of units, and all that is made from the definitions of their parameters."""

import inspect
import operator
import re
from pathlib import Path

import pytest

import golden
from golden import CBFLOAT16, FLOAT8_E4M3FN, FP32
from hdl.catalogue import UNITS, Kind, released
from hdl.cli import main
from hdl.definitions import REQUIRED
from hdl.verilog import to_verilog
from sim.engine.units import UNITS as ENGINES
from sim.kinds import BENCHES, bench_of

ROOT = Path(__file__).resolve().parents[2]
kinds = pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.command)


@pytest.mark.parametrize("name", UNITS)
def test_unit_of_the_catalogue_can_be_built_and_is_used(name):
    unit = UNITS[name]
    assert name == unit.name
    assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
    component = unit.build()
    assert {key: getattr(component, key) for key in unit.arguments} == unit.arguments
    assert unit.is_released or unit.effort or unit.is_measured
    assert unit.effort or name in ENGINES or not unit.is_released, "released, but not in a regression"


def test_names_of_units_say_what_differs_from_the_released_unit():
    for name, unit in UNITS.items():
        component = unit.build()
        if "stages" in name:
            assert re.search(rf"_stages_{component.stages}(_|$)", name)
        if "level" in name:
            assert f"_level_{component.levels[0]}" in name
            assert len(component.levels) == 1
        if "lanes" in name:
            assert name.endswith(f"_lanes_{component.lanes}")
        if "_by_" in name:
            assert f"_{component.rows}_by_{component.columns}_" in name
        assert getattr(component, "flags", True) == (not name.endswith("_no_flags"))


def test_build_takes_changes_of_the_arguments():
    assert UNITS["mac"].build(stages=3).stages == 3
    assert UNITS["mac"].build().stages == 13


@kinds
def test_kind_has_a_released_unit_a_bench_of_its_core_and_a_golden_twin(kind):
    assert released(kind)
    assert bench_of(kind) is BENCHES[kind.core]
    package, *names = kind.golden_twin.split(".")
    assert package == golden.__name__
    assert callable(operator.attrgetter(".".join(names))(golden))


@kinds
def test_parameters_are_the_same_in_constructor_command_line_header_and_docstring(kind, capsys):
    names = set(kind.parameters.definitions())
    assert set(inspect.signature(kind.component).parameters) == names

    required = {
        name: {"source": FP32, "destination": CBFLOAT16, "element": FLOAT8_E4M3FN}[name]
        for name, default in kind.parameters.defaults().items()
        if default is REQUIRED
    }
    component = kind.component(**required)
    assert set(component.parameters.arguments()) == names
    with pytest.raises(SystemExit):
        main(["verilog", kind.command, "--help"])
    options = set(re.findall(r"^  --([a-z-]+)", capsys.readouterr().out, re.MULTILINE)) - {"name"}
    assert {option.removeprefix("no-").replace("-", "_") for option in options} == names
    header = to_verilog(component, "unit").split("// Ports")[0]
    assert set(re.findall(r"^//   (\w+) = ", header, re.MULTILINE)) - {"latency", "accumulate_latency"} == (
        names - {name for name, each in kind.parameters.definitions().items() if each.is_rare}
    )
    for documented in (kind.component, kind.parameters):
        section = re.search(r"\nParameters\n-+\n(.*?)\n\n\w+\n---", documented.__doc__, re.DOTALL)[1]
        assert set(re.findall(r"^(\w+) : ", section, re.MULTILINE)) == names


@kinds
def test_defaults_are_the_same_in_constructor_and_definition(kind):
    signature = inspect.signature(kind.component).parameters
    for name, default in kind.parameters.defaults().items():
        assert signature[name].default == (inspect.Parameter.empty if default is REQUIRED else default)
        if default is not REQUIRED:
            text = kind.parameters.definitions()[name].default_text(default)
            assert f"\n{name} : {kind.parameters.definitions()[name].type_name}, default {text}\n" in (
                kind.component.__doc__
            )
