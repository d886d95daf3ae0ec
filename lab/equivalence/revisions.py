"""The Verilog of units as some revision of this repository generates it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from hdl.converter import DEPTHS as CONVERTER_DEPTHS
from hdl.mac.parameters import DEPTHS
from tools.paths import ROOT

__all__ = ["VARIANTS", "verilog_of"]

_THREE = "cbfloat16,float16,bfloat16"


def _variants() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for stages in DEPTHS:
        # Each depth has ranks in other places.
        found[f"mac_stages_{stages}"] = ("mac", "--operands", _THREE, "--stages", f"{stages}", "--registers", "4")
        rows = ("--registers", "16", "--chunk-bits", "4", "--lanes", "2")
        found[f"vector_mac_stages_{stages}"] = ("vector-mac", "--stages", f"{stages}", *rows)
    for levels in ("0", "1", "2", "0,1", "0,2", "1,2"):
        name = levels.replace(",", "_")
        found[f"mac_levels_{name}"] = ("mac", "--operands", _THREE, "--levels", levels, "--registers", "2")
        found[f"vector_mac_levels_{name}"] = ("vector-mac", "--levels", levels, "--chunk-bits", "3")
    for stages in (1, 11, 13):
        given = ("--stages", f"{stages}", "--no-flags")
        found[f"mac_no_flags_stages_{stages}"] = ("mac", *given, "--chunk-bits", "1")
        found[f"vector_mac_no_flags_stages_{stages}"] = ("vector-mac", *given, "--chunk-bits", "2")
    found["vector_mac_lanes_8"] = ("vector-mac", "--lanes", "8", "--chunk-bits", "4")
    found["mac_axi_stream_no_flags"] = ("mac-axi-stream", "--no-flags", "--registers", "4")
    for stages in CONVERTER_DEPTHS:
        formats = ("--source", "float32", "--destination", "cbfloat16")
        found[f"float32_to_cbfloat16_stages_{stages}"] = ("convert", *formats, "--stages", f"{stages}")
    return found


#: Further units, as arguments of ``python -m hdl verilog``: every depth, fewer levels, without flags, more lanes.
VARIANTS = _variants()

_GENERATE = """
import json, sys
from hdl.cli import main
for arguments in json.load(sys.stdin):
    if main(["verilog", *arguments]):
        sys.exit(1)
"""


def verilog_of(source: str, work: Path, *, variants: bool) -> dict[str, str]:
    """Return the Verilog of all units by their names.

    Parameters
    ----------
    source : str
        A folder of Verilog, or a git revision; ``.`` is the working tree.
    work : Path
        For what a revision generates.
    variants : bool
        Whether `VARIANTS` are generated beside the released units.

    Raises
    ------
    ValueError
        If `source` is neither, or holds no Verilog.
    """
    folder = Path(source)
    if source == "." or not folder.is_dir():
        tree = ROOT if source == "." else _tree(source, work / "tree")
        folder = work / "verilog"
        _generate(tree, folder, variants=variants)
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.v"))}
    if not found:
        raise ValueError(f"{source}: got a folder without Verilog, must hold one file NAME.v for each unit")
    return found


def _tree(revision: str, folder: Path) -> Path:
    archived = subprocess.run(["git", "archive", revision, "golden", "hdl"], cwd=ROOT, capture_output=True)
    if archived.returncode:
        raise ValueError(f"{revision}: must be a folder, a git revision or . for the working tree")
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def _generate(tree: Path, folder: Path, *, variants: bool) -> None:
    commands = [["all", "-o", str(folder)]]
    if variants:
        commands += [[*given, "--name", name, "-o", str(folder / f"{name}.v")] for name, given in VARIANTS.items()]
    done = subprocess.run(
        [sys.executable, "-c", _GENERATE],
        input=json.dumps(commands),
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise ValueError(f"{tree}: its Verilog cannot be generated: {said[-1]}")
