"""Bitstreams for FPGA boards: a self-test of the multiply-accumulate unit, or a matrix engine for the driver.

The self-test shows on LEDs and a UART whether the chip agrees with the golden model: `expectation` is golden's side,
the rest is hardware. The engine answers the driver on the UART. ``python -m lab.boards BOARD`` or ``make bitstream``
builds the bitstream with Yosys and nextpnr.
"""
