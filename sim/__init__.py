"""The RTL regression: generated Verilog in a simulator, held against the golden model by cocotb testbenches."""
