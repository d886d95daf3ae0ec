"""The module that docs/getting-started-fpga.md instantiates a unit in, compiled and simulated as it stands there."""

import re
import subprocess
from pathlib import Path

from hdl import MultiplyAccumulate
from hdl.verilog import to_verilog

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


def test_module_of_the_page_reduces_two_products(tmp_path):
    (module,) = re.findall(r"```verilog\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mac.v").write_text(to_verilog(MultiplyAccumulate(), "mac"))
    (tmp_path / "bench.v").write_text(module + BENCH)
    subprocess.run(["iverilog", "-g2005", "-Wportbind", "-o", "bench", "mac.v", "bench.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["offered 1 40700000", "taken 1"]  # 3.75
