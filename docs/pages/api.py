"""The API reference: every exported name, documented once, with links from all its names."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

__all__ = ["MODULES", "Surface", "find", "hide_colon", "home", "link_code", "resolve", "show_colon"]

#: The modules whose exports are documented. A name that several export has its place with the first.
MODULES = (
    "golden",
    "golden.reference",
    "golden.kernels",
    "golden.loss_scaling",
    "golden.torch",
    "golden.torch.amp",
    "golden.torch.backend",
    "golden.torch.distributed",
    "golden.torch.metrics",
    "golden.torch.observing",
    "golden.torch.optim",
    "golden.torch.optim.lr_scheduler",
    "golden.torch.optim.weight_decay_scheduler",
    "golden.torch.optim.scheduler",
    "golden.torch.utils.data",
    "golden.torch.utils",
    "golden.torch.utils.tensorboard",
    "hdl",
    "hdl.axi_stream",
    "hdl.verilog",
    "hdl.fusesoc",
    "hdl.mac.ports",
    "hdl.catalogue",
    "hdl.parameters",
    "hdl.definitions",
    "hdl.mac.arrangement",
    "hdl.mac.control",
    "hdl.mac.issue",
    "hdl.mac.operands",
    "hdl.mac.accumulator",
    "hdl.mac.lane",
    "hdl.mac.bank",
    "hdl.mac.chunks",
    "hdl.mac.flags",
    "hdl.mac.hazards",
    "hdl.mac.operation",
    "hdl.mac.register_file",
    "hdl.mac.results",
    "hdl.mac.promotions",
    "hdl.vector.arrangement",
    "hdl.vector.ports",
    "hdl.vector.register_file",
    "hdl.vector.promotions",
    "hdl.vector.waiting",
    "hdl.vector.group",
)


#: A name in the text of a page; pages write ``cstorch`` for `golden.torch`.
_CODE = re.compile(r"((?:golden|hdl|cstorch)(?:\.\w+)+)(?:\(\))?")

_HIDDEN = "\ufffc"  # stands for a colon while napoleon reads
_LONGEST_VALUE = 500  # characters: a whole catalogue is not shown


@cache
def _homes() -> dict[int, str]:
    """Return the documented name of every exported object that is a class or a function, by its identity."""
    homes: dict[int, str] = {}
    for module, name, exported in (entry for every in MODULES for entry in _exports(every)):
        if callable(exported):
            homes.setdefault(id(exported), f"{module}.{name}")
    return homes


def home(exported: Any) -> str:
    """Return the name under which a class or function is documented."""
    return _homes()[id(exported)]


def _exports(module: str) -> list[tuple[str, str, Any]]:
    exports = importlib.import_module(module)
    named = [(module, name, getattr(exports, name)) for name in exports.__all__ if not name.startswith("__")]
    return [entry for entry in named if not isinstance(entry[2], ModuleType)]


class Surface(SphinxDirective):
    """``.. surface:: MODULE``: a table of what a module exports, then the documentation of each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write it as directives of autodoc, and let Sphinx read them."""
        module = self.arguments[0]
        summary = ["", ".. list-table::", "   :widths: auto", "   :class: surface", ""]
        details = [f".. py:currentmodule:: {module}", ""]
        for _, name, exported in _exports(module):
            place = _homes().get(id(exported), f"{module}.{name}")
            summary += [f"   * - :py:obj:`{name} <{place}>`", f"     - {_first_line(module, name, exported)}"]
            if place == f"{module}.{name}":
                details += [*_documentation(module, name, exported), ""]
        lines = StringList([*summary, "", *details], source=f"exports of {module}")
        container = nodes.container()
        self.state.nested_parse(lines, 0, container)
        return container.children


def _documentation(module: str, name: str, exported: Any) -> list[str]:
    if inspect.isclass(exported):
        kind = "autoexception" if issubclass(exported, BaseException) else "autoclass"
        # The members of an enumeration say enough by their names and values.
        options = ["   :members:", *(["   :undoc-members:"] if issubclass(exported, enum.Enum) else [])]
        return [f".. {kind}:: {module}.{name}", *options]
    if callable(exported):
        return [f".. autofunction:: {module}.{name}"]
    text = _comment(module, name).splitlines()
    value = [f"   :value: {exported!r}"] if len(repr(exported)) < _LONGEST_VALUE else []
    return [f".. py:data:: {name}", *value, "", *(f"   {line}" for line in text)]


def _first_line(module: str, name: str, exported: Any) -> str:
    text = (inspect.getdoc(exported) or "") if callable(exported) else _comment(module, name)
    return (text or f"A `{type(exported).__name__}`.").strip().split("\n\n")[0].replace("\n", " ")


def _comment(module: str, name: str) -> str:
    """Return the comment ``#:`` above a constant, in whichever module of the package defines it."""
    package = module.split(".")[0]
    above = re.compile(rf"((?:^#: .*\n)+)^{name}\b", re.MULTILINE)
    for other in [module, *(each for each in sys.modules if each.split(".")[0] == package)]:
        file = getattr(sys.modules[other], "__file__", None)
        if file and hasattr(sys.modules[other], name) and (found := above.search(Path(file).read_text("utf-8"))):
            return found[1].replace("#: ", "").strip()
    return ""


