"""To be imported by the server that the processes of a run are copies of: Yosys is loaded there, once for all units."""

from contextlib import suppress

from tools.yosys import load

# Without it, each unit says what is missing.
with suppress(RuntimeError):
    load()
