"""The RTL regression: cocotb testbenches compare the generated Verilog with the golden model.

``python -m sim`` or ``make sim`` runs all units. `units` lists them, and `stimulus` generates inputs and expected
answers. `tests` and `bench` run in the simulator; `cycles` runs the same scenarios as machine code.
"""

from tools.extras import name_missing_extras

name_missing_extras()
