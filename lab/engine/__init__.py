"""The pace of the matrix engine: how much of its array's peak whole products reach.

``python -m lab.engine`` runs them in the simulation, for both widths of the bus and several latencies of the memory.
"""
