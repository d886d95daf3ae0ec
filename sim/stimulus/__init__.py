"""Stimulus: what is driven into a unit, what must come back, and what that covers; made before the simulation."""
