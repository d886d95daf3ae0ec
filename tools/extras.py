"""Optional dependencies: a program that lacks a module ends with a line that says how to install it."""

from __future__ import annotations

import sys
from types import TracebackType

__all__ = ["name_missing_extras"]

#: The extra of each program, as the Makefile installs it; all other programs need `test`.
_EXTRAS = {
    "lab.boards": "board",
    "lab.evidence": "replay",
    "lab.exhaustive": "exhaustive",
    "lab.faults": "faults",
    "lab.figures": "figures",
    "lab.fpga": "fpga",
    "lab.litex": "litex",
    "lab.mutants": "sim",
    "lab.proofs": "formal",
    "lab.release": "dist",
    "lab.replay": "replay",
    "lab.speed": "bench",
    "sim": "sim",
}
_ROOMS = ("golden", "hdl", "tools", "sim", "lab", "tests")


def name_missing_extras() -> None:
    """Let this program end with such a line; other errors are shown as usual."""
    sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    program = getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", "").removesuffix(".__main__")
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not program.startswith(("sim", "lab")) or module in ("", *_ROOMS):
        sys.__excepthook__(kind, error, trace)
        return
    extra = _EXTRAS.get(".".join(program.split(".")[:2]), "test")
    install = f"pip install -e '.[{extra}]' -c constraints.txt"
    print(f"{program}: needs {module}, which the extra {extra} brings: {install}", file=sys.stderr)
