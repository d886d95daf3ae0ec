// What hdl.cores.multiplier uses of the MULT18X18D of a Lattice ECP5: ranks of registers before and behind the
// multiplication, each with a clock, an enable and a synchronous reset, or left out ("NONE").
module MULT18X18D (
  input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  input CLK0, CE0, RST0,
  output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
  output P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_PIPELINE_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";

  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  reg [17:0] a_rank, b_rank;
  reg [35:0] pipeline_rank, output_rank;

  wire [17:0] factor_a = REG_INPUTA_CLK == "NONE" ? a : a_rank;
  wire [17:0] factor_b = REG_INPUTB_CLK == "NONE" ? b : b_rank;
  // A signed factor is extended with its sign, an unsigned one with zeros.
  wire signed [18:0] extended_a = {SIGNEDA & factor_a[17], factor_a};
  wire signed [18:0] extended_b = {SIGNEDB & factor_b[17], factor_b};
  wire signed [37:0] product = extended_a * extended_b;
  wire [35:0] piped = REG_PIPELINE_CLK == "NONE" ? product[35:0] : pipeline_rank;
  wire [35:0] p = REG_OUTPUT_CLK == "NONE" ? piped : output_rank;

  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
          P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = p;

  always @(posedge CLK0) begin
    if (RST0) begin
      a_rank <= 0;
      b_rank <= 0;
      pipeline_rank <= 0;
      output_rank <= 0;
    end else if (CE0) begin
      a_rank <= a;
      b_rank <= b;
      pipeline_rank <= product[35:0];
      output_rank <= piped;
    end
  end

  initial begin
    if (SOURCEA !== 1'b0 && SOURCEA !== 1'bz) $display("MULT18X18D: chained factors are not modelled");
    if (REG_INPUTA_CLK != "NONE" && REG_INPUTA_CLK != "CLK0") $display("MULT18X18D: clock of A is not modelled");
    if (REG_INPUTB_CLK != "NONE" && REG_INPUTB_CLK != "CLK0") $display("MULT18X18D: clock of B is not modelled");
    if (REG_OUTPUT_CLK != "NONE" && REG_OUTPUT_CLK != "CLK0") $display("MULT18X18D: clock of P is not modelled");
  end
endmodule
