"""The reference of units: a page for every released unit, with its parameters, ports and timing, and one with all."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docs.pages.api import home
from docs.pages.ports import rows
from docs.pages.results import measurement
from docs.pages.scenes import scenes
from hdl.catalogue import Kind, Unit, released
from hdl.definitions import shown

__all__ = ["SOURCES", "pages", "write"]

ROOT = Path(__file__).resolve().parents[2]

_MEASURES = {
    "latency": "From a transfer to its result; of a block, from its last values to its first codes.",
    "accumulate_latency": "From a product to the next of the same register.",
}

#: The sources of the pages.
SOURCES = [
    ROOT / "docs" / "results" / "fpga.json",
    *(path for folder in ("docs/pages", "golden", "hdl") for path in (ROOT / folder).rglob("*.py")),
]


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
    units = [(unit, unit.build()) for unit in released()]
    return {"index.rst": _index(units)} | {f"{unit.name}.rst": _page(unit, built) for unit, built in units}


def _index(units: Sequence[tuple[Unit, Any]]) -> str:
    text = [
        *_title("Units", "="),
        "What ``make verilog`` writes: each of these is simulated by the regression and covered by the proofs. Other",
        "parameters are built by ``python -m hdl verilog``; ``--help`` lists them.",
        "",
    ]
    for kind in Kind:
        members = [(unit, built) for unit, built in units if unit.kind is kind]
        text += [
            *_title(kind.heading, "-"),
            f"Built by {_component(kind)}; the results are those of `{kind.golden_twin}`.",
            "",
        ]
        table = [("unit", "latency in cycles", "in operation")]
        for unit, built in members:
            rhythm = "a transfer in every cycle"
            if hasattr(built, "accumulate_latency"):
                rhythm = f"a register takes a product every {built.accumulate_latency} cycles"
            table.append((f":doc:`{unit.name}`", str(built.latency), rhythm))
        text += _table(table)
        text += [".. toctree::", "   :hidden:", "", *(f"   {unit.name}" for unit, _ in members), ""]
    return "\n".join(text)


def _component(kind: Kind) -> str:
    """Return a reference to the class behind a kind of units."""
    return f"`{home(kind.component)}`"


def _page(unit: Unit, built: Any) -> str:
    summary = (inspect.getdoc(unit.kind.component) or "").split("\n\n")[0].replace("\n", " ")
    text = [
        *_title(unit.name, "="),
        f"{summary}",
        "",
        f"{_component(unit.kind)} documents its behaviour, and `{unit.kind.golden_twin}` defines its results.",
        "All ports belong to one clock. A transfer happens on a rising edge with ``valid`` and ``ready`` both high.",
        "",
        ".. code-block:: console",
        "",
        f"   $ {_command(unit)}",
        "",
        *_title("Parameters", "-"),
        *_table([("parameter", "value", "meaning", "allowed"), *_parameters(unit, built)]),
        *_title("Ports", "-"),
        *_table([("signal", "field", "direction", "bits", "meaning"), *_ports(unit.kind, built)], "ports"),
        *_title("Timing", "-"),
        "Recorded from a simulation, whose results were compared with the golden model. Values are in hexadecimal; a",
        "break in the lines leaves out cycles in which nothing changes.",
        "",
    ]
    for scene in scenes(unit.kind, built):
        text += [*_title(scene.title, "^"), scene.text, "", ".. raw:: html", ""]
        text += [f"   {scene.waveform._repr_html_()}", ""]
    if measured := list(measurement(built)):
        text += [*_title("Measured", "-"), *measured, ""]
    return "\n".join(text)


def _command(unit: Unit) -> str:
    """Return the command that writes the unit's Verilog."""
    definitions = unit.kind.parameters.definitions()
    options = []
    for name, value in unit.arguments.items():
        option, settings = definitions[name].option(name, value)
        options.append(option if settings.get("action") else f"{option} {shown(value, ',')}")
    return f"python -m hdl verilog {unit.kind.command} {' '.join(options)} --name {unit.name} -o {unit.name}.v"


def _parameters(unit: Unit, built: Any) -> Iterable[tuple[str, ...]]:
    for name, definition in unit.kind.parameters.definitions().items():
        value = built.parameters.arguments()[name]
        meaning = f"{definition.meaning[0].upper()}{definition.meaning[1:]}. {definition.note}"
        yield f"``{name}``", shown(value), meaning, definition.allowed
    for name, meaning in _MEASURES.items():
        if hasattr(built, name):
            yield f"``{name}``", f"{getattr(built, name)} cycles", meaning, "follows from the others"


def _ports(kind: Kind, unit: Any) -> Iterable[tuple[str, ...]]:
    for row in rows(kind, unit):
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
