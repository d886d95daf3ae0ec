"""The parts of the matrix engine beside models of the bytes that they may touch: see `lab.proofs.engine_bounds`."""
