"""A self-test of the multiply-accumulate unit for an FPGA board.

It shows on LEDs and a UART whether the chip agrees with the golden model: `expectation` is golden's side, the rest is
hardware. ``python -m lab.boards BOARD`` or ``make bitstream`` builds the bitstream with Yosys and nextpnr.
"""
