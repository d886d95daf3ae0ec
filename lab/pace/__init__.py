"""The pace of units: products per cycle, per second and per area.

``python -m lab.pace`` measures it at full rate, with the frequencies and areas that `lab.fpga` has measured.
"""
