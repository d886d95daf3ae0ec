"""What is kept of netlists and answers counts for the very same question; and CaDiCaL's answer for what it says."""

import shutil

import pytest

from lab.proofs import proof, yosys
from lab.proofs.engines import z3_cadical
from lab.proofs.errors import ToolError
from lab.proofs.proof import BITWUZLA, CVC5, Proof, Verdict, prove

#: What z3 leaves to the solver.
SQUARE_OF_THREE = "(declare-const |top.x| (_ BitVec 8))\n(assert (= (bvmul |top.x| |top.x|) #x09))\n"


@pytest.fixture
def asked(monkeypatch):
    """Questions that an engine is really asked; each answers ``unsat``."""
    questions = []

    def ask(engine, text, file, timeout):
        questions.append((engine, text))
        return {"answer": "unsat", "model": {}, "seconds": 1.0}

    monkeypatch.setattr(proof, "_ask", ask)
    monkeypatch.setattr(proof, "engine_version", lambda engine: "1.0")
    return questions


def decided(tmp_path, text="same", engine=BITWUZLA):
    return prove(Proof("claim", "unit", "mode", "none", engine, lambda folder: text), tmp_path)


def test_answer_that_is_kept_counts_for_its_engine_alone(asked, tmp_path):
    # Both say that they are of version 1.0.
    for engine in (BITWUZLA, CVC5, BITWUZLA, CVC5):
        assert decided(tmp_path, engine=engine).verdict is Verdict.PROVEN
    assert asked == [(BITWUZLA, "same"), (CVC5, "same")]


def test_answer_that_is_kept_counts_for_the_very_formula_alone(asked, tmp_path):
    for text in ("same", "same ", "same\n", "same"):
        decided(tmp_path, text)
    assert [text for _, text in asked] == ["same", "same ", "same\n"]


def test_answer_that_is_kept_counts_until_an_engine_is_used_otherwise(asked, monkeypatch, tmp_path):
    decided(tmp_path)
    monkeypatch.setattr(proof, "_REVISION", proof._REVISION + 1)
    decided(tmp_path)
    assert len(asked) == 2


def test_netlist_that_is_kept_counts_for_all_that_it_is_made_of(monkeypatch, tmp_path):
    made, model = [], tmp_path / "model.v"
    model.write_text("module one; endmodule\n")

    def run(script, folder):
        made.append(script)
        (folder / "top.smt2").write_text("")

    monkeypatch.setattr(yosys, "run_yosys", run)
    monkeypatch.setattr(yosys, "parse", lambda text: text)

    def write(text="text", script="opt", models=(), reading="read_rtlil"):
        before = len(made)
        yosys.write_netlist(text, tmp_path / "netlists", script, models, reading=reading)
        return len(made) > before

    assert write()
    assert not write()
    assert [write(text="other"), write(script="opt -full"), write(models=(model,)), write(reading="read_verilog")] == [
        True
    ] * 4
    model.write_text("module two; endmodule\n")
    assert write(models=(model,))
    assert not write(models=(model,))
    monkeypatch.setattr(yosys, "version_of", lambda name: "another")
    assert write()


def cadical(monkeypatch, tmp_path, said, status):
    """Decide a formula with a solver that says this and ends so."""
    solver = tmp_path / "cadical"
    solver.write_text(f"#!/bin/sh\nprintf '{said}'\nexit {status}\n")
    solver.chmod(0o755)
    monkeypatch.setattr(z3_cadical, "cadical", lambda: (str(solver), "fake"))
    return z3_cadical.decide(SQUARE_OF_THREE, tmp_path / "clauses.cnf")


@pytest.mark.parametrize("status", [0, 1, 2, 15, 134, 139])
@pytest.mark.parametrize("said", ["", "s UNSATISFIABLE\\n", "s SATISFIABLE\\nv 1 0\\n", "c UNKNOWN\\n"])
def test_cadical_that_does_not_end_with_an_answer_proves_nothing_and_refutes_nothing(
    monkeypatch, tmp_path, said, status
):
    # Its status is its answer, 10 or 20: 0 says that it does not know.
    with pytest.raises(ToolError, match=rf"^cadical: .* \(status {status}\)$"):
        cadical(monkeypatch, tmp_path, said, status)


def test_cadical_that_ends_with_an_answer_is_believed(monkeypatch, tmp_path):
    assert cadical(monkeypatch, tmp_path, "s UNSATISFIABLE\\n", 20) == ("unsat", {})
    answer, model = cadical(monkeypatch, tmp_path, "s SATISFIABLE\\nv 0\\n", 10)
    assert (answer, set(model)) == ("sat", {"top.x"})


@pytest.mark.skipif(shutil.which("cadical") is None, reason="needs CaDiCaL")
def test_value_of_every_bit_is_read_from_the_solver(tmp_path):
    text = "(declare-const |top.x| (_ BitVec 40))\n(assert (= |top.x| #xa5c3f00f99))\n(declare-const |top.b| Bool)\n"
    answer, model = z3_cadical.decide(f"{text}(assert |top.b|)\n(assert (bvult |top.x| |top.y|))\n".replace(
        "(declare-const |top.b|", "(declare-const |top.y| (_ BitVec 40))\n(declare-const |top.b|"
    ), tmp_path / "clauses.cnf")  # fmt: skip
    assert (answer, model["top.x"], model["top.b"]) == ("sat", "0xa5c3f00f99", "0x1")
    assert int(model["top.y"], 16) > 0xA5C3F00F99
