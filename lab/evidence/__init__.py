"""The evidence for every unit, and the run that it comes from.

It is collected from what the other rooms have left in build/evidence, and drawn on one screen and in one picture:
``python -m lab.evidence`` or ``make evidence``.
"""
