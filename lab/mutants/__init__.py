"""Bugs put into the RTL one at a time, to prove that the regression can fail.

``python -m lab.mutants`` or ``make sim-mutants`` simulates each bug and names the scenario that caught it.
"""
