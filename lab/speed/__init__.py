"""The speed of golden's matrix products, and the share of wrong outputs of other libraries.

``python -m lab.speed`` or ``make bench`` measures both and writes build/bench.
"""
