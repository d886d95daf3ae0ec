"""How many products a unit takes in a cycle, and what that makes per second and per area.

``python -m lab.pace`` measures it at full rate, with the frequencies and areas that `lab.fpga` has measured.
"""
