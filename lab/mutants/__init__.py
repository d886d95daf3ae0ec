"""Bugs put into the RTL one at a time, to prove that the regression can fail.

``python -m lab.mutants`` or ``make sim-mutants`` simulates each and says which scenario has caught it.
"""
