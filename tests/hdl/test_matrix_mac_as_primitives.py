"""An array with an ECP5's primitives for registers and products: cycle by cycle the generic one, also when cleared."""

import re

import numpy as np
import pytest
from amaranth import ClockDomain, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from golden.formats import CBFLOAT16, FP16
from hdl import MatrixEngine, MatrixMac
from hdl.cores.clearing import cleared
from hdl.verilog import to_verilog

from .icarus import simulated

CYCLES = 3000
SHARED = {"operands": (CBFLOAT16, FP16), "rows": 2, "columns": 3, "levels": (1, 2)}
INITIAL = {"operands": (CBFLOAT16,), "rows": 1, "columns": 2, "levels": (1, 2), "initial": True}
ARRAYS = [
    pytest.param({"operands": (CBFLOAT16,), "rows": 2, "columns": 2}, id="own_promotions"),
    pytest.param(SHARED, id="shared_promotions", marks=pytest.mark.long),
    pytest.param(INITIAL, id="initial", marks=pytest.mark.long),
]


class Clearable(wiring.Component):
    """An array in the clock domain in which the matrix engine has its array."""

    def __init__(self, **parameters):
        self.array = MatrixMac(**parameters)
        payloads = [self.array.i.payload.shape(), self.array.o.payload.shape()]
        super().__init__(
            {
                **{name: In(1) for name in ("clk", "rst", "clear")},
                "chunk": In(self.array.chunk.shape()),
                "i": In(stream.Signature(payloads[0])),
                "o": Out(stream.Signature(payloads[1])),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.d.comb += [sync.clk.eq(self.clk), sync.rst.eq(self.rst), self.array.chunk.eq(self.chunk)]
        m.submodules.array = cleared(m, sync, self.clear)(self.array)
        connect(m, flipped(self.i), self.array.i)
        connect(m, self.array.o, flipped(self.o))
        return m


def bench_of(name, width, answer_width):
    return f"""
module testbench;
  reg clk = 0;
  reg [{width + 3}:0] words [0:{CYCLES - 1}];
  reg [{width - 1}:0] payload;
  reg rst, clear, valid, ready;
  wire taken, answered;
  wire [{answer_width - 1}:0] answer;
  integer n;
  {name} dut (.clk(clk), .rst(rst), .clear(clear), .chunk(16'd3), .i__valid(valid), .i__ready(taken),
    .i__payload(payload), .o__valid(answered), .o__ready(ready), .o__payload(answer));
  initial begin
    $readmemh("words.hex", words);
    for (n = 0; n < {CYCLES}; n = n + 1) begin
      {{rst, clear, valid, ready, payload}} = words[n];
      #1 $display("%b %b %h", taken, answered, answer & {{{answer_width}{{answered}}}});
      clk = 1;
      #1 clk = 0;
    end
  end
endmodule
"""


def words_of(array, rng):
    """Beats of all tiles, which end often; half of the cycles take a row; some 40 cycles have a clear or a reset."""
    payload = array.i.payload.shape()
    at = {name: (field.offset, field.width) for name, field in payload}
    words = []
    for cycle in range(CYCLES):
        word = int.from_bytes(rng.bytes(payload.size // 8 + 1), "little") % (1 << payload.size)
        for name, value in (("level", int(rng.choice(array.levels))), ("last", int(rng.random() < 0.7))):
            offset, width = at[name]
            word = word & ~((1 << width) - 1 << offset) | value << offset
        controls = (cycle < 8 or rng.random() < 0.003, rng.random() < 0.01, rng.random() < 0.8, rng.random() < 0.5)
        bits = sum(int(control) << 3 - place for place, control in enumerate(controls))
        words.append(bits << payload.size | word)
    return words


def answers(folder, kind, parameters, words):
    """Whether a beat is taken and a row offered, and the row, in every cycle, in Icarus."""
    unit, name = Clearable(**parameters, multiplier=kind), f"array_{kind}"
    widths = [each.payload.shape().size for each in (unit.array.i, unit.array.o)]
    (folder / "words.hex").write_text("\n".join(f"{word:x}" for word in words))
    (folder / f"{name}.v").write_text(to_verilog(unit, name))
    (folder / "testbench.v").write_text(bench_of(name, *widths))
    return simulated(folder, name, ("CCU2C", "MULT18X18D", "TRELLIS_FF") if kind == "ecp5" else ())


@pytest.mark.parametrize("parameters", ARRAYS)
def test_matrix_mac_as_primitives_is_the_generic_one_in_every_cycle_also_when_cleared(tmp_path, parameters):
    words = words_of(MatrixMac(**parameters), np.random.default_rng(7))
    generic, primitives = (answers(tmp_path, kind, parameters, words) for kind in ("generic", "ecp5"))
    rows = [line for line in generic if line.split()[1] == "1"]
    assert len(rows) > 100
    assert primitives == generic


def test_engine_clears_every_primitive_that_a_reset_clears():
    resets = re.findall(r"\.LSR\((\S+)\)", to_verilog(MatrixEngine(rows=2, columns=2, multiplier="ecp5"), "engine"))
    assert set(resets) == {"1'h0", "cleared_rst"}
