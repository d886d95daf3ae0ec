"""The ports of a unit as a table: one signal, or one field of a signal, on each line."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth import Shape
from amaranth.lib import data, wiring

from golden.nearest import complete
from hdl.catalogue import Kind
from hdl.mac.ports import product_beat_layout, result_beat_layout
from hdl.matrix.ports import matrix_beat_layout, matrix_result_layout
from hdl.mx.quantizer import element_beat_layout, value_beat_layout
from hdl.vector.ports import vector_beat_layout, vector_result_layout

__all__ = ["UNKNOWN", "Row", "meanings", "rows"]

_HANDSHAKES = {
    "i__valid": "the sender offers a transfer",
    "i__ready": "the unit takes it",
    "o__valid": "the unit offers a result",
    "o__ready": "the receiver takes it",
}
_CLOCK = {"clk": "clock, rising edge", "rst": "synchronous reset, active high"}
#: Meaning of an undocumented port.
UNKNOWN = "?"
#: The functions that lay out and document what goes into a kind of units, and what comes out; of a converter, nothing.
_LAYOUTS: dict[Kind, tuple[Callable[..., Any], ...]] = complete(
    "docs.pages.ports._LAYOUTS",
    {
        Kind.CONVERTER: (),
        Kind.MX_QUANTIZER: (value_beat_layout, element_beat_layout),
        Kind.MAC: (product_beat_layout, result_beat_layout),
        Kind.VECTOR: (vector_beat_layout, vector_result_layout),
        Kind.MATRIX: (matrix_beat_layout, matrix_result_layout),
    },
    (kind for kind in Kind if kind.core is kind),
)
_ENTRY = re.compile(r"^((?:``\w+``(?:, )?)+)\n((?:    .+\n?)+)", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A signal, or a field of one.

    Parameters
    ----------
    signal : str
        Its name in the Verilog, and its bits.
    field : str
        The field in these bits; empty for a whole signal.
    direction : str
        ``in`` or ``out``; empty for a field.
    width : int
        Bits.
    meaning : str
    """

    signal: str
    field: str
    direction: str
    width: int
    meaning: str


def rows(kind: Kind, unit: wiring.Component) -> list[Row]:
    """Return the ports of a unit of a kind, inputs first as they stand in its signature."""
    notes = dict(getattr(unit, "port_notes", {}))
    flattened = [("__".join(map(str, path)), member) for path, member, _ in unit.signature.flatten(unit)]
    found = []
    if not any(name in ("aclk", "clk") for name, _ in flattened):
        found = [Row(name, "", "in", 1, _sentence(meaning)) for name, meaning in _CLOCK.items()]
    for name, member in flattened:
        width = Shape.cast(member.shape).width
        if not width:
            continue
        is_struct = isinstance(member.shape, data.Layout)
        meaning = _sentence(notes.get(name) or _handshake(name) or ("" if is_struct else UNKNOWN))
        direction = "in" if member.flow is wiring.In else "out"
        found.append(Row(f"{name}[{width - 1}:0]" if width > 1 else name, "", direction, width, meaning))
        if is_struct:
            found += _field_rows(meanings(kind, unit, direction), name, member.shape)
    return found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _handshake(name: str) -> str:
    """Return the meaning of a stream's ``valid`` or ``ready``, else an empty text; signals may have any prefix."""
    side = "i" if name.startswith(("i_", "s_axis")) else "o"
    ends = {"valid": f"{side}__valid", "ready": f"{side}__ready"}
    return next((_HANDSHAKES[full] for end, full in ends.items() if name.endswith(end)), "")


def _field_rows(known: Mapping[str, str], name: str, layout: data.Layout) -> Iterator[Row]:
    for key, field in layout:
        if field.width:
            low, high = field.offset, field.offset + field.width - 1
            bits = f"[{high}:{low}]" if field.width > 1 else f"[{low}]"
            meaning = _sentence(known.get(key, UNKNOWN)) + _inside(field.shape)
            yield Row(f"{name}{bits}", key, "", field.width, meaning)


def meanings(kind: Kind, unit: wiring.Component, direction: str) -> dict[str, str]:
    """Return the meaning of each field of a unit's input or output, as the functions that lay them out document it."""
    found = {"bits": f"code of {getattr(unit, 'destination', '')}", "unused": "0", "flags": "flags of the conversion"}
    if direction == "in":
        found["unused"] = "ignored"
    for layout in _LAYOUTS[kind.core][direction == "out" :][:1]:
        for names, meaning in _ENTRY.findall(f"{inspect.getdoc(layout)}\n"):
            found |= dict.fromkeys(re.findall(r"\w+", names), " ".join(meaning.split()))
    return found


def _inside(shape: Any) -> str:
    """Name the elements of an array, the bits of a struct and the values of an enumeration."""
    if isinstance(shape, data.ArrayLayout):
        each = Shape.cast(shape.elem_shape).width
        return f" {shape.length} of {each} bits, the first in the lowest bits.{_inside(shape.elem_shape)}"
    if isinstance(shape, data.Layout):
        return f" From the lowest bit up: {', '.join(key for key, _ in shape)}."
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return " " + ", ".join(f"{member.value}: {member.name}" for member in shape) + "."
    return ""
