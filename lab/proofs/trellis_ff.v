// What hdl.cores.copies uses of the TRELLIS_FF of a Lattice ECP5: one register with a synchronous reset to 0.
module TRELLIS_FF (input CLK, LSR, CE, DI, output reg Q);
  parameter GSR = "ENABLED";
  parameter CEMUX = "CE";
  parameter CLKMUX = "CLK";
  parameter LSRMUX = "LSR";
  parameter REGSET = "RESET";
  parameter SRMODE = "ASYNC";

  always @(posedge CLK)
    if (LSR) Q <= REGSET == "SET";
    else if (CEMUX == "1" || CE) Q <= DI;
endmodule
