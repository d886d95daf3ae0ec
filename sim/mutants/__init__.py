"""Bugs put into the RTL one at a time, to prove that the regression can fail."""
