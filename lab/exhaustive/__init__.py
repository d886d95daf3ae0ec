"""Checks over every input there is: no sample, no stimulus, no doubt about what was left out.

Quantisers, the netlists of all converters with their flags, and fused steps of tiny formats: ``python -m
lab.exhaustive`` or ``make exhaustive``.
"""
