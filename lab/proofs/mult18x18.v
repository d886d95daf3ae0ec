// What hdl.cores.multiplier uses of the MULT18X18 of Lattice Nexus: ranks of registers before and behind the
// multiplication, each with an enable and a synchronous reset, or left out ("BYPASS").
module MULT18X18 (
  input [17:0] A, B,
  input CLK, CEA, CEB, CEOUT, RSTA, RSTB, RSTOUT, SIGNEDA, SIGNEDB,
  output [35:0] Z
);
  parameter REGINPUTA = "REGISTER";
  parameter REGINPUTB = "REGISTER";
  parameter REGOUTPUT = "REGISTER";

  reg [17:0] a_rank, b_rank;
  reg [35:0] output_rank;
  wire [17:0] a = REGINPUTA == "BYPASS" ? A : a_rank;
  wire [17:0] b = REGINPUTB == "BYPASS" ? B : b_rank;
  // A signed factor is extended with its sign, an unsigned one with zeros.
  wire signed [18:0] extended_a = {SIGNEDA & a[17], a};
  wire signed [18:0] extended_b = {SIGNEDB & b[17], b};
  wire signed [37:0] product = extended_a * extended_b;
  assign Z = REGOUTPUT == "BYPASS" ? product[35:0] : output_rank;

  always @(posedge CLK) begin
    if (RSTA) a_rank <= 0;
    else if (CEA) a_rank <= A;
    if (RSTB) b_rank <= 0;
    else if (CEB) b_rank <= B;
    if (RSTOUT) output_rank <= 0;
    else if (CEOUT) output_rank <= product[35:0];
  end
endmodule
