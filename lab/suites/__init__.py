"""Vectors published by others, run against the golden model and the netlists.

``python -m lab.suites FILE...`` reads files of vectors; docs/outside-suites.md names their sources.
"""
