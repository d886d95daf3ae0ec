"""The regression of the matrix engine passes, and each of its checks finds a fault."""

import types
from pathlib import Path

import pytest

import hdl.matrix_engine.matrix_engine as top
from hdl.verilog import to_verilog
from sim.engine import __main__ as command
from sim.engine.run import results_compared, simulate_engine
from sim.engine.units import COMPARED, UNITS

#: A fault: a file of the engine, its class, text to replace, its replacement, and the test that must fail.
FAULTS = {
    "strobes beyond the edge": (
        "writer.py", "Writer", "self.strobes.eq(mask[:bus_bytes])",
        "self.strobes.eq(mask[:bus_bytes].any().replicate(bus_bytes))", "plain",
    ),
    "one word too many": (
        "reader.py", "Reader", "its_words.eq((its_bytes + parameters.bus_bytes - 1) >> shift)",
        "its_words.eq(((its_bytes + parameters.bus_bytes - 1) >> shift) + (line.count == 1))", "plain",
    ),
    "first of the next slice": ("sequencer.py", "Sequencer", "its.first & (self.k == 0)", "self.k == 0", "plain"),
    "a block of A too far": (
        "tiler.py", "Tiler", "command.a_row_stride << _bits(rows))", "command.a_row_stride << _bits(rows) + 1)",
        "plain",
    ),
    "offset of a line": ("loader.py", "Loader", ">> (offset * CODE_WIDTH)", ">> (offset[:1] * CODE_WIDTH)", "random"),
    "across lanes": ("panel.py", "Panel", "across.replicate(group)", "self.group", "random"),
    "flags beyond the edge": (
        "writer.py", "Writer", "with m.If(takes & is_inside):\n                m.d.comb += self.flags",
        "with m.If(takes):\n                m.d.comb += self.flags", "flags",
    ),
    "overlap not seen": ("checker.py", "Checker", "(start < d_end) & (d_start < end)", "C(0, 1)", "refuses"),
    "alignment not seen": ("checker.py", "Checker", "Mux(is_many, batch_stride[:2], 0)", "C(0, 2)", "refuses"),
    "stride of a single row looked at": (
        "checker.py", "Checker", "Mux(is_many_rows, row_stride[:2], 0)", "row_stride[:2]", "plain",
    ),
    "end not seen": ("checker.py", "Checker", "high | (end > (1 << address_bits))", "high", "refuses"),
    "queue too long": (
        "run.py", "Run", "(queue.level != queue.depth) & ~is_ending", "~is_ending", "queue",
    ),
    "interrupt not enabled": (
        "control.py", "ControlRegisters", "self.is_enabled & self.has_result", "self.has_result", "queue",
    ),
    "error of a read not seen": ("run.py", "Run", "with m.If(self.read_fails):", "with m.If(0):", "error_of"),
    "bus not drained": ("run.py", "Run", "with m.If(self.is_quiet):", "with m.If(1):", "stopped"),
    "parts not cleared": (
        "matrix_engine.py", "MatrixEngine", "cleared(m, sync, run.clear)", "cleared(m, sync, C(0, 1))", "stopped",
    ),
    "offer that is withdrawn": (
        "reader.py", "Reader", "with m.If(self.ready):\n            m.d.sync += self.valid.eq(0)",
        "with m.If(self.ready | self.stop):\n            m.d.sync += self.valid.eq(0)", "stopped",
    ),
    "address that moves": (
        "writer.py", "Writer", "self.address.eq(word << shift)", "self.address.eq((word + (to_go - 1)) << shift)",
        "plain",
    ),
    "products counted twice": ("run.py", "Run", "(event & runs)", "((event & runs) << 1)", "registers"),
    "C not looked at": (
        "checker.py", "Checker", "m.d.sync += which.eq(_Which.C)\n                                m.next = \"MATRIX\"",
        "pass", "refuses",
    ),
    "address of C not aligned": (
        "checker.py", "Checker", "is_misaligned = Mux(wide,", "is_misaligned = (which != _Which.C) & Mux(wide,",
        "refuses",
    ),
    "a block of C too far": (
        "tiler.py", "Tiler", "(command.c_row_stride << _bits(rows))", "(command.c_row_stride << _bits(rows) + 1)",
        "random",
    ),
    "C of the first batch for all": (
        "tiler.py", "Tiler", "self.c_matrix + command.c_batch_stride", "self.c_matrix", "kind",
    ),
    "more rows than one of a row": (
        "tiler.py", "Tiler", "Mux(is_row, 0, m_here - 1)", "m_here - 1", "kind",
    ),
    "C forgotten by the first product": (
        "tiler.py", "Tiler", "(options.initial == Initial.NONE if parameters.initial else 1)", "1", "kind",
    ),
    "rows of C in the order of products": (
        "sequencer.py", "Sequencer", "passes = self.passes if parameters.initial else C(0, 1)", "passes = C(0, 1)",
        "kind",
    ),
    "halves of C swapped": (
        "loader.py", "Loader", "narrow.is_high.eq(its.line.index[0])", "narrow.is_high.eq(~its.line.index[0])", "kind",
    ),
    "NaN of C kept by a conversion": (
        "matrix_engine.py", "empty_result", "Mux(is_converted & its_class.is_nan, fmt.nan, own)", "own", "kind",
    ),
    "subnormal of C not flushed": (
        "matrix_engine.py", "empty_result", "Mux(is_zero, own & fmt.sign_mask, own)", "own", "kind",
    ),
}  # fmt: skip

