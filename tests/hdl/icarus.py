"""Verilog in Icarus, with models of an FPGA's primitives."""

import shutil
import subprocess
from pathlib import Path

__all__ = ["simulated"]

_MODELS = Path(__file__).resolve().parents[2] / "lab" / "proofs"


def simulated(folder, name, primitives=(), *options):
    """Run ``testbench.v`` of a folder with the Verilog of a unit and models of primitives; return the lines printed."""
    models = [f"{primitive.lower()}.v" for primitive in primitives]
    for model in models:
        shutil.copy(_MODELS / model, folder)
    build = ["iverilog", "-g2005", *options, "-s", "testbench", "-o", name, "testbench.v", f"{name}.v", *models]
    subprocess.run(build, cwd=folder, check=True, capture_output=True, text=True)
    done = subprocess.run(["vvp", name], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
