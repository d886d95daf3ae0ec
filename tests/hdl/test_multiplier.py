"""The multiplier as a primitive of an FPGA: cycle by cycle the generic one, and where a unit has it."""

import itertools
import re

import numpy as np
import pytest

from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate
from hdl.cores.multiplier import Multiplier
from hdl.verilog import to_verilog

from .icarus import simulated

PRIMITIVES = {"ecp5": "MULT18X18D", "nexus": "MULT18X18"}
RANKS = list(itertools.product([False, True], repeat=2))


def counted(verilog):
    """How often each primitive is instantiated."""
    return {name: len(re.findall(rf"^\s*{name}\b", verilog, re.MULTILINE)) for name in PRIMITIVES.values()}


def bench_of(width, name, clocked):
    """Drive a word pair in every cycle and print the product in the middle of each, before the words change."""
    clock = ".clk(clk), .rst(1'b0), " if clocked else ""
    return f"""
module testbench;
  reg clk = 0;
  reg [{2 * width - 1}:0] words [0:`COUNT - 1];
  reg [{width - 1}:0] a, b;
  wire [{2 * width - 1}:0] o;
  integer n;
  {name} dut ({clock}.a(a), .b(b), .o(o));
  initial begin
    $readmemh("words.hex", words);
    for (n = 0; n < `COUNT; n = n + 1) begin
      {{a, b}} = words[n];
      #1 $display("%h", o);
      clk = 1;
      #1 clk = 0;
    end
  end
endmodule
"""


def products(folder, width, kind, ranks, words):
    """The output of a multiplier in every cycle, in Icarus; None where it is unknown."""
    name = f"multiplier_{kind}"
    unit = Multiplier(width, input_rank=ranks[0], output_rank=ranks[1], kind=kind)
    verilog = to_verilog(unit, name)
    assert counted(verilog) == {name: int(kind == family) for family, name in PRIMITIVES.items()}
    (folder / "words.hex").write_text("\n".join(f"{a << width | b:x}" for a, b in words))
    (folder / f"{name}.v").write_text(verilog)
    (folder / "testbench.v").write_text(bench_of(width, name, any(ranks)))
    primitives = [PRIMITIVES[kind]] if kind in PRIMITIVES else []
    lines = simulated(folder, name, primitives, f"-DCOUNT={len(words)}")
    return [None if "x" in line else int(line, 16) for line in lines]


@pytest.mark.parametrize("kind", PRIMITIVES)
@pytest.mark.parametrize("ranks", RANKS, ids=["combinational", "output", "input", "both"])
@pytest.mark.parametrize("width", [1, 8, 10, 11, 18])
def test_multiplier_as_primitive_is_the_generic_one_in_every_cycle(tmp_path, width, ranks, kind):
    top = (1 << width) - 1
    corners = sorted({0, 1, top, top >> 1, 1 << width - 1, top & 0x15555, top & 0x2AAAA})
    rng = np.random.default_rng(14)
    words = [*itertools.product(corners, corners), *rng.integers(0, top + 1, (200, 2)).tolist()]
    generic, primitive = (products(tmp_path, width, each, ranks, words) for each in ("generic", kind))
    latency = sum(ranks)
    # Registers start unknown in the model of the primitive, so the first cycles say nothing.
    assert primitive[latency:] == generic[latency:]
    assert primitive[latency:] == [a * b for a, b in words[: len(words) - latency]]


@pytest.mark.turns
@pytest.mark.parametrize("stages", [1, 3, 8, 11, 12])
@pytest.mark.parametrize("kind", ["generic", *PRIMITIVES])
def test_multiply_accumulate_has_the_primitive_once_if_asked_for(kind, stages):
    unit = MultiplyAccumulate(operands=HALF_FORMATS, stages=stages, multiplier=kind)
    assert counted(to_verilog(unit, "mac")) == {name: int(kind == family) for family, name in PRIMITIVES.items()}


def test_multiply_accumulate_has_no_primitive_unless_asked_for():
    assert not re.search("MULT18X18|CCU2C|TRELLIS_FF", to_verilog(MultiplyAccumulate(), "mac"))
