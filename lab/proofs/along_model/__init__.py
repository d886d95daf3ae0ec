"""Induction over the cycles of a multiply-accumulate unit that runs beside its sequential model."""
