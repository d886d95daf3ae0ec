"""Products of real training runs, computed once more by the Verilog that users get, and compared bit for bit."""