#: The engines of faults that the engine ``plain`` does not have.
ENGINES = {
    "halves of C swapped": "wide", "NaN of C kept by a conversion": "flush", "subnormal of C not flushed": "flush",
}  # fmt: skip


def namespace_of(path, text):
    """Run the source of a module, and return its names."""
    module = types.ModuleType(f"faulty_{path.stem}")
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module.__dict__


@pytest.mark.parametrize("name", FAULTS)
def test_engine_fault_is_put_into_one_place_of_the_source(name):
    file, part, old, _, _ = FAULTS[name]
    text = (Path(top.__file__).parent / file).read_text()
    assert text.count(old) == 1
    assert part in namespace_of(Path(file), text)


def faulty(engine, file, name, old, new):
    """The Verilog of an engine made from sources with a fault in one part."""
    whole = Path(top.__file__)
    path = whole.parent / file
    text = path.read_text()
    names = namespace_of(whole, whole.read_text())
    names[name] = namespace_of(path, text.replace(old, new))[name]
    return to_verilog(names["MatrixEngine"](**UNITS[engine]), "matrix_engine")


def test_engine_regression_of_a_small_engine_passes(tmp_path):
    assert simulate_engine("plain", tmp_path, tests="plain|refuses|registers", effort=0.1) == []
    assert results_compared(tmp_path) >= 1 + 4 + 64 + 35 + 323  # of the test of plain products


@pytest.mark.parametrize("results", [0, 7])
def test_engine_regression_is_evidence_only_with_results_that_were_compared(results, tmp_path, monkeypatch, capsys):
    def simulated(name, folder, **_):
        folder.mkdir(parents=True)
        if results:
            (folder / COMPARED).write_text(f"{results}\n")
        return []

    kept = []
    monkeypatch.setattr(command, "simulate_engine", simulated)
    monkeypatch.setattr(command, "note", lambda tool, records, sources: kept.extend(records))
    monkeypatch.setattr("sys.argv", ["sim.engine", "--folder", str(tmp_path)])
    assert command.main() == (results == 0)
    assert [(record.count, record.wrong) for record in kept] == [(len(UNITS) * results, 0 if results else len(UNITS))]
    assert ("no result of a command was compared" in capsys.readouterr().out) == (results == 0)


@pytest.mark.long
@pytest.mark.parametrize("name", UNITS)
def test_engine_regression_passes(tmp_path, name):
    assert simulate_engine(name, tmp_path, effort=0.2) == []


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_engine_regression_of_a_faulty_engine_fails(tmp_path, name):
    *fault, test = FAULTS[name]
    engine = ENGINES.get(name, "plain")
    verilog = faulty(engine, *fault)
    assert simulate_engine(engine, tmp_path, tests=test, effort=0.4, verilog=verilog), f"{test} did not find it"
