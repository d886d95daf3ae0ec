"""Tools within this process: Yosys, quick elaboration and compiled libraries work as the originals do."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from amaranth._toolchain.yosys import YosysError, _BuiltinYosys, find_yosys
from amaranth.back import rtlil, verilog
from amaranth.hdl import Shape
from amaranth.hdl._ast import Concat, Operator

from golden import CBFLOAT16, FP32
from hdl import FloatConverter, MultiplyAccumulate, VectorMac
from tools import compiled, elaboration, yosys
from tools.elaboration import quick_elaboration
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


UNITS = {
    "scalar": lambda: MultiplyAccumulate(stages=3, registers=4),
    "vector": lambda: VectorMac(lanes=2, stages=1, registers=4),
}


def netlist(unit):
    return rtlil.convert(UNITS[unit](), emit_src=False)


@pytest.mark.parametrize("unit", UNITS)
def test_quick_elaboration_of_a_unit_gives_the_same_netlist(unit):
    wanted = netlist(unit)
    with quick_elaboration():
        assert netlist(unit) == wanted


def test_shape_kept_of_another_expression_is_seen(monkeypatch):
    kept = {}

    def by_operator(shape_of):
        return lambda self: kept.setdefault(getattr(self, "operator", None), shape_of(self))

    def netlist_or_error():
        try:
            return netlist("scalar")
        except Exception as error:
            return error

    wanted = netlist("scalar")
    monkeypatch.setattr(elaboration, "_kept", by_operator)
    with quick_elaboration():
        assert netlist_or_error() != wanted


@pytest.mark.parametrize("enabled", [True, False])
def test_quick_elaboration_that_fails_leaves_all_as_it_was(enabled):
    before, shapes = gc.isenabled(), (Operator.shape, Concat.shape)

    def fail():
        assert not gc.isenabled()
        assert (Operator.shape, Concat.shape) != shapes
        raise ZeroDivisionError

    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError), quick_elaboration():
            fail()
        assert gc.isenabled() is enabled
        assert (Operator.shape, Concat.shape) == shapes
    finally:
        (gc.enable if before else gc.disable)()


def test_shape_of_an_expression_is_asked_for_once():
    asked = []
    shape_of = elaboration._kept(lambda expression: asked.append(expression) or Shape(3))
    one = Concat([])
    assert (shape_of(one), shape_of(one), len(asked)) == (Shape(3), Shape(3), 1)


def test_library_of_several_threads_at_once_is_compiled_whole_for_each(tmp_path, monkeypatch):
    # Each thread's compiler wrote the same file, and the second that finished found it gone.
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(lambda _: compiled.library('extern "C" int one() { return 1; }'), range(4)))
    assert [file.exists() for file in files] == [True] * 4
    assert list(tmp_path.iterdir()) == [files[0]]
