"""The regression's scenarios on the Verilog as machine code: cycle by cycle, a million of them a second."""
