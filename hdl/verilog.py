"""Plain Verilog of a unit, its parameters and ports documented in the header comment."""

from __future__ import annotations

import enum
import os
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from amaranth import Shape
from amaranth.lib import data, wiring

from hdl.definitions import shown
from hdl.parameters import Parameters

__all__ = ["KEYWORDS", "to_verilog"]

#: What units for a family of FPGAs instantiate.
_PRIMITIVES = {"CCU2C", "MULT18X18", "MULT18X18D", "TRELLIS_FF"}
#: A field without bits, such as the format in a unit with a single one, becomes the declaration of an unused wire.
_EMPTY_WIRE = re.compile(r"^ *wire \[-1:0\] \S+ ?;\n", re.MULTILINE)

#: Yosys declares a variable in a module and reads it in processes, which simulators then evaluate at time 0.
_STARTS = re.compile(r"^  reg (\\\$auto\$\S+ ) = 0;\n", re.MULTILINE)
#: A process of one assignment, which does not read that variable.
_ASSIGNMENT = re.compile(r"^  always @\*\n    (.*;)\n", re.MULTILINE)


def to_verilog(unit: wiring.Component, name: str) -> str:
    """Return the Verilog of a unit, as one self-contained text.

    Parameters
    ----------
    unit : wiring.Component
        A unit of `hdl`.
    name : str
        Name of the top module.

    Raises
    ------
    TypeError
        If `unit` is not a component.
    ValueError
        If `name` is not a Verilog identifier, or is a keyword of Verilog or SystemVerilog, or a primitive of an FPGA.
    """
    if not isinstance(unit, wiring.Component):
        raise TypeError(f"unit: got {unit!r}, must be a unit of hdl")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"name: got {name!r}, must be a Verilog identifier (letters, digits, _; no digit first)")
    if name in KEYWORDS:
        raise ValueError(f"name: got {name!r}, a keyword of (System)Verilog; choose another, such as {name}_unit")
    if name in _PRIMITIVES:
        raise ValueError(f"name: got {name!r}, a primitive of an FPGA; choose another, such as {name}_unit")
    # An installed Debian yosys is too old for Amaranth; the one packaged with Amaranth is known to work.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    from amaranth.back import verilog

    text = verilog.convert(unit, name=name, emit_src=False, strip_internal_attrs=True)
    return _header(unit, name) + _started(_EMPTY_WIRE.sub("", text))


def _started(text: str) -> str:
    """Return Verilog whose logic is also evaluated at time 0 by a simulator of SystemVerilog.

    There, a declaration with a value is no event. A delayed assignment is one, when all processes wait for it.
    """
    modules = []
    for module in re.split(r"^(?=module )", text, flags=re.MULTILINE):
        if variable := _STARTS.search(module):
            module = _STARTS.sub("", module).replace(variable[1], r"\$start ")
        module = _ASSIGNMENT.sub(r"  always @* begin\n    if (\\$start ) begin end\n    \1\n  end\n", module)
        if r"\$start " in module:
            module = module.replace(";\n", ";\n  reg \\$start ; initial \\$start <= 0;\n", 1)
        modules.append(module)
    return "".join(modules)


