"""A netlist as bit-vector terms, read from the output of Yosys' ``write_smt2 -stbv``.

Yosys makes every net a function of one word ``state``, which holds inputs and registers. Here inputs, registers and
nets become constants. An instance of a netlist may be connected to another one, or to itself one cycle earlier: their
terms then replace its inputs and registers directly, and solvers see one expression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.netlists.errors import ToolError

__all__ = ["Instance", "Netlist", "parse"]

_PORT = re.compile(r"^; yosys-smt2-(input|output) (\S+) (\d+)$", re.MULTILINE)
_NET = re.compile(r"^\(define-fun \|top#(\d+)\| \(\(state \|top_s\|\)\) (Bool|\(_ BitVec \d+\)) (.*)\)$")
_NAMED = re.compile(r"^\(define-fun \|top_n (\S+)\| \(\(state \|top_s\|\)\) (Bool|\(_ BitVec \d+\)) (.*)\)$")
_NEXT = re.compile(r"^ *\(= (.*) \(\|top#(\d+)\| next_state\)\)$")
_INITIAL = re.compile(r"^  (\(= .*\))$")
_USE = re.compile(r"\(\|top#(\d+)\| state\)")
_TOKEN = re.compile(r"\|[^|]*\||[()]|[^\s()|]+")


@dataclass(frozen=True)
class Instance:
    """A netlist in its place.

    Parameters
    ----------
    text : str
        Declarations and definitions.
    prefix : str
    inputs, outputs : dict of str to int
        Width in bits of every port by its name.
    registers : dict of int to str
        The values of the registers in the next cycle, by their number.
    initial : str
        Whether the registers have their initial values.
    """

    text: str
    prefix: str
    inputs: dict[str, int]
    outputs: dict[str, int]
    registers: dict[int, str]
    initial: str

    def port(self, name: str) -> str:
        """Return the term of a port."""
        return f"|{self.prefix}.{name}|"

    @property
    def shown(self) -> str:
        """Constants that equal the outputs, so that a solution shows their values."""
        return "".join(
            f"(declare-const |shown.{name}| (_ BitVec {width}))\n(assert (= |shown.{name}| {self.port(name)}))\n"
            for name, width in self.outputs.items()
        )


@dataclass(frozen=True)
class Netlist:
    """The function of a module in one cycle.

    Parameters
    ----------
    inputs, outputs : dict of str to int
        Width in bits of every port by its name.
    leaves : dict of int to str
        Sort of the nets without a driver in the netlist: inputs, registers and undefined values.
    places : dict of int to list
        For a leaf that is an input, port and bit of each of its bits, the highest bit first.
    nets : list of (int, str, str)
        Number, sort and body of the other nets, each after the nets that it uses, as ``(|top#1| state)``.
    driven : dict of str to (str, str)
        Sort and body of the outputs.
    following : dict of int to str
        Body of a register's next value.
    initial : list of str
        Conditions on the registers at the start.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    leaves: dict[int, str]
    places: dict[int, list[tuple[str, int]]]
    nets: list[tuple[int, str, str]]
    driven: dict[str, tuple[str, str]]
    following: dict[int, str]
    initial: list[str]

    def instance(
        self, prefix: str = "top", *, given: Mapping[str, str] | None = None, held: Mapping[int, str] | None = None
    ) -> Instance:
        """Return the netlist with new constants.

        Parameters
        ----------
        prefix : str
            Begins the names of all constants.
        given : mapping of str to str, optional
            Terms at inputs; the other inputs are left open.
        held : mapping of int to str, optional
            Terms in registers; the other registers may have any value.
        """
        lines = []

        def here(body: str) -> str:
            return _USE.sub(rf"|{prefix}#\1|", body)

        for name, width in self.inputs.items():
            sort = f"(_ BitVec {width})"
            if given and name in given:
                lines.append(f"(define-fun |{prefix}.{name}| () {sort} {given[name]})")
            else:
                lines.append(f"(declare-const |{prefix}.{name}| {sort})")
        for number, sort in self.leaves.items():
            net = f"|{prefix}#{number}|"
            if number in self.places:
                lines.append(f"(define-fun {net} () {sort} {self._slices(number, prefix)})")
            elif held and number in held:
                lines.append(f"(define-fun {net} () {sort} {held[number]})")
            else:
                lines.append(f"(declare-const {net} {sort})")
        lines += [f"(define-fun |{prefix}#{number}| () {sort} {here(body)})" for number, sort, body in self.nets]
        for name, width in self.outputs.items():
            sort, body = self.driven[name]
            value = f"(ite {here(body)} #b1 #b0)" if sort == "Bool" else here(body)
            lines.append(f"(define-fun |{prefix}.{name}| () (_ BitVec {width}) {value})")
        registers = {number: here(body) for number, body in self.following.items()}
        initial = f"(and true {' '.join(map(here, self.initial))})"
        return Instance("\n".join(lines) + "\n", prefix, self.inputs, self.outputs, registers, initial)

    def _slices(self, number: int, prefix: str) -> str:
        bits = [f"((_ extract {bit} {bit}) |{prefix}.{port}|)" for port, bit in self.places[number]]
        ports = {port for port, _ in self.places[number]}
        (high, low) = (self.places[number][0][1], self.places[number][-1][1])
        if self.leaves[number] == "Bool":
            return f"(= {bits[0]} #b1)"
        if len(ports) == 1 and [bit for _, bit in self.places[number]] == list(range(high, low - 1, -1)):
            return f"((_ extract {high} {low}) |{prefix}.{ports.pop()}|)"
        return f"(concat {' '.join(bits)})" if len(bits) > 1 else bits[0]


def parse(text: str) -> Netlist:
    """Read the output of ``write_smt2 -stbv`` for a module ``top``.

    Raises
    ------
    ToolError
        If it has memories, or an input does not match its name.
    """
    if "yosys-smt2-memory" in text:
        raise ToolError("netlist: got a memory, must be mapped to registers first")
    leaves: dict[int, str] = {}
    nets, named, following, initial = [], {}, {}, []
    in_initial = False
    for line in text.splitlines():
        line = line.partition(" ; ")[0]
        if found := _NET.match(line):
            number, sort, body = int(found[1]), found[2], found[3]
            if " state)" in body and not _USE.search(body):
                leaves[number] = sort
            else:
                nets.append((number, sort, body))
        elif found := _NAMED.match(line):
            named[found[1]] = (found[2], found[3])
        elif found := _NEXT.match(line):
            following[int(found[2])] = found[1]
        elif line.startswith("(define-fun |top_i|"):
            in_initial = line.endswith("(and")
        elif line.startswith("))"):
            in_initial = False
        elif in_initial and (found := _INITIAL.match(line)):
            initial.append(found[1])
    ports = [(kind, name, int(width)) for kind, name, width in _PORT.findall(text) if name in named]
    inputs = {name: width for kind, name, width in ports if kind == "input"}
    outputs = {name: width for kind, name, width in ports if kind == "output"}
    where: dict[tuple[int, int], tuple[str, int]] = {}
    for name, width in inputs.items():
        bits = _bits(_read(named[name][1]), leaves)
        if len(bits) != width or None in bits:
            raise ToolError(f"netlist: got {named[name][1]} for the input {name}, must be its bits")
        for at, bit in enumerate(bits):
            where[bit] = (name, width - 1 - at)  # type: ignore[index]
    places = {}
    for number, sort in leaves.items():
        from_ports = [where.get((number, bit)) for bit in reversed(range(_width(sort)))]
        if None not in from_ports:
            places[number] = from_ports
    driven = {name: named[name] for name in outputs}
    return Netlist(inputs, outputs, leaves, places, nets, driven, following, initial)  # type: ignore[arg-type]


def _width(sort: str) -> int:
    return 1 if sort == "Bool" else int(sort.split()[-1].rstrip(")"))


def _read(text: str) -> Any:
    """Return an expression as nested lists."""
    stack: list[list[Any]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0][0]


def _bits(expression: Any, leaves: Mapping[int, str]) -> list[tuple[int, int] | None]:
    """Return the leaf and bit for each bit of an expression, the highest first; None for a constant."""
    match expression:
        case ["concat", high, low]:
            return _bits(high, leaves) + _bits(low, leaves)
        case [["_", "extract", high, low], word]:
            inner = _bits(word, leaves)
            return inner[len(inner) - 1 - int(high) : len(inner) - int(low)]
        case ["=", word, "#b1"] | ["ite", word, "#b1", "#b0"]:
            return _bits(word, leaves)
        case [str(net), "state"]:
            number = int(net.strip("|").removeprefix("top#"))
            if number not in leaves:
                raise ToolError(f"netlist: got net {number} at an input, must be a leaf")
            return [(number, bit) for bit in reversed(range(_width(leaves[number])))]
        case str(constant) if constant.startswith("#b"):
            return [None] * (len(constant) - 2)
    raise ToolError(f"netlist: got {expression} at an input, must be bits")
