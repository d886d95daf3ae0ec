"""Tools within this process: Yosys and compiled libraries work as the originals do."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from amaranth._toolchain.yosys import YosysError, _BuiltinYosys, find_yosys
from amaranth.back import rtlil, verilog

from golden import CBFLOAT16, FP32
from hdl import FloatConverter
from tools import compiled, yosys
from tools.paths import ROOT
from tools.yosys import loaded_yosys, run_yosys


@pytest.fixture(autouse=True)
def _processes():
    """Make sure that the other side is a process: other tests load Yosys, too."""
    assert _BuiltinYosys.run.__func__.__module__ == "amaranth._toolchain.yosys"


def verilog_of_a_unit():
    return verilog.convert(FloatConverter(source=FP32, destination=CBFLOAT16), emit_src=False)


def test_loaded_yosys_gives_the_verilog_that_a_process_gives():
    by_process = verilog_of_a_unit()
    with loaded_yosys():
        assert verilog_of_a_unit() == by_process
    assert "module top" in by_process


def test_loaded_yosys_is_used_while_it_is_loaded_and_no_longer(monkeypatch):
    asked = []
    monkeypatch.setattr(yosys, "run_yosys", lambda *given: asked.append(given) or (0, "module other", ""))
    with loaded_yosys():
        assert verilog_of_a_unit() == "module other"
    assert len(asked) == 1
    assert "module top" in verilog_of_a_unit()


def test_script_that_fails_has_the_same_status_and_the_same_words_in_both():
    with pytest.raises(YosysError, match="No such command: nonsense") as by_process:
        find_yosys(lambda version: True).run(["-q", "-"], "nonsense")
    with loaded_yosys(), pytest.raises(YosysError) as within:
        find_yosys(lambda version: True).run(["-q", "-"], "nonsense")
    assert str(within.value) == str(by_process.value)
    status, output, errors = run_yosys("nonsense")
    assert (status, output) == (1, "")
    assert "No such command: nonsense" in errors


def test_run_after_a_failure_starts_anew():
    netlist = rtlil.convert(FloatConverter(source=FP32, destination=CBFLOAT16), emit_src=False)
    script = f"read_rtlil <<netlist\n{netlist}\nnetlist\nwrite_rtlil\n"
    before = run_yosys(script)
    assert run_yosys(f"{script}\nnonsense")[0] == 1
    assert run_yosys(script) == before
    assert (before[0], before[2]) == (0, "")
    assert before[1].count("module \\top\n") == 1


def test_missing_yosys_is_told_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(yosys, "_PACKAGE", "no_such_package")
    yosys._program.cache_clear()
    with pytest.raises(RuntimeError, match=r"Yosys is missing: pip install 'amaranth\[builtin-yosys\]'"):
        run_yosys("stat")


ENDS = """
import atexit
from tools import yosys
atexit.register(lambda: print(yosys._program.cache_info().currsize))  # what is registered last runs first
yosys.load()
"""


def test_loaded_yosys_is_freed_before_python_takes_its_modules_apart():
    # Else wasmtime wrote a traceback at the end of some runs: TypeError: 'NoneType' object is not callable.
    done = subprocess.run([sys.executable, "-c", ENDS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_library_of_several_threads_at_once_is_compiled_whole_for_each(tmp_path, monkeypatch):
    # Each thread's compiler wrote the same file, and the second that finished found it gone.
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(lambda _: compiled.library('extern "C" int one() { return 1; }'), range(4)))
    assert [file.exists() for file in files] == [True] * 4
    assert list(tmp_path.iterdir()) == [files[0]]
