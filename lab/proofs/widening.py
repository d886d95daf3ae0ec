"""Proof about the rank that widens operands: it is a queue of its core's results, as a converter is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from golden.formats import NARROW_FORMATS
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import product_beat_layout
from hdl.mac.widen import WidenBeat, Widening
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout
from lab.proofs.netlist import Instance, Netlist
from lab.proofs.pipelines import stream_formula
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.yosys import SEQUENTIAL, netlist_of

__all__ = ["widening_proofs"]

_UNITS = {"mac": (MacParameters, product_beat_layout), "vector_mac": (VectorParameters, vector_beat_layout)}


def widening_proofs() -> Iterator[Proof]:
    """Yield the proofs of the rank ahead of both units, with every named format of 8 bits and fewer."""
    for unit in _UNITS:
        for engine in (BITWUZLA, Z3_CADICAL):
            yield Proof(
                f"widening/{unit}",
                "widening of operands",
                unit,
                "queue of the core's results",
                engine,
                partial(_build, unit),
                timeout=120,
                fast=engine == BITWUZLA,
            )


def _build(unit: str, folder: Path) -> str:
    kind, layout = _UNITS[unit]
    parameters = kind(operands=NARROW_FORMATS)
    layouts = (layout(parameters), layout(parameters.core))  # type: ignore[arg-type]  # each its own kind's

    def joins(core: Netlist, unit: Netlist, payload: str) -> tuple[Instance, str]:
        result = core.instance("core", given={"i": payload})
        return result, result.port("o")

    rank = netlist_of(Widening(parameters, *layouts), folder, SEQUENTIAL)
    return stream_formula(rank, netlist_of(WidenBeat(parameters, *layouts), folder), 1, joins)
