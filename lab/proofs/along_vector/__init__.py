"""Induction over the cycles of a vector unit: what its registers hold, how results leave, how long a beat waits."""
