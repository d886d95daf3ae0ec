"""The wrapper: three pins, everything registered, nothing that could merge or vanish."""

import re

import pytest
from amaranth import Cat, Elaboratable, Module, Signal
from amaranth.sim import Simulator, SimulatorContext

from lab.fpga import wrapper
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
    """Return what the unit's inputs and what the pin `so` see, cycle by cycle, for some stimulus."""
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
