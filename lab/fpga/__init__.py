"""Area and speed of the units on a Lattice ECP5, measured with Yosys and nextpnr.

A unit is synthesised alone, so that its area is its own, and then placed and routed inside a wrapper of three pins, so
that every path through it goes from register to register: ``python -m lab.fpga`` or ``make fpga``. The extra ``fpga``
installs the tools.
"""
