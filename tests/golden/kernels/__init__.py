"""The compiled kernels: on every path that this machine runs, the bits of NumPy and of the reference."""
