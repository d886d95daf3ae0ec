// What hdl.cores.carries uses of the CCU2C of a Lattice ECP5: two places of a carry chain, each with a table of four
// inputs. A table that gives 1 passes the carry on; otherwise the lowest four entries give it for A and B.
module CCU2C (input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT);
  parameter [15:0] INIT0 = 0;
  parameter [15:0] INIT1 = 0;
  parameter INJECT1_0 = "YES";
  parameter INJECT1_1 = "YES";

  wire propagate_0 = INIT0[{D0, C0, B0, A0}];
  wire propagate_1 = INIT1[{D1, C1, B1, A1}];
  wire between = propagate_0 ? CIN : INIT0[{2'b00, B0, A0}];

  assign S0 = propagate_0 ^ CIN;
  assign S1 = propagate_1 ^ between;
  assign COUT = propagate_1 ? between : INIT1[{2'b00, B1, A1}];

  initial
    if (INJECT1_0 != "NO" || INJECT1_1 != "NO") $display("CCU2C: an injected carry is not modelled");
endmodule
