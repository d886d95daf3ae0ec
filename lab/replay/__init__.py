"""Products of real training runs, computed again by the Verilog that users get.

They are compared bit for bit: ``python -m lab.replay`` or ``make replay``.
"""
