"""Generating, building and simulating units, several at a time, and telling what came of it."""
