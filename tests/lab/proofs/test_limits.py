"""Limits of a solver: processor time, so that what else the machine does changes no verdict; and patience behind it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from lab.proofs import proof
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof, Verdict, prove
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
