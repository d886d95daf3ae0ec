"""The reference of units: a page for every released unit, with its parameters, ports and timing, and one with all."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docs.pages.ports import rows
from docs.pages.scenes import scenes
from hdl.cli import all_units

__all__ = ["SOURCES", "pages", "write"]

ROOT = Path(__file__).resolve().parents[2]

_KINDS = {
    "FloatConverter": ("Format converters", "hdl.FloatConverter", "golden.convert", "convert"),
    "MultiplyAccumulate": ("Multiply-accumulate units", "hdl.MultiplyAccumulate", "golden.dot", "mac"),
    "AxiStreamMac": ("Behind AXI4-Stream ports", "hdl.axi_stream.AxiStreamMac", "golden.dot", "mac-axi-stream"),
    "VectorMac": ("Several lanes", "hdl.VectorMac", "golden.dot", "vector-mac"),
}
_PARAMETERS = ("source", "destination", "lanes", "operands", "levels", "registers", "stages", "chunk_bits", "flags")


#: What the pages are made from.
SOURCES = [path for folder in ("docs/pages", "golden", "hdl") for path in (ROOT / folder).rglob("*.py")]


def write(folder: Path) -> None:
    """Write the pages into a folder if a source is newer than they are.

    Those that stay the same are left alone, so that Sphinx need not read them.
    """
    folder.mkdir(exist_ok=True)
    stamp = folder / "index.rst"
    if stamp.is_file() and max(path.stat().st_mtime for path in SOURCES) < stamp.stat().st_mtime:
        return
    new = pages()
    stamp.unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.name not in new:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in new.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the text of every page, by the name of its file."""
    units = {name: build() for name, build in all_units().items()}
    return {"index.rst": _index(units)} | {f"{name}.rst": _page(name, unit) for name, unit in units.items()}


def _index(units: dict[str, Any]) -> str:
    text = [
        *_title("Units", "="),
        "What ``make verilog`` writes: each of these is simulated by the regression and covered by the proofs. Other",
        "parameters are built by ``python -m hdl verilog``; ``--help`` lists them.",
        "",
    ]
    for kind, (heading, component, twin, _) in _KINDS.items():
        members = {name: unit for name, unit in units.items() if type(unit).__name__ == kind}
        text += [*_title(heading, "-"), f"Built by `{component}`; the results are those of `{twin}`.", ""]
        table = [("unit", "latency in cycles", "in operation")]
        for name, unit in members.items():
            described = getattr(unit, "unit", unit)
            rhythm = "a transfer in every cycle"
            if hasattr(described, "accumulate_latency"):
                rhythm = f"a register takes a product every {described.accumulate_latency} cycles"
            table.append((f":doc:`{name}`", str(described.latency), rhythm))
        text += _table(table)
        text += [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in members), ""]
    return "\n".join(text)


def _page(name: str, unit: Any) -> str:
    _, component, twin, command = _KINDS[type(unit).__name__]
    described = getattr(unit, "unit", unit)
    summary = (inspect.getdoc(type(unit)) or "").split("\n\n")[0].replace("\n", " ")
    text = [
        *_title(name, "="),
        f"{summary}",
        "",
        f"`{component}` documents its behaviour, and `{twin}` defines its results. All ports belong to one clock. A",
        "transfer takes place on a rising edge with ``valid`` and ``ready`` both high.",
        "",
        ".. code-block:: console",
        "",
        f"   $ {_command(command, described, name)}",
        "",
        *_title("Parameters", "-"),
        *_table([("parameter", "value"), *_parameters(described)]),
        *_title("Ports", "-"),
        *_table([("signal", "field", "direction", "bits", "meaning"), *_ports(unit)], "ports"),
        *_title("Timing", "-"),
        "Recorded from a simulation, whose results were compared with the golden model. Values are in hexadecimal; a",
        "break in the lines leaves out cycles in which nothing changes.",
        "",
    ]
    for scene in scenes(unit):
        text += [*_title(scene.title, "^"), scene.text, "", ".. raw:: html", ""]
        text += [f"   {scene.waveform._repr_html_()}", ""]
    return "\n".join(text)


def _command(command: str, unit: Any, name: str) -> str:
    if command == "convert":
        chosen = f"--source {unit.source} --destination {unit.destination}"
    else:
        chosen = f"--operands {','.join(map(str, unit.operands))}"
    return f"python -m hdl verilog {command} {chosen} --name {name} -o {name}.v"


def _parameters(unit: Any) -> Iterable[tuple[str, str]]:
    for name in _PARAMETERS:
        if hasattr(unit, name):
            value = getattr(unit, name)
            yield name, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    for name in ("latency", "accumulate_latency"):
        if hasattr(unit, name):
            yield name, f"{getattr(unit, name)} cycles"


def _ports(unit: Any) -> Iterable[tuple[str, ...]]:
    for row in rows(unit):
        field = f"``{row.field}``" if row.field else ""
        yield f"``{row.signal}``", field, row.direction, str(row.width), row.meaning


def _title(text: str, underline: str) -> list[str]:
    return [text, underline * len(text), ""]


def _table(table: Iterable[Sequence[str]], style: str = "") -> list[str]:
    """Return a table as reStructuredText, with its first row as the heading."""
    text = [".. list-table::", "   :header-rows: 1", "   :widths: auto"]
    text += [f"   :class: {style}", ""] if style else [""]
    for row in table:
        for at, cell in enumerate(row):
            text.append(f"   {' ' if at else '*'} - {' '.join(cell.split())}".rstrip())
    return [*text, ""]
