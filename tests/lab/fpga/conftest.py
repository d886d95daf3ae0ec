"""Tools that only pretend, for tests of their callers."""

import json
from pathlib import Path

import pytest

from lab.fpga import __main__ as cli
from tests.lab.fpga.samples import NETLIST, NEXTPNR_REPORT, TOOLS
from tools.programs import YOSYS, Tool


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the tools by some that succeed at once, and list their commands."""
    asked: list[str] = []

    def run(tool: Tool, arguments: list[str], folder: Path, log: str) -> None:
        asked.append(log.removesuffix(".log"))
        if tool is YOSYS:
            (folder / "unit.json").write_text(json.dumps(NETLIST))
        else:
            (folder / arguments[arguments.index("--report") + 1]).write_text(json.dumps(NEXTPNR_REPORT))

    monkeypatch.setattr(Tool, "run", run)
    monkeypatch.setattr(cli, "versions", lambda *tools: TOOLS)
    return asked
