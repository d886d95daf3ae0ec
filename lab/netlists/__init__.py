"""Netlists of the units: read from Yosys for proofs, and rewritten with the faults of a generator."""
