"""Verilog of a unit as an and-inverter graph with registers, by way of Yosys and its binary AIGER."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.netlists.yosys import run_yosys

__all__ = ["AigerUnit", "read_aiger", "unit_of_verilog"]

#: Memories become registers, words become gates. Nothing here optimises registers away.
_SCRIPT = (
    "read_verilog unit.v; hierarchy -auto-top; proc; flatten -noscopeinfo; opt_expr; opt_clean; "
    "memory -nomap; memory_map; opt_expr; opt_merge; opt_clean; dffunmap; opt_expr -full; opt_clean; "
    "techmap; opt_expr; opt_merge; opt_clean; dffunmap; aigmap; opt_merge; opt_clean; write_aiger -symbols unit.aig"
)
_SYMBOL = re.compile(r"^([io])(\d+) (.+)$")


@dataclass(frozen=True)
class AigerUnit:
    """A unit of two-input gates. Literals are written as in AIGER: twice a variable, plus one if it is inverted.

    Parameters
    ----------
    inputs : dict of str to int
        The variable of each input bit, by its name.
    registers : list of (int, int, int)
        Variable, literal of the next value, value at power-up.
    outputs : dict of str to int
        The literal of each output bit, by its name.
    gates : list of (int, int, int)
        Variable and both inputs, each gate behind those that it needs.
    """

    inputs: dict[str, int]
    registers: list[tuple[int, int, int]]
    outputs: dict[str, int]
    gates: list[tuple[int, int, int]]


def unit_of_verilog(text: str) -> AigerUnit:
    """Return a unit from its Verilog.

    Raises
    ------
    ToolError
        If Yosys reports an error.
    ValueError
        If a register has no value at power-up.
    """
    with TemporaryDirectory() as work:
        folder = Path(work)
        (folder / "unit.v").write_text(text, encoding="utf-8")
        run_yosys(_SCRIPT, folder)
        return read_aiger((folder / "unit.aig").read_bytes())


def read_aiger(written: bytes) -> AigerUnit:
    """Read binary AIGER with its symbols."""
    header, at = _line(written, 0)
    kind, *numbers = header.split()
    if kind != "aig":
        raise ValueError(f"written: got a header {header!r}, must be binary AIGER")
    _, input_count, register_count, output_count, gate_count = map(int, numbers[:5])
    registers = []
    for number in range(register_count):
        line, at = _line(written, at)
        variable, (following, *initial) = input_count + number + 1, map(int, line.split())
        value = initial[0] if initial else 0
        if value not in (0, 1):
            raise ValueError(f"written: got register {number} without a value at power-up, must have one")
        registers.append((variable, following, value))
    results = []
    for _ in range(output_count):
        line, at = _line(written, at)
        results.append(int(line))
    gates = []
    for number in range(gate_count):
        variable = input_count + register_count + number + 1
        more, at = _number(written, at)
        less, at = _number(written, at)
        one = 2 * variable - more
        gates.append((variable, one, one - less))
    names = {(kind, number): name for kind, number, name in _symbols(written[at:].decode())}
    return AigerUnit(
        inputs={names["i", number]: number + 1 for number in range(input_count)},
        registers=registers,
        outputs={names["o", number]: literal for number, literal in enumerate(results)},
        gates=gates,
    )


def _symbols(text: str) -> Iterator[tuple[str, int, str]]:
    for line in text.splitlines():
        if line == "c":
            return
        if found := _SYMBOL.match(line):
            yield found[1], int(found[2]), found[3]


def _line(written: bytes, at: int) -> tuple[str, int]:
    end = written.index(b"\n", at)
    return written[at:end].decode(), end + 1


def _number(written: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, the least significant first."""
    value = shift = 0
    while True:
        byte = written[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
