"""Checks over every input, which leave no doubt about inputs that a sample would have missed.

Quantisers, the netlists of all converters with their flags, and fused steps of tiny formats: ``python -m
lab.exhaustive`` or ``make exhaustive``.
"""
