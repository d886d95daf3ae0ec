"""Pictures of what narrow formats and precision levels do to sums, products and training.

All are drawn from runs made here: ``python -m lab.figures`` or ``make figures``.
"""