def _header(unit: wiring.Component, name: str) -> str:
    lines = [f"{name}: {type(unit).__name__}", ""]
    summary = (type(unit).__doc__ or "").strip().split("\n\n")[0]
    lines += [*textwrap.wrap(" ".join(summary.split()), 110), ""]
    lines += ["Parameters", *(f"  {key} = {text}" for key, text in _parameters(unit)), ""]
    if reductions := getattr(getattr(unit, "parameters", None), "reductions", ()):
        lines += ["Reductions, as golden.Reduction.parse reads them, with chunks of 32"]
        lines += [*(f"  {each}" for each in reductions), ""]
    lines += ["Ports"]
    rows = []
    if not any(key in unit.signature.members for key in ("aclk", "clk")):
        rows = [("clk", "input", "clock, rising edge"), ("rst", "input", "synchronous reset, active high")]
    notes = getattr(unit, "port_notes", {})
    for port, member in sorted(_ports(unit), key=lambda port: port[0]):
        rows += _port_rows(port, member, notes.get(port, ""))
    width = max(len(row[0]) for row in rows)
    lines += [f"  {port:<{width}}  {direction:<6}  {meaning}".rstrip() for port, direction, meaning in rows]
    lines += ["", "A transfer takes place on a rising edge with valid and ready both high.", ""]
    lines += ["verilator lint_off INITIALDLY"]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _parameters(unit: wiring.Component) -> Iterator[tuple[str, str]]:
    parameters = getattr(unit, "parameters", None)
    if isinstance(parameters, Parameters):
        definitions, defaults = parameters.definitions(), parameters.defaults()
        for name, value in parameters.arguments().items():
            if not definitions[name].is_rare or value != defaults[name]:
                yield name, shown(value)
    for key in ("latency", "accumulate_latency"):
        if hasattr(unit, key):
            yield key, f"{getattr(unit, key)} cycles"


def _ports(unit: wiring.Component) -> Iterator[tuple[str, Any]]:
    for path, member, _ in unit.signature.flatten(unit):
        yield "__".join(map(str, path)), member


def _port_rows(port: str, member: Any, note: str) -> Iterator[tuple[str, str, str]]:
    direction = "input" if member.flow is wiring.In else "output"
    width = Shape.cast(member.shape).width
    if not width:
        return
    yield f"{port}[{width - 1}:0]" if width > 1 else port, direction, note
    if isinstance(member.shape, data.Layout):
        yield from _field_rows(member.shape, 0)


def _field_rows(layout: data.Layout, base: int) -> Iterator[tuple[str, str, str]]:
    for key, field in layout:
        if field.width:
            low = base + field.offset
            bits = f"[{low + field.width - 1}:{low}]" if field.width > 1 else f"[{low}]"
            yield f"  {bits}", "", f"{key}{_inside(field.shape)}"


def _inside(shape: Any) -> str:
    """List the bits of a field that is a struct, or the values of one that is an enumeration."""
    if isinstance(shape, data.ArrayLayout):
        each = Shape.cast(shape.elem_shape).width
        inside = _inside(shape.elem_shape)
        return f" ({shape.length} of {each} bit{'s' * (each > 1)}{inside}, the first in the lowest bits)"
    if isinstance(shape, data.Layout):
        return f" ({', '.join(key for key, _ in shape)}, least significant first)"
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return f" ({', '.join(f'{member.value} {member.name.lower()}' for member in shape)})"
    return ""


_VERILOG = """
always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam design
disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify endtable endtask
event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include initial inout input
instance integer join large liblist library localparam macromodule medium module nand negedge nmos nor noshowcancelled
not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup pulsestyle_ondetect
pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled
signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1
triand trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
"""
_SYSTEM_VERILOG = """
accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof bit break byte chandle
checker class clocking const constraint context continue cover covergroup coverpoint cross dist do endchecker endclass
endclocking endgroup endinterface endpackage endprogram endproperty endsequence enum eventually expect export extends
extern final first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies import inside int
interconnect interface intersect join_any join_none let local logic longint matches modport nettype new nexttime null
package packed priority program property protected pure rand randc randcase randsequence ref reject_on restrict return
s_always s_eventually s_nexttime s_until s_until_with sequence shortint shortreal soft solve static string strong
struct super sync_accept_on sync_reject_on tagged this throughout timeprecision timeunit type typedef union unique
unique0 until until_with untyped var virtual void wait_order weak wildcard with within
"""

#: In lower case, as in both languages; names that differ in case are allowed.
KEYWORDS = frozenset((_VERILOG + _SYSTEM_VERILOG).split())
