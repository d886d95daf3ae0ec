"""``python -m hdl verilog``: plain Verilog-2005 with documented ports, which a page instantiates."""

import re
import subprocess
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Reduction,
)
from golden.formats import HALF_FORMATS, WIDE_FORMATS
from golden.mx import NVFP4
from hdl import FloatConverter, MultiplyAccumulate, MxQuantizer, VectorMac
from hdl.axi_stream import AxiStreamMac
from hdl.catalogue import released
from hdl.cli import main
from hdl.verilog import to_verilog

ROOT = Path(__file__).resolve().parents[2]

# arguments of the command line, the unit that they build
COMMANDS = {
    "convert": (
        "convert --source float32 --destination cbfloat16",
        lambda: FloatConverter(source=FP32, destination=CBFLOAT16),
    ),
    "convert-exact-without-flags": (
        "convert --source bf16 --destination fp32 --stages 3 --no-flags",
        lambda: FloatConverter(source=BF16, destination=FP32, stages=3, flags=False),
    ),
    "convert-in-any-mode": (
        "convert --source fp32 --destination float8_e4m3fn --overflow saturate --random-bits 8 "
        "--roundings nearest_even,stochastic,up",
        lambda: FloatConverter(
            source=FP32,
            destination=FLOAT8_E4M3FN,
            roundings=("nearest_even", "stochastic", "up"),
            overflow="saturate",
            random_bits=8,
        ),
    ),
    "convert-toward-zero": (
        "convert --source float6_e2m3fn --destination float4_e2m1fn --roundings toward_zero",
        lambda: FloatConverter(source=FLOAT6_E2M3FN, destination=FLOAT4_E2M1FN, roundings="toward_zero"),
    ),
    "mac": ("mac", MultiplyAccumulate),
    "mac-three-formats": (
        "mac --operands cbfloat16,float16,bfloat16 --levels 0,1,2 --registers 8 --chunk-bits 9 --stages 3",
        lambda: MultiplyAccumulate(operands=HALF_FORMATS, registers=8, chunk_bits=9, stages=3),
    ),
    "mac-one-level-without-flags": (
        "mac --operands cb16 --levels 2 --no-flags",
        lambda: MultiplyAccumulate(operands=(CB16,), levels=(2,), flags=False),
    ),
    "mac-in-the-operand-format": (
        "mac --operands float8_e5m2 --inner operand --stages 4",
        lambda: MultiplyAccumulate(operands=(FLOAT8_E5M2,), inner="operand", stages=4),
    ),
    # No chunks: no operation is ever promoted.
    "mac-chains-alone": ("mac --levels 0 --stages 9", lambda: MultiplyAccumulate(levels=(0,), stages=9)),
    "mac-axi-stream": ("mac-axi-stream --operands fp16", lambda: AxiStreamMac(operands=(FP16,))),
    "vector-mac": ("vector-mac", VectorMac),
    "vector-mac-three-formats-without-flags": (
        "vector-mac --lanes 2 --operands cbfloat16,float16,bfloat16 --registers 8 --stages 4 --no-flags",
        lambda: VectorMac(lanes=2, operands=HALF_FORMATS, registers=8, stages=4, flags=False),
    ),
    "mx-quantize": (
        "mx-quantize --element float8_e4m3fn --lanes 4",
        lambda: MxQuantizer(element=FLOAT8_E4M3FN, lanes=4),
    ),
    "mx-quantize-at-random": (
        "mx-quantize --source fp16 --element float4_e2m1fn --block 16 --lanes 16 --rounding stochastic --random-bits 4",
        lambda: MxQuantizer(
            source=FP16, element=FLOAT4_E2M1FN, block=16, lanes=16, rounding="stochastic", random_bits=4
        ),
    ),
    "mx-quantize-nvfp4": (
        "mx-quantize --element nvfp4 --block 16 --lanes 4",
        lambda: MxQuantizer(element=NVFP4, block=16, lanes=4),
    ),
    "mac-axi-stream-without-flags": (
        "mac-axi-stream --levels 0 --no-flags",
        lambda: AxiStreamMac(levels=(0,), flags=False),
    ),
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The file that each command wrote."""
    folder = tmp_path_factory.mktemp("verilog")
    paths = {}
    for name, (arguments, _) in COMMANDS.items():
        paths[name] = folder / "deep" / f"{name}.v"
        assert main(["verilog", *arguments.split(), "-o", str(paths[name])]) == 0
    return paths


def header(text):
    """The comment before the module: its lines, without the slashes."""
    return [line.removeprefix("//").removeprefix(" ") for line in text.split("\n/*")[0].splitlines()]


def documented_ports(text):
    """The header's direction and width of each port, and name and bits of each field."""
    lines = header(text)
    ports, fields = {}, {}
    for line in lines[lines.index("Ports") + 1 :]:
        if match := re.match(r"  (\w+)(?:\[(\d+):0\])? +(input|output)", line):
            port = match[1]
            ports[port] = (match[3], int(match[2] or 0) + 1)
        elif match := re.match(r"    \[(\d+)(?::(\d+))?\] +(\w+)", line):
            fields[port, match[3]] = (int(match[2] or match[1]), int(match[1]))
    return ports, fields


def declared_ports(text, module):
    """Direction and width of each port of a module, as Verilog declares them."""
    body = re.search(rf"^module {module}\((.*?)\);\n(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)
    declarations = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", body[2], re.MULTILINE)
    assert {name.strip() for name in body[1].split(",")} == {name for *_, name in declarations}
    return {name: (direction, int(left or 0) + 1) for direction, left, name in declarations}


def module_of(command):
    return COMMANDS[command][0].split()[0].replace("-", "_")


@pytest.mark.turns
@pytest.mark.parametrize("command", COMMANDS)
def test_verilog_is_accepted_by_icarus_as_verilog_2005(generated, command):
    icarus = ["iverilog", "-g2005", "-Wall", "-t", "null", "-s", module_of(command), str(generated[command])]
    result = subprocess.run(icarus, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "error" not in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_header_documents_every_port_of_the_module(generated, command):
    text = generated[command].read_text()
    assert text.startswith(f"// {module_of(command)}: ")
    assert documented_ports(text)[0] == declared_ports(text, module_of(command))


@pytest.mark.parametrize("command", COMMANDS)
def test_header_has_the_field_bits_of_the_units_layouts(generated, command):
    unit = COMMANDS[command][1]()
    wanted = {}
    for path, member, _ in unit.signature.flatten(unit):
        if isinstance(member.shape, data.Layout):
            for key, field in member.shape:
                if field.width:
                    wanted["__".join(path), key] = (field.offset, field.offset + field.width - 1)
    assert wanted
    assert documented_ports(generated[command].read_text())[1] == wanted


@pytest.mark.parametrize("command", COMMANDS)
def test_header_has_the_parameters_and_the_latency(generated, command):
    unit = COMMANDS[command][1]()
    unit = getattr(unit, "unit", unit)
    lines = header(generated[command].read_text())
    assert f"  latency = {unit.latency} cycles" in lines
    if isinstance(unit, MxQuantizer):
        assert {f"  {name} = {getattr(unit, name)}" for name in ("source", "element", "lanes")} <= set(lines)
        return
    assert f"  stages = {unit.stages}" in lines
    assert f"  flags = {unit.flags}" in lines
    if hasattr(unit, "operands"):
        assert f"  operands = {', '.join(map(str, unit.operands))}" in lines
        assert f"  accumulate_latency = {unit.accumulate_latency} cycles" in lines
    else:
        assert f"  source = {unit.source}" in lines


@pytest.mark.parametrize("command", COMMANDS)
def test_verilog_prints_nothing_and_names_no_path_of_this_machine(generated, command):
    text = generated[command].read_text()
    assert not re.search(r"\$(display|write|monitor|strobe|print|finish)\b", text)
    assert str(ROOT) not in text
    assert ".py" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_verilog_declares_no_wire_without_bits(generated, command):
    assert "[-1:0]" not in generated[command].read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_verilog_has_no_process_that_waits_for_constants(generated, command):
    # `always @*` over constants never starts, and its results stay unknown: so did the ready of mac-chains-alone.
    assert not re.findall(r"always @\*\n\s+\S+ (?:\[\S+\] )?= \d+'", generated[command].read_text())


def test_axi_stream_fields_are_where_the_class_says(generated):
    fields = documented_ports(generated["mac-axi-stream"].read_text())[1]
    assert fields["s_axis_tdata", "b"] == (16, 31)
    assert fields["s_axis_tuser", "level"] == (12, 13)
    assert fields["s_axis_tuser", "first"] == (14, 14)
    assert fields["m_axis_tuser", "flags"] == (8, 12)
    assert fields["m_axis_tuser", "error"] == (13, 14)


def test_no_flags_drops_the_field_and_makes_the_output_narrower(generated):
    with_flags, without = (documented_ports(generated[c].read_text()) for c in ("mac", "mac-one-level-without-flags"))
    assert ("o__payload", "flags") in with_flags[1]
    assert ("o__payload", "flags") not in without[1]
    assert without[0]["o__payload"] == ("output", 16 + 2 + 4)
    assert documented_ports(generated["convert-exact-without-flags"].read_text())[0]["o__payload"] == ("output", 32)


def test_header_of_a_mac_has_the_reductions_that_it_computes(generated):
    lines = header(generated["mac-three-formats"].read_text())
    first = next(i for i, line in enumerate(lines) if line.startswith("Reductions")) + 1
    found = [Reduction.parse(line.strip()) for line in lines[first : lines.index("", first)]]
    assert found == [
        replace(Reduction.for_level(level, fmt), operand=fmt) for level in (0, 1, 2) for fmt in HALF_FORMATS
    ]
    flushed = to_verilog(MultiplyAccumulate(levels=(2,), subnormals="flush", roundings=("up",)), "mac")
    line = "operand=cbfloat16 inner=cbfloat16 chunk=32 outer=cbfloat16 rounding=up subnormals=flush"
    assert f"//   {line}\n" in flushed


def test_header_names_modes_and_overflow_where_they_are_not_the_default(generated):
    lines = header(generated["convert-in-any-mode"].read_text())
    assert "  roundings = nearest_even, up, stochastic" in lines
    assert "  overflow = saturate" in lines
    assert "  random_bits = 8" in lines
    given = documented_ports(generated["convert-in-any-mode"].read_text())[1]
    assert given["i__payload", "rounding"] == (32, 34)
    assert given["i__payload", "random"] == (35, 42)
    assert given["o__payload", "error"] == (13, 13)
    for plain in ("convert", "convert-exact-without-flags"):
        assert not re.search(r"roundings|overflow =|random_bits", generated[plain].read_text())


def test_name_is_that_of_the_top_module(capsys):
    assert main(["verilog", "convert", "--source", "fp16", "--destination", "fp32", "--name", "widen_half"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("// widen_half: FloatConverter\n")
    assert declared_ports(text, "widen_half")["i__payload"] == ("input", 16)


BAD = [
    ("convert --source fp32 --destination fp8", "destination: got 'fp8', must be one of float32, "),
    ("convert --source half --destination fp32", "source: got 'half', must be one of float32, "),
    ("convert --source fp32 --destination fp16 --stages 9", "stages: got 9, must be from 1 to 3 (2 unless given)"),
    (
        "convert --source fp32 --destination fp16 --roundings up,nearest",
        "roundings: got 'nearest', must be a Rounding ",
    ),
    ("convert --source fp32 --destination fp16 --random-bits 40", "random_bits: got 40, must be from 1 to 32"),
    ("convert --source fp32 --destination fp16 --name 2x", "name: got '2x', must be a Verilog identifier"),
    ("convert --source fp32 --destination fp16 --name é", "name: got 'é', must be a Verilog identifier"),
    ("convert --source fp32 --destination fp16 --name module", "name: got 'module', a keyword of (System)Verilog"),
    ("convert --source fp32 --destination fp16 --name logic", "name: got 'logic', a keyword of (System)Verilog"),
    ("convert --source fp32 --destination fp16 --name CCU2C", "name: got 'CCU2C', a primitive of an FPGA; choose"),
    ("convert --source fp32 --destination fp16 --name=", "name: got '', must be a Verilog identifier"),
    ("mx-quantize --element fp16", "element: got 'fp16', must be one of float8_e4m3fn, "),
    ("mx-quantize --element nvfp", "element: got 'nvfp', must be one of float8_e4m3fn, "),
    ("mx-quantize --element nvfp4", "block: got 32, must be 16 for nvfp4"),
    ("mx-quantize --element float8_e5m2 --lanes 64", "lanes: got 64, must be at most the 32 values of a block"),
    ("mx-quantize --element float8_e5m2 --lanes 3", "lanes: got 3, must be a power of two from 1 to 64"),
    ("mx-quantize --element float8_e5m2 --rounding odd", "rounding: got 'odd', must be a Rounding or one of "),
    ("mac --operands fp32", "operands: got float32 of 32 bits, must be at most 16 bits wide"),
    ("mac --operands fp16,nope", "operands: got 'nope', must be one of float32, "),
    ("mac --levels 0,x", "levels: got '0,x', must be numbers such as 0,1,2"),
    ("mac --levels 3", "levels: got (3,), must be some of (0, 1, 2), each once"),
    ("vector-mac --lanes 3", "lanes: got 3, must be an even number from 2 to 1024"),
    ("mac-axi-stream --registers 512", "registers: got 512, must be a power of two from 2 to 256"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[bad[0].replace(" ", "_") for bad in BAD])
def test_bad_parameter_ends_with_status_2_and_one_line(capsys, arguments, message):
    assert main(["verilog", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"python -m hdl: {message}")
    assert err.count("\n") == 1


def test_ctrl_c_ends_with_status_130_and_one_line_and_leaves_the_file(tmp_path, monkeypatch, capsys):
    def interrupted(unit, name):
        raise KeyboardInterrupt

    monkeypatch.setattr("hdl.cli.to_verilog", interrupted)
    file = tmp_path / "unit.v"
    file.write_text("as before")
    assert main(["verilog", "mac", "-o", str(file)]) == 130
    out, err = capsys.readouterr()
    assert (out, err) == ("", "\npython -m hdl: stopped by Ctrl-C; the files that are there are whole\n")
    assert file.read_text() == "as before"


def test_module_runs_as_a_command_and_returns_the_status():
    command = [sys.executable, "-m", "hdl", "verilog", "mac", "--stages", "0"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == ["python -m hdl: stages: got 0, must be from 1 to 13 (13 unless given)"]


def test_all_writes_each_unit_once(tmp_path, monkeypatch, capsys):
    # Generating all of them is `make verilog`; here only the list and the files.
    monkeypatch.setattr("hdl.cli.to_verilog", lambda unit, name: f"{name}: {type(unit).__name__}\n")
    assert main(["verilog", "all", "-o", str(tmp_path)]) == 0
    names = {f"{source}_to_{destination}" for source, destination in permutations(WIDE_FORMATS, 2)}
    names |= {f"mac_{fmt}" for fmt in WIDE_FORMATS[1:]} | {"mac", "mac_axi_stream", "vector_mac"}
    names |= {"mx_quantize_float8_e4m3fn", "matrix_mac", "matrix_engine"}
    assert {unit.name for unit in released()} == names
    assert {path.name: path.read_text().split(":")[0] for path in tmp_path.glob("*.v")} == {f"{n}.v": n for n in names}
    assert {path.name for path in tmp_path.iterdir()} == {f"{n}{end}" for n in names for end in (".v", ".core")}
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(names)
    assert lines[-1].startswith(f"[{len(names)}/{len(names)}] ")


PAGE = Path(__file__).resolve().parents[2] / "docs" / "getting-started-fpga.md"

#: 1.5 * 2 + 0.25 * 3 in register 4, its result refused for some cycles.
BENCH = """
module bench;
    reg clk = 0, rst = 0, valid = 0, ready = 0, first = 1, last = 0;
    reg [15:0] a = 16'h3f00, b = 16'h4000;
    wire taken, offered;
    wire [31:0] result;
    integer cycle;
    dot_product engine (clk, rst, valid, taken, a, b, 4'd4, first, last, offered, ready, result);
    initial begin
        valid = 1;
        for (cycle = 0; cycle < 80; cycle = cycle + 1) begin
            #1 clk = 1;
            if (valid && taken) begin
                #1 if (last) valid = 0;
                first = 0; last = 1; a = 16'h3a00; b = 16'h4100;
            end
            #1 clk = 0;
            ready = cycle > 40;
            #1 if (cycle == 40) $display("offered %b %h", offered, result);
        end
        $display("taken %b", !offered);
        $finish;
    end
endmodule
"""


class Still(wiring.Component):
    """Outputs that depend only on a register that never changes: in a process of its own, and as a part."""

    clear: wiring.In(1)
    o: wiring.Out(2)

    def elaborate(self, platform):
        m = Module()
        kept = Signal(init=1)
        with m.If(self.clear):
            m.d.sync += kept.eq(0)
        with m.If(kept):
            m.d.comb += self.o[0].eq(1)
        m.d.comb += self.o[1].eq(kept)
        return m


@pytest.mark.parametrize("standard", ["2005", "2009", "2012"])
def test_verilog_whose_inputs_never_change_is_evaluated_at_time_0(tmp_path, standard):
    unit = "still unit (.o(o), .clear(1'b0), .clk(1'b0), .rst(1'b0));"
    bench = f'module bench; wire [1:0] o; {unit} initial #1 $display("%b", o); endmodule\n'
    (tmp_path / "still.v").write_text(to_verilog(Still(), "still") + bench)
    subprocess.run(["iverilog", f"-g{standard}", "-o", "bench", "still.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["11"]


def test_module_of_the_page_reduces_two_products(tmp_path):
    (module,) = re.findall(r"```verilog\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mac.v").write_text(to_verilog(MultiplyAccumulate(), "mac"))
    (tmp_path / "bench.v").write_text(module + BENCH)
    subprocess.run(["iverilog", "-g2005", "-Wportbind", "-o", "bench", "mac.v", "bench.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["offered 1 40700000", "taken 1"]  # 3.75
