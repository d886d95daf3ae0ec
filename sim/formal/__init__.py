"""Proofs, for every input, that the RTL computes what IEEE 754 and the numeric contract say."""
