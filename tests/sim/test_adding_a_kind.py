"""A kind of unit added in a copy by the steps of docs/extending.md: a converter behind AXI4-Stream ports."""

import pytest

from ..copied import Copy, files_of_section

pytestmark = pytest.mark.long

COMPONENT = '''
from amaranth import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.converter import ConverterParameters, FloatConverter
from hdl.parameters import built_from, documented


@documented(ConverterParameters)
class AxiStreamConverter(wiring.Component):
    """A `FloatConverter` with AXI4-Stream ports.

    Raises
    ------
    TypeError, ValueError
        As `FloatConverter`.
    """

    @built_from(ConverterParameters)
    def __init__(self, parameters):
        self.unit = FloatConverter(**parameters.arguments())
        self.latency = self.unit.latency
        sides = {"s": (In, Out, self.unit.i), "m": (Out, In, self.unit.o)}
        ports = {"aclk": In(1), "aresetn": In(1), "m_axis_tlast": Out(1)}
        for side, (towards, back, stream) in sides.items():
            ports[f"{side}_axis_tdata"] = towards(stream.payload.shape())
            ports |= {f"{side}_axis_tvalid": towards(1), f"{side}_axis_tready": back(1)}
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.submodules.unit = unit = self.unit
        m.d.comb += [
            sync.clk.eq(self.aclk),
            sync.rst.eq(~self.aresetn),
            unit.i.payload.eq(self.s_axis_tdata),
            unit.i.valid.eq(self.s_axis_tvalid),
            self.s_axis_tready.eq(unit.i.ready),
            self.m_axis_tdata.eq(unit.o.payload),
            self.m_axis_tvalid.eq(unit.o.valid),
            self.m_axis_tlast.eq(1),
            unit.o.ready.eq(self.m_axis_tready),
        ]
        return m
'''
KIND = """    AXI_CONVERTER = (
        AxiStreamConverter, ConverterParameters, "convert-axi-stream", "a format converter behind AXI4-Stream ports",
        "golden.convert", "Converters behind AXI4-Stream ports", "CONVERTER",
    )

"""
UNITS = """def _behind_ports() -> Iterator[Unit]:
    given = {"effort": 0.1, "destination": CBFLOAT16}
    yield _unit("axi_float32_to_cbfloat16", Kind.AXI_CONVERTER, source=FP32, **given)
    modes = {"roundings": (Rounding.UP, Rounding.STOCHASTIC), "random_bits": 5}
    yield _unit("axi_float8_to_cbfloat16_two_roundings", Kind.AXI_CONVERTER, source=FLOAT8_E5M2, **modes, **given)


"""
CATALOGUE = [
    ("from hdl.converter import DEPTHS", "from hdl.axi_converter import AxiStreamConverter\n{}"),
    ("    def __init__(\n        self,\n        component:", f"{KIND}{{}}"),
    ("#: Every unit, by its name.\n", f"{UNITS}{{}}"),
    ("(*_converters(), ", "{}*_behind_ports(), "),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    made = Copy(tmp_path_factory.mktemp("kind") / "copy")
    (made.folder / "hdl" / "axi_converter.py").write_text(COMPONENT, encoding="utf-8")
    made.edit("hdl/catalogue.py", *CATALOGUE)
    return made


def simulated(copy: Copy) -> list[str]:
    return ["-m", "sim", "--units", "axi_*", "--seed", "1", "--jobs", "1", "--folder", str(copy.folder / "build")]


def test_page_lists_the_steps_that_the_test_takes() -> None:
    assert files_of_section("AXI4-Stream ports around a unit") == {"hdl/axi_stream.py", "hdl/catalogue.py"}


def test_core_in_another_shell_is_generated_and_simulated_with_nothing_new(copy: Copy) -> None:
    given = ("--source", "float32", "--destination", "float16")
    assert "m_axis_tdata" in copy.passes("-m", "hdl", "verilog", "convert-axi-stream", *given)
    assert "all 2 units pass" in copy.passes(*simulated(copy))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.m_axis_tlast.eq(1)", "self.m_axis_tlast.eq(unit.o.payload.bits[0])"),
        ("self.m_axis_tdata.eq(unit.o.payload)", "self.m_axis_tdata.eq(unit.o.payload.as_value() ^ 4)"),
        ("sync.rst.eq(~self.aresetn)", "sync.rst.eq(0)"),
    ],
)
def test_fault_in_the_shell_is_found(copy: Copy, right: str, wrong: str) -> None:
    copy.edit("hdl/axi_converter.py", (right, wrong))
    try:
        done = copy.run(*simulated(copy))
        assert done.returncode == 1
        assert "FAIL" in done.stdout.upper()
    finally:
        copy.edit("hdl/axi_converter.py", (wrong, right))


def test_kind_without_a_bench_is_named(copy: Copy) -> None:
    copy.edit("hdl/catalogue.py", ('"Converters behind AXI4-Stream ports", "CONVERTER"', '"Converters", ""'))
    try:
        said = copy.fails("-c", "import sim.units")
        assert said.startswith("ValueError: sim.kinds.BENCHES: got entries for ")
        assert "Kind.AXI_CONVERTER" in said.partition("must have one for each of ")[2]
    finally:
        copy.edit("hdl/catalogue.py", ('"Converters", ""', '"Converters behind AXI4-Stream ports", "CONVERTER"'))
