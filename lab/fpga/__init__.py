"""Area and speed of the units on FPGAs, measured with Yosys and nextpnr, or estimated in standard cells.

A unit is synthesised alone for its area. It is then placed and routed inside a wrapper of three pins, in which every
path through the unit goes from register to register. Run ``python -m lab.fpga`` or ``make fpga``; the extra ``fpga``
installs the tools.
"""
