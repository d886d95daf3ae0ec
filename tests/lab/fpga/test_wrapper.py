"""The units that are measured, and their wrapper: three pins, everything registered, nothing that could vanish."""

import re

import pytest
from amaranth import Cat, Elaboratable, Module, Signal
from amaranth.sim import Simulator, SimulatorContext

from hdl.verilog import to_verilog
from lab.fpga import wrapper
from lab.fpga.measurement import plain_verilog
from lab.fpga.units import catalogue, parameters_of, select
from lab.fpga.wrapper import Port, Wrapper, wrapper_verilog

PORTS = [
    Port("clk", 1, True),
    Port("rst", 1, True),
    Port("i__payload", 5, True),
    Port("o__payload", 3, False),
    Port("o__valid", 1, False),
]
INPUT_BITS, OUTPUT_BITS = 6, 4


@pytest.fixture(scope="module")
def text() -> str:
    return wrapper_verilog(PORTS)


def test_it_has_three_pins(text: str) -> None:
    assert sorted(re.search(r"^module wrapper\((.*)\);$", text, re.MULTILINE)[1].split(", ")) == ["clk", "si", "so"]
    assert sorted(re.findall(r"^  (?:in|out)put (.*);$", text, re.MULTILINE)) == ["clk", "si", "so"]


def test_every_port_of_the_unit_is_connected_to_a_register_or_the_clock(text: str) -> None:
    connections = dict(re.findall(r"^    \.(\w+)\((\w+)\)", text, re.MULTILINE))
    assert connections == {
        "clk": "clk",
        "rst": "input_register_rst",
        "i__payload": "input_register_i__payload",
        "o__payload": "from_unit_o__payload",
        "o__valid": "from_unit_o__valid",
    }
    registers = set(re.findall(r"^    (\w+) <= ", text, re.MULTILINE))
    assert {"input_register_rst", "input_register_i__payload", "output_register", "so"} <= registers
    assert re.search(r"output_register <= \{ from_unit_o__valid, from_unit_o__payload \};", text)


def test_registers_have_no_reset(text: str) -> None:
    # A reset of the wrapper's own would be a fourth pin and a wire to every register.
    assert not re.search(r"\bif\b", text)


@pytest.mark.parametrize("ports", [PORTS[:3], [PORTS[0], *PORTS[3:]]], ids=["no output", "no input"])
def test_a_unit_needs_inputs_and_outputs(ports: list[Port]) -> None:
    with pytest.raises(ValueError, match="must have an input and an output"):
        Wrapper(ports)


def test_ports_of_any_number_and_width_fit() -> None:
    ports = [Port(f"i{number}", number + 1, True) for number in range(30)] + [Port("y", 700, False)]
    text = wrapper_verilog(ports)
    assert re.search(rf"reg \[{sum(range(1, 31))}:0\] shifted\b", text)
    assert re.search(r"reg \[699:0\] output_register\b", text)


class Inside(Elaboratable):
    """Stands for the unit in a simulation: shows what arrives at its inputs, and drives its outputs."""

    def __init__(self, _: str, **ports: Signal) -> None:
        self.inputs = Cat(ports["i_rst"], ports["i_i__payload"])
        self.outputs = Cat(ports["o_o__payload"], ports["o_o__valid"])
        self.drive = Signal(OUTPUT_BITS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.outputs.eq(self.drive)
        return m


def record(si: list[int], drive: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """Return the values of the unit's inputs and of the pin `so`, cycle by cycle, for some stimulus."""
    made: list[Inside] = []

    def instance(name: str, **ports: Signal) -> Inside:
        made.append(Inside(name, **ports))
        return made[-1]

    monkeypatch.setattr(wrapper, "Instance", instance)
    surroundings = Wrapper(PORTS)
    inputs, outputs = [], []

    async def testbench(ctx: SimulatorContext) -> None:
        for stimulus, driven in zip(si, drive, strict=True):
            ctx.set(surroundings.si, stimulus)
            ctx.set(made[-1].drive, driven)
            for level in (1, 0):
                await ctx.delay(1e-6)
                ctx.set(surroundings.clk, level)
            inputs.append(ctx.get(made[-1].inputs))
            outputs.append(ctx.get(surroundings.so))

    simulator = Simulator(surroundings)
    simulator.add_testbench(testbench)
    simulator.run()
    return inputs, outputs


def test_every_input_sees_the_pin_at_its_own_times(monkeypatch: pytest.MonkeyPatch) -> None:
    cycles = 3 * INPUT_BITS
    inputs, _ = record([1] + [0] * cycles, [0] * (cycles + 1), monkeypatch)
    seen = [tuple(value >> bit & 1 for value in inputs) for bit in range(INPUT_BITS)]
    assert len(set(seen)) == INPUT_BITS
    # Neighbours in the shift register, XORed: two ones in a row, one cycle later for each bit.
    assert all(sum(bits) == 2 for bits in seen)


@pytest.mark.parametrize("bit", range(OUTPUT_BITS))
def test_every_output_reaches_the_pin(bit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cycles = 3 * OUTPUT_BITS
    _, quiet = record([0] * cycles, [0] * cycles, monkeypatch)
    _, outputs = record([0] * cycles, [1 << bit] + [0] * (cycles - 1), monkeypatch)
    assert sum(quiet) == 0
    assert sum(outputs) == 1


@pytest.mark.parametrize("name", catalogue())
def test_every_unit_can_be_built(name: str) -> None:
    unit = catalogue()[name]()
    # The queue of results follows the stages of a MAC; operands of 8 bits are widened one cycle before the stages, and
    # operands of several lanes take one cycle to reach them. An array has no choice of stages.
    has_queue = "mac" in name and hasattr(unit, "stages")
    widens = any(fmt.width <= 8 for fmt in getattr(unit, "operands", ()))
    assert unit.latency == getattr(unit, "stages", unit.latency) + has_queue + widens + name.startswith("vector")
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
    large = [f"matrix_mac_8_by_8{which}_no_flags" for which in ("_formats", "_full", "", "_level_2")]
    assert list(select([])) == [name for name in catalogue() if name not in large]
    assert list(select(["*_by_8_*"])) == large
    assert list(select(["mac"])) == ["mac"]
    assert list(select(["mac_no_flags", "*_to_float32"])) == [
        "float16_to_float32", "bfloat16_to_float32", "cbfloat16_to_float32", "mac_no_flags",
    ]  # fmt: skip


def test_name_that_matches_nothing_lists_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"unit: got 'nac\*', must match one of float16_to_.*, mac, "):
        select(["mac", "nac*"])
