"""The register table as a C header and as a table of a page."""

from __future__ import annotations

from collections.abc import Iterator

from golden.flags import Flag
from golden.rounding import Rounding
from hdl.matrix_engine.registers import (
    FORMAT_CODES,
    IDENTITY,
    QUEUE_DEPTH,
    REGISTERS,
    RESULT_DEPTH,
    VERSION,
    Access,
    EngineError,
    Field,
    Initial,
    Register,
)

__all__ = ["MARKERS", "filled", "to_header", "to_markdown"]

#: Around the table in a page.
MARKERS = "<!-- registers:begin -->", "<!-- registers:end -->"

_PREFIX = "MATRIX_ENGINE"
_WHOLE = 32
_ACCESS = {
    Access.READ: "read",
    Access.READ_WRITE: "read, write",
    Access.WRITE: "write",
    Access.POP: "read; a write removes",
}


def to_header() -> str:
    """Return a C header: offsets of registers, positions and masks of fields, and the codes in them."""
    lines = [
        "/* Registers of hdl.MatrixEngine, made by `python -m hdl header`; do not edit. */",
        f"#ifndef {_PREFIX}_H",
        f"#define {_PREFIX}_H",
        "",
        *_define({"IDENTITY": IDENTITY, "VERSION": VERSION, "QUEUE_DEPTH": QUEUE_DEPTH, "RESULT_DEPTH": RESULT_DEPTH}),
    ]
    for register in REGISTERS:
        name = register.name
        lines += ["", f"/* {name} ({_ACCESS[register.access]}): {register.description} */"]
        lines += _define({name: register.address})
        for field in register.fields:
            if field.width < _WHOLE:
                lines += [f"/* {field.description} */"]
                lines += _define({f"{name}_{field.name}_SHIFT": field.low, f"{name}_{field.name}_MASK": field.mask})
    for about, values in (
        ("RESULT.error", {f"ERROR_{each.name}": each.value for each in EngineError}),
        ("OPTIONS.initial", {f"INITIAL_{each.name}": each.value for each in Initial}),
        ("formats", {f"FORMAT_{name}": code for name, code in FORMAT_CODES.items()}),
        ("OPTIONS.rounding", {f"ROUNDING_{mode}": mode.value for mode in Rounding}),
        ("RESULT.flags", {f"FLAG_{flag.name}": flag.value for flag in Flag}),
    ):
        lines += ["", f"/* {about} */", *_define(values)]
    return "\n".join([*lines, "", "#endif", ""])


def _define(values: dict[str, int]) -> Iterator[str]:
    for name, value in values.items():
        yield f"#define {_PREFIX}_{name.upper()} {value:#x}u"


def to_markdown() -> str:
    """Return the table of all registers and fields."""
    lines = ["| address | register | bits | access | contents |", "|---|---|---|---|---|"]
    for register in REGISTERS:
        lines += _rows(register)
    return "\n".join(lines) + "\n"


def _rows(register: Register) -> Iterator[str]:
    access = _ACCESS[register.access]
    head = f"| {register.address:#04x} | `{register.name}` |"
    if len(register.fields) == 1 and register.fields[0].width == _WHOLE:
        yield f"{head} 31:0 | {access} | {register.fields[0].description} |"
        return
    yield f"{head} | {access} | {register.description} |"
    for field in register.fields:
        yield f"| | | {_bits(field)} | | `{field.name}`: {field.description} |"


def _bits(field: Field) -> str:
    return str(field.low) if field.width == 1 else f"{field.low + field.width - 1}:{field.low}"


def filled(page: str) -> str:
    """Return a page with the table between `MARKERS`.

    Raises
    ------
    ValueError
        If the page has no such place.
    """
    begin, end = MARKERS
    before, found, rest = page.partition(begin)
    _, also, after = rest.partition(end)
    if not found or not also:
        raise ValueError(f"page: got one without {begin} ... {end}, must have both")
    return f"{before}{begin}\n{to_markdown()}{end}{after}"
