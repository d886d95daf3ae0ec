"""`golden` needs NumPy and the standard library only, and exports the names of the public interface."""

import json
import subprocess
import sys
from pathlib import Path

import golden

ROOT = Path(golden.__file__).resolve().parent.parent

# Runs in a fresh interpreter: everything outside the standard library, NumPy and golden cannot be imported there.
BLOCKED = """
import json, sys

ALLOWED = {*sys.stdlib_module_names, "golden", "numpy"}
asked = set()

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED:
            asked.add(name)
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

before = set(sys.modules)
sys.meta_path.insert(0, Blocker())
import golden
import golden.cli
import golden.reference
assert int(golden.encode(6.0, "cb16")) == 0x5900
assert golden.cli.main(["formats"]) == 0
tops = sorted({name.partition(".")[0] for name in set(sys.modules) - before} - {*sys.stdlib_module_names})
print(json.dumps({"tops": tops, "modules": sorted(name for name in sys.modules if name.startswith("golden"))}))
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )


def test_import_golden_with_all_else_blocked_loads_numpy_only():
    loaded = json.loads(run("-c", BLOCKED).stdout.splitlines()[-1])
    assert loaded["tops"] == ["golden", "numpy"]


def test_import_golden_loads_neither_torch_nor_amaranth_nor_the_command_line():
    modules = json.loads(run("-c", "import golden, json, sys; print(json.dumps(sorted(sys.modules)))").stdout)
    tops = {name.partition(".")[0] for name in modules}
    assert tops.isdisjoint({"torch", "amaranth", "cocotb", "gmpy2", "ml_dtypes", "apytypes", "gfloat"})
    assert {"golden.cli", "golden.torch", "golden.__main__"}.isdisjoint(modules)


def test_public_names_of_the_interface_exist():
    names = """FloatFormat FP32 FP16 BF16 CBFLOAT16 CB16 format_named Flag encode decode quantize convert
    multiply_accumulate Reduction dot matmul matmul_values softmax kernel_info"""
    for name in names.split():
        assert hasattr(golden, name), name
        assert name in golden.__all__, name


def test_kernel_info_names_a_known_path_and_its_threads():
    info = golden.kernel_info()
    assert info["path"] in {"avx512fp16", "avx512", "avx2", "portable", "numpy"}
    assert info["threads"] >= 1
