"""A self-test of the multiply-accumulate unit on an FPGA board: it shows on LEDs and a UART whether the chip agrees."""
