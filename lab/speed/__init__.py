"""How fast golden's matrix products are, and how many outputs of other libraries differ from the contract's.

``python -m lab.speed`` or ``make bench`` measures both and writes build/bench.
"""
