"""Proofs about the converters: every pair of formats, code and flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from golden import reference
from golden.formats import CONVERSIONS, FloatFormat
from hdl.cores.conversion import Convert
from lab.proofs import by_interval, by_theory
from lab.proofs.netlist import Netlist
from lab.proofs.proof import BITWUZLA, CVC5, Z3_CADICAL, Proof
from lab.proofs.terms import refute, split_result
from lab.proofs.yosys import netlist_of

__all__ = ["converter_proofs", "formula", "say_result"]


def converter_proofs() -> Iterator[Proof]:
    """Yield the proofs of the combinational converters."""
    for source, destination in CONVERSIONS:
        for specification, module, engine in (
            ("to_fp", by_theory, Z3_CADICAL),
            ("to_fp", by_theory, CVC5),
            ("interval", by_interval, BITWUZLA),
        ):
            yield Proof(
                f"converter/{source}_to_{destination}/{specification}",
                "converter",
                f"{source} to {destination}",
                specification,
                engine,
                partial(_build, source, destination, module.conversion),
                timeout=120,
                fast=True,
                explain=partial(_explain, source, destination),
            )


def _build(source: FloatFormat, destination: FloatFormat, specification: by_theory.Conversion, folder: Path) -> str:
    return formula(netlist_of(Convert(source, destination), folder), source, destination, specification)


def formula(
    netlist: Netlist, source: FloatFormat, destination: FloatFormat, specification: by_theory.Conversion
) -> str:
    """Return what has a solution if a netlist with the ports of `Convert` is no conversion."""
    unit = netlist.instance()
    text = unit.text + unit.shown + split_result(unit, destination)
    return text + specification(unit.port("code"), source, destination, "out", "flags") + refute("correct")


def _explain(source: FloatFormat, destination: FloatFormat, ports: Mapping[str, int]) -> str:
    return say_result(reference.convert(ports["code"], source, destination), ports["o"], destination, destination.width)


def say_result(wanted: tuple[int, int], given: int, fmt: FloatFormat, width: int) -> str:
    """Say what golden says of operands, and who is wrong: the unit or the specification."""
    got = given & (1 << fmt.width) - 1, given >> width
    text = (
        f"golden.reference gives {wanted[0]:#x} with flags {int(wanted[1]):#x}, the unit {got[0]:#x} with {got[1]:#x}"
    )
    return text + (": the unit is right, the specification is not" if got == wanted else "")
