"""Faults put into `golden` by the hundred: ``python -m tests.faults`` makes them, judges them and writes the score.

A fault is one small change of the source, as a slip of the hand would make it. A fault that no judge notices
*survives*. The list of survivors, each with its reason, shows where tests are missing.
"""
