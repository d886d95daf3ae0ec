"""Proofs about the AXI4-Stream unit: its ports carry the ports of the unit inside, for every value of every wire.

The unit inside is left out: the proof compares its inputs and outputs with the wrapper's, port by port. A product of a
format or register that the unit lacks must reach it with a level that it refuses, and change nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from amaranth.lib import data

from golden.formats import CBFLOAT16, HALF_FORMATS, FloatFormat
from hdl.axi_stream import AxiStreamMac
from hdl.mac.ports import product_beat_layout, result_beat_layout
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import EVERTED_UNIT, netlist_of
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, field_of, refute, slice_of, widened

__all__ = ["axi_stream_proofs", "wiring_formula"]

_UNITS: dict[str, tuple[FloatFormat, ...]] = {"cbfloat16": (CBFLOAT16,), "configurable": HALF_FORMATS}
#: Bits of tuser, from the specification of the ports.
_REGISTER, _FORMAT, _LEVEL, _FIRST = (7, 0), (11, 8), (13, 12), (14, 14)
_OUT_REGISTER, _OUT_FLAGS, _OUT_ERROR = (7, 0), (12, 8), (14, 13)
_REFUSED_LEVEL = bits(3, 2)


def axi_stream_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of one format and of several."""
    for name, operands in _UNITS.items():
        for engine in (BITWUZLA, Z3_CADICAL):
            build = partial(_build, operands)
            claim = f"axi_stream/{name}"
            yield Proof(claim, "mac: AXI4-Stream", name, "wire by wire", engine, build, 60, fast=True)


def _build(operands: tuple[FloatFormat, ...], folder: Path) -> str:
    component = AxiStreamMac(operands=operands)
    return wiring_formula(component, netlist_of(component, folder, EVERTED_UNIT))


def wiring_formula(component: AxiStreamMac, netlist: Netlist) -> str:
    """Return a formula with a solution if a port of the unit or of its wrapper gets a wrong value."""
    unit, top = component.unit, netlist.instance()
    beat, answer = product_beat_layout(unit.parameters), result_beat_layout(unit.parameters)
    # Yosys keeps only one of the names that a wire has on its two sides.
    (payload,) = (name for name, width in netlist.outputs.items() if name.startswith("unit.") and width == beat.size)
    result = top.port("unit.o__payload")
    claims = [equal(top.port(inside), top.port(outside)) for inside, outside in _STRAIGHT.items()]
    reset = top.port("unit.rst") if "unit.rst" in netlist.outputs else "#b0"  # Yosys leaves out what never changes
    claims += [
        equal(reset, f"(bvnot {top.port('aresetn')})"),
        equal(top.port("m_axis_tlast"), "#b1"),
        *_products(top, top.port(payload), beat, len(unit.operands), unit.registers),
    ]
    width = answer["result"].width
    claims.append(equal(top.port("m_axis_tdata"), widened(field_of(result, answer, "result"), width, 32)))
    for name, place in (("register", _OUT_REGISTER), ("flags", _OUT_FLAGS), ("error", _OUT_ERROR)):
        wanted = widened(field_of(result, answer, name), answer[name].width, place[0] - place[1] + 1)
        claims.append(equal(slice_of(top.port("m_axis_tuser"), *place), wanted))
    return top.text + top.shown + refute(both(*claims))


#: Direct connections: port of the unit, port of the wrapper.
_STRAIGHT = {
    "unit.clk": "aclk",
    "unit.chunk": "chunk",
    "unit.i__valid": "s_axis_tvalid",
    "s_axis_tready": "unit.i__ready",
    "m_axis_tvalid": "unit.o__valid",
    "unit.o__ready": "m_axis_tready",
}


def _products(top: Instance, payload: str, beat: data.StructLayout, formats: int, registers: int) -> list[str]:
    """Return the claims that the unit gets the product on the wrapper's wires, or one that it refuses."""
    operands, user = top.port("s_axis_tdata"), top.port("s_axis_tuser")
    register, fmt = slice_of(user, *_REGISTER), slice_of(user, *_FORMAT)
    lacking = [] if registers == 256 else [f"(bvuge {register} {bits(registers, 8)})"]
    lacking += [] if formats == 16 else [f"(bvuge {fmt} {bits(formats, 4)})"]
    is_lacking = either(*lacking)
    level = f"(ite {is_lacking} {_REFUSED_LEVEL} {slice_of(user, *_LEVEL)})"
    wanted = {
        "a": slice_of(operands, 15, 0),
        "b": slice_of(operands, 31, 16),
        "level": level,
        "first": slice_of(user, *_FIRST),
        "last": top.port("s_axis_tlast"),
        "register": slice_of(register, beat["register"].width - 1, 0),
    }
    if width := beat["format"].width:
        wanted["format"] = slice_of(fmt, width - 1, 0)
    return [equal(field_of(payload, beat, name), word) for name, word in wanted.items()]
