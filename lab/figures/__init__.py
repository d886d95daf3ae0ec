"""Pictures of the effects of narrow formats and precision levels on sums, products and training.

``python -m lab.figures`` or ``make figures`` makes the runs and draws them.
"""
