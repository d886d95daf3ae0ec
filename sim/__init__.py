"""The RTL regression: generated Verilog in a simulator, held against the golden model by cocotb testbenches.

``python -m sim`` or ``make sim`` runs all units; `units` lists them, `stimulus` makes what is driven and expected, the
testbenches ``tb_*.py`` and `bench` run inside the simulator, and `cycles` runs the same scenarios as machine code.
"""
