"""The designs under test: the golden model in both its forms, and netlists compiled by CXXRTL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

import golden
from golden import FP32
from golden.arrays.checks import code_dtype
from golden.formats import HALF_FORMATS
from golden.reference import convert, multiply_accumulate
from golden.rounding import Rounding
from hdl.cores.conversion import Convert
from hdl.cores.fused_step import FusedStep
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from lab.suites.functions import Codes, Conversion, Operation, Step
from tools.compiled import Compiled, fields

__all__ = ["DESIGNS", "THREE", "Design"]

#: Results and flags of a unit on arrays of operands in a mode, or None if the design lacks the unit.
Design: TypeAlias = Callable[[Operation, Sequence[Codes], Rounding], tuple[Codes, Codes] | None]

#: The formats of the fused step that chooses the formats of operands and accumulator at run time.
THREE = StepFormats(HALF_FORMATS, (*HALF_FORMATS, FP32))


def run_golden(unit: Operation, operands: Sequence[Codes], rounding: Rounding) -> tuple[Codes, Codes]:
    """Run the array functions."""
    if isinstance(unit, Conversion):
        return golden.convert(operands[0], unit.source, unit.destination, rounding=rounding, return_flags=True)
    a, b, acc = operands
    results, flags = golden.multiply_accumulate(
        a, b, acc, operand=unit.operand, accumulator=unit.accumulator, rounding=rounding, return_flags=True
    )
    return results, flags


def run_reference(unit: Operation, operands: Sequence[Codes], rounding: Rounding) -> tuple[Codes, Codes]:
    """Run `golden.reference`, vector by vector."""
    rows = zip(*(each.tolist() for each in operands), strict=True)
    if isinstance(unit, Conversion):
        made = [convert(code, unit.source, unit.destination, rounding=rounding) for (code,) in rows]
    else:
        made = [
            multiply_accumulate(a, b, acc, operand=unit.operand, accumulator=unit.accumulator, rounding=rounding)
            for a, b, acc in rows
        ]
    results, flags = zip(*made, strict=True)
    return np.array(results, code_dtype(unit.result)), np.array(flags, np.uint8)


def run_netlist(unit: Operation, operands: Sequence[Codes], rounding: Rounding) -> tuple[Codes, Codes] | None:
    """Run the netlist of a core built for only these formats and this mode; no core has float32 operands."""
    if isinstance(unit, Step) and unit.operand == FP32:
        return None
    inputs = ("code",) if isinstance(unit, Conversion) else ("a", "b", "acc")
    made = _core(unit, rounding)(**dict(zip(inputs, operands, strict=True)))
    both = fields(result_layout(unit.result.width), made["o"])
    return both["bits"], both["flags"]


def run_shared_netlist(unit: Operation, operands: Sequence[Codes], rounding: Rounding) -> tuple[Codes, Codes] | None:
    """Run the netlist of the fused step for three operand formats in one of its modes."""
    if not isinstance(unit, Step) or unit.operand not in THREE.operands or unit.accumulator not in THREE.accumulators:
        return None
    mode = {
        "format": THREE.operands.index(unit.operand),
        "accumulator_format": THREE.accumulators.index(unit.accumulator),
    }
    made = _shared_step(rounding)(**dict(zip(("a", "b", "acc"), operands, strict=True)), **mode)
    both = fields(result_layout(FP32.width), made["o"])
    return both["bits"], both["flags"]


@lru_cache
def _core(unit: Operation, rounding: Rounding) -> Compiled:
    if isinstance(unit, Conversion):
        return Compiled(Convert(unit.source, unit.destination, roundings=(rounding,)))
    return Compiled(FusedStep(StepFormats((unit.operand,), (unit.accumulator,), roundings=(rounding,))))


@lru_cache
def _shared_step(rounding: Rounding) -> Compiled:
    return Compiled(FusedStep(replace(THREE, roundings=(rounding,))))


DESIGNS: dict[str, Design] = {
    "golden": run_golden,
    "reference": run_reference,
    "netlist": run_netlist,
    "shared-netlist": run_shared_netlist,
}
