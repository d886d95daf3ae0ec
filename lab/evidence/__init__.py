"""What is known of every unit, and from which run.

It is collected from what the other rooms have left in build/evidence, and drawn on one screen and in one picture:
``python -m lab.evidence`` or ``make evidence``.
"""
