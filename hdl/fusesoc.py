"""The core file of a released unit for FuseSoC, a package manager for hardware."""

from __future__ import annotations

import json
from importlib.metadata import version

from hdl.catalogue import Unit
from hdl.definitions import shown

__all__ = ["to_core"]

#: Vendor and library in a core's FuseSoC name; the unit and the version follow.
_LIBRARY = "cbfloat:arithmetic"

_CORE = """\
CAPI=2:

name: {library}:{name}:{version}
description: {description}

filesets:
  rtl:
    files:
      - {name}.v
    file_type: verilogSource-2005

targets:
  default:
    description: The Verilog alone, for cores that depend on this one
    filesets: [rtl]

  lint:
    description: Verilator checks the module
    filesets: [rtl]
    flow: lint
    flow_options:
      tool: verilator
      # Yosys wrote the Verilog: registers have an initial value and a reset, the widths of constants are its own, and
      # a case that is not listed keeps the value from before. A port of the matrix engine is called interrupt.
      verilator_options: [-Wfuture-PROCASSINIT, -Wno-PROCASSINIT, -Wno-WIDTH, -Wno-UNOPTFLAT, -Wno-CASEINCOMPLETE,
        -Wno-SYMRSVDWORD]
    toplevel: {name}

  model:
    description: Verilator makes a C++ model of the module, for a testbench of yours (run with --setup --build)
    filesets: [rtl]
    flow: sim
    flow_options:
      tool: verilator
      mode: cc
      exe: "false"
      verilator_options: [-Wno-fatal]
    toplevel: {name}

"""


def to_core(unit: Unit) -> str:
    """Return the FuseSoC core file (CAPI2) of a unit; its Verilog is in ``NAME.v`` in the same folder.

    Parameters
    ----------
    unit : hdl.catalogue.Unit
        The unit. The core, the top module and the Verilog file have its name.
    """
    arguments = ", ".join(f"{name} = {shown(value)}" for name, value in unit.arguments.items())
    return _CORE.format(
        library=_LIBRARY,
        name=unit.name,
        version=version("cbfloat"),
        description=json.dumps(f"{unit.kind.about}: {arguments}"),
    )
