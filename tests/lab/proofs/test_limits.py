"""Solvers: limits of processor time, CaDiCaL's answers, and answers that are kept for the very same question."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from lab.netlists import yosys
from lab.netlists.errors import ToolError
from lab.proofs import proof
from lab.proofs.engines import z3_cadical
from lab.proofs.proof import BITWUZLA, CVC5, Z3_CADICAL, Proof, Verdict, prove
from tools.paths import ROOT

NO_SOLUTION = "(declare-const |top.x| (_ BitVec 8))\n(assert (= (bvmul |top.x| |top.x|) #x03))\n"
#: The product of two primes of 40 bits: to find them takes much longer than the limits here.
FACTORS = f"""(declare-const |top.x| (_ BitVec 80))
(declare-const |top.y| (_ BitVec 80))
(assert (bvult |top.x| |top.y|))
(assert (bvult |top.y| #x00000000010000000000))
(assert (bvult #x00000000000000000001 |top.x|))
(assert (= (bvmul |top.x| |top.y|) #x{780136993147 * 864605056841:020x}))
"""


def proof_of(text, engine, timeout):
    return Proof("claim", "unit", "mode", "none", engine, lambda folder: text, timeout)


@pytest.mark.parametrize("engine", [BITWUZLA, Z3_CADICAL])
def test_solver_beyond_its_processor_time_is_ended_and_the_proof_unknown(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(proof, "_PATIENCE", 300)
    told = prove(proof_of(FACTORS, engine, 1), tmp_path)
    assert (told.verdict, told.remark) == (Verdict.UNKNOWN, "not decided within 1 s of processor time")


STARTS_ANOTHER = """
import sys, time
from lab.proofs.engines.limits import limit_processor_time, run_within_limit
limit_processor_time(2)
while time.process_time() < 1.3: pass
run_within_limit([sys.executable, "-c", "while True: pass"])
print("not ended")
"""


@pytest.mark.long
def test_program_that_an_engine_starts_has_what_is_left_of_its_processor_time_and_not_as_much_again():
    before = sum(os.times()[2:4])
    done = subprocess.run([sys.executable, "-c", STARTS_ANOTHER], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGXCPU, ""), done.stderr
    assert sum(os.times()[2:4]) - before < 2.9


def test_solver_that_waits_longer_than_its_processor_time_still_decides(tmp_path):
    def hold_up():
        while not proof._RUNNING:
            time.sleep(0.001)
        (solver,) = proof._RUNNING
        os.kill(solver.pid, signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(solver.pid, signal.SIGCONT)

    other = threading.Thread(target=hold_up)
    other.start()
    told = prove(proof_of(NO_SOLUTION, BITWUZLA, 2), tmp_path)
    other.join()
    assert told.verdict is Verdict.PROVEN


def test_solver_that_never_gets_its_processor_time_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(proof, "_PATIENCE", 0)
    told = prove(proof_of(NO_SOLUTION, BITWUZLA, 60), tmp_path)
    assert (told.verdict, told.remark) == (Verdict.UNKNOWN, "not decided within 0 s")


#: The formula that z3 leaves to the solver.
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
