"""Imported by the fork server of a run, to load Yosys once for all units."""

from contextlib import suppress

from tools.yosys import load

# Without Yosys, each unit reports that it is missing.
with suppress(RuntimeError):
    load()
