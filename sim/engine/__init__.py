"""The regression of the matrix engine: cocotb with the buses of cocotbext-axi, against `golden.matmul`."""
