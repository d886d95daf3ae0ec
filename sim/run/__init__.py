"""Generating, building and simulating units, several at a time, and reporting the outcome."""
