"""Changes to a design that Icarus has compiled leave every value, known or not."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sim.run.simulators import concatenate_plainly

#: All of 0, 1, X and Z in the parts of a net, one of which is undriven; the net is read as a whole, and used.
_DESIGN = """
module parts(input [1:0] a, input b, output [6:0] o, output any, output [6:0] sum);
  wire nothing;
  assign o[0] = b;
  assign o[1] = nothing;
  assign o[3:2] = a;
  assign o[6:4] = {b, a} + 1'b1;
  assign any = |o;
  assign sum = o + 7'd1;
endmodule
module test;
  reg [7:0] values = 8'b01xz_01xz;
  reg [1:0] a; reg b; integer i, j, k;
  wire [6:0] o, sum; wire any;
  parts dut(a, b, o, any, sum);
  initial begin
    #1 $display("%b %b %b", o, any, sum);
    for (i = 0; i < 4; i = i + 1) for (j = 0; j < 4; j = j + 1) for (k = 0; k < 4; k = k + 1) begin
      a = {values[i], values[j]}; b = values[k];
      #1 $display("%b %b: %b %b %b", a, b, o, any, sum);
    end
  end
endmodule
"""


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
def test_icarus_with_plain_concatenations_gives_the_same_values(tmp_path: Path) -> None:
    (tmp_path / "test.v").write_text(_DESIGN)
    compiled = tmp_path / "sim.vvp"
    subprocess.run(["iverilog", "-o", str(compiled), str(tmp_path / "test.v")], check=True)
    before = compiled.read_text()
    shown = subprocess.check_output(["vvp", str(compiled)], text=True)
    concatenate_plainly(tmp_path)
    assert ".concat8 [" in before
    assert compiled.read_text() == before.replace(".concat8 [", ".concat [")
    assert subprocess.check_output(["vvp", str(compiled)], text=True) == shown
    assert len(set(shown.splitlines())) == 65
    assert {"0", "1", "x", "z"} <= set(shown)


def test_design_that_is_not_icarus_stays(tmp_path: Path) -> None:
    concatenate_plainly(tmp_path)
    assert not list(tmp_path.iterdir())