def resolve(app: Any, environment: Any, node: nodes.Element, content: nodes.Element) -> nodes.Element | None:
    """Lead a reference under another name to the object's place; leave one to an object without a place as it reads.

    A name that the code does not have stays unresolved, which is an error of the build.
    """
    if node.get("refdomain") != "py":
        return None
    found, rest = find(node["reftarget"])
    if found is None:
        return None
    place = _homes().get(id(found))
    if place is None:
        return content
    domain = environment.get_domain("py")
    target = ".".join([place, *rest])
    linked = domain.resolve_xref(environment, node["refdoc"], app.builder, "obj", target, node, content)
    if linked is None and not _has(found, rest):
        return None
    return linked if linked is not None else content


def _has(found: Any, names: list[str]) -> bool:
    """Tell whether an object has an attribute, the attributes of that one, and so on."""
    for name in names:
        if not hasattr(found, name) and name not in getattr(found, "__annotations__", {}):
            return False
        found = getattr(found, name, None)
    return True


def find(name: str) -> tuple[Any, list[str]]:
    """Return the exported object on the way to a name, and the rest of the name behind it."""
    if name.split(".")[0] not in ("golden", "hdl"):
        return None, []
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is None:
            try:
                module = importlib.import_module(".".join(parts[:length]))
            except ImportError:
                continue
        found: Any = module
        for at, part in enumerate(parts[length:], length):
            if not _has(found, [part]):
                return None, []
            found = getattr(found, part, None)
            if id(found) in _homes():
                return found, parts[at + 1 :]
        return found if found is not None else module, []
    return None, []


def hide_colon(app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """Hide a colon in a property's first line from napoleon, which takes the words before it for a type."""
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(": ", _HIDDEN)


def show_colon(app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """Undo what `hide_colon` did."""
    lines[:] = [line.replace(_HIDDEN, ": ") for line in lines]


def link_code(app: Any, document: nodes.document, name: str) -> None:
    """Let a name in a page's text, such as ``golden.convert`` in Markdown, lead to its place."""
    for literal in list(document.findall(nodes.literal)):
        full = _CODE.fullmatch(literal.astext())
        if not full or isinstance(literal.parent, nodes.reference):
            continue
        found, rest = find(full[1].replace("cstorch.", "golden.torch."))
        if id(found) not in _homes():
            continue
        domain, target = app.env.get_domain("py"), ".".join([home(found), *rest])
        quiet = nodes.literal("", "", *[child.deepcopy() for child in literal.children], classes=["xref"])
        linked = domain.resolve_xref(app.env, name, app.builder, "obj", target, nodes.Element(), quiet)
        if linked is not None:
            literal.parent.replace(literal, linked)
