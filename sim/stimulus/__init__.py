"""Stimulus: the inputs of a unit, the expected answers and their coverage; generated before the simulation."""
