"""The evidence for every unit, and the run that it comes from.

The other rooms leave their findings in build/evidence. ``python -m lab.evidence`` or ``make evidence`` collects them in
one table and one picture.
"""
