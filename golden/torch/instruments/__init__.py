"""Instruments that look at a model: the audit, observations, their report, advice on levels."""
