"""``python -m sim.run.generate UNIT FILE``: the Verilog of a unit, from whichever `hdl` Python finds first.

It prints where that `hdl` lies, so that the caller knows which one it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hdl
from hdl.verilog import to_verilog
from sim.units import UNITS


def _main(unit: str, file: str) -> None:
    Path(file).write_text(to_verilog(UNITS[unit].build(), unit), encoding="utf-8")
    print(Path(hdl.__file__).resolve().parent)


if __name__ == "__main__":
    _main(*sys.argv[1:])
