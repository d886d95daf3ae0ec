"""The pace of the matrix engine: the share of its array's peak that whole products reach.

``python -m lab.engine`` runs them in the simulation, for both widths of the bus and several latencies of the memory.
"""
