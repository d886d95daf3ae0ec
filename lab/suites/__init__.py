"""Vectors that others have published, run against the golden model and the netlists.

They are read from their own files: ``python -m lab.suites FILE...``; docs/outside-suites.md says where they come from.
"""
