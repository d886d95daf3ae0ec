"""The proof that two texts of Verilog are one unit: names do not count, any visible difference does."""

import pytest

from hdl import MultiplyAccumulate
from hdl.verilog import to_verilog
from lab.equivalence.__main__ import compare, main
from lab.equivalence.correspondence import difference
from lab.equivalence.unit import unit_of_verilog

pytestmark = pytest.mark.long

UNIT = """
module unit(input clk, input rst, input [3:0] a, input en, output [3:0] sum, output full);
  reg [3:0] total = 4'd3;
  reg [3:0] rows [0:3];
  reg [1:0] row = 2'd0;
  integer i;
  initial for (i = 0; i < 4; i = i + 1) rows[i] = 4'd0;
  always @(posedge clk) begin
    if (rst) total <= 4'd3; else if (en) total <= total + a;
    row <= row + 2'd1;
    if (en) rows[row] <= a;
  end
  assign sum = total ^ rows[row];
  assign full = total == 4'd15;
endmodule
"""


def changed(*edits):
    text = UNIT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def test_equivalence_other_names_and_other_gates_is_proven():
    other = changed(
        ("total", "sum_so_far"),
        ("rows", "memory"),
        ("row ", "place "),
        ("[row]", "[place]"),
        ("place <= place + 2'd1", "place <= place - 2'd3"),
        ("sum_so_far == 4'd15", "~|(~sum_so_far)"),
    )
    assert compare(UNIT, other) == ("proven equivalent", "")


def test_equivalence_a_register_that_is_there_twice_is_proven():
    other = changed(
        ("reg [1:0] row", "reg [3:0] again = 4'd3; reg [1:0] row"),
        ("row <= row", "if (rst) again <= 4'd3; else if (en) again <= again + a; row <= row"),
        ("total == 4'd15", "again == 4'd15"),
    )
    assert compare(UNIT, other)[0] == "proven equivalent"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("total + a", "total - a", "sum[1] differs in cycle"),
        ("reg [3:0] total = 4'd3", "reg [3:0] total = 4'd2", "sum[0] differs in cycle 0"),
        ("if (rst) total", "if (1'b0) total", "differs in cycle"),
        ("total == 4'd15", "total >= 4'd15 && !rst", "full"),
        ("output full", "output filled", "output filled is in one of them only"),
    ],
)
def test_equivalence_changed_unit_is_told(old, new, said):
    proven, different = compare(
        UNIT, changed((old, new)).replace("assign full", "assign filled" if "filled" in new else "assign full")
    )
    assert not proven
    assert said in different


def test_equivalence_difference_that_no_random_run_meets_is_not_proven():
    counter = """
    module unit(input clk, input [7:0] a, output o);
      reg [15:0] run = 16'd0;
      always @(posedge clk) run <= a == 8'd77 ? run + 16'd1 : 16'd0;
      assign o = run == 16'd5000;
    endmodule
    """
    never = counter.replace("run == 16'd5000", "1'b0")
    assert difference(unit_of_verilog(counter), unit_of_verilog(counter)) == ""
    assert "o may differ" in difference(unit_of_verilog(counter), unit_of_verilog(never))


def test_equivalence_register_without_a_value_at_power_up_is_refused():
    with pytest.raises(ValueError, match="without a value at power-up"):
        unit_of_verilog(
            UNIT.replace("reg [3:0] total = 4'd3", "reg [3:0] total").replace("if (rst) total <= 4'd3; else ", "")
        )


def test_equivalence_command_proves_a_unit_and_finds_one_that_is_changed(tmp_path, capsys):
    text = to_verilog(MultiplyAccumulate(levels=(0,), registers=2, stages=1, flags=False), "unit")
    for folder in ("before", "same", "changed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "before" / "unit.v").write_text(text)
    (tmp_path / "same" / "unit.v").write_text(text.replace("operation_1", "first_operation"))
    assert main([str(tmp_path / "before"), str(tmp_path / "same")]) == 0
    assert "1 of 1 units proven equivalent" in capsys.readouterr().out
    wrong = text.replace(" & ", " | ", 1)
    assert wrong != text
    (tmp_path / "changed" / "unit.v").write_text(wrong)
    assert main([str(tmp_path / "before"), str(tmp_path / "changed")]) == 1
    assert "NOT PROVEN" in capsys.readouterr().out


def test_equivalence_command_unit_that_is_gone_fails(tmp_path, capsys):
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    (tmp_path / "before" / "one.v").write_text(UNIT)
    (tmp_path / "after" / "other.v").write_text(UNIT)
    assert main([str(tmp_path / "before"), str(tmp_path / "after")]) == 1
    assert "one: NOT PROVEN: is not there" in capsys.readouterr().out


def test_equivalence_command_bad_source_is_named(capsys):
    assert main(["no-such-revision"]) == 2
    assert "no-such-revision" in capsys.readouterr().err
