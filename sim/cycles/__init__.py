"""The regression's scenarios on the Verilog as machine code: cycle by cycle, hundreds of times sooner than a simulator."""
