"""To be imported by the server that the processes of a run are copies of: Yosys is loaded there, once for all units."""

from contextlib import suppress

from tools.yosys import load

# Without Yosys, each unit reports that it is missing.
with suppress(RuntimeError):
    load()
