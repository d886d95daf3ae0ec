"""Proofs, for every input, that the RTL computes what IEEE 754 and the numeric contract say.

Netlists become terms, specifications are written in the same terms, and solvers decide: ``python -m lab.proofs`` or
``make formal``, with ``--tier=fast`` for the short ones.
"""
