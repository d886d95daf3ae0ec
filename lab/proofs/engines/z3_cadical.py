"""Engine A: z3 encodes floating point and bit-vectors into clauses, which CaDiCaL decides."""

from __future__ import annotations

from pathlib import Path

import z3

from lab.netlists.errors import ToolError, cadical
from lab.proofs.engines.limits import run_within_limit

__all__ = ["TACTICS", "decide"]

#: From floating point to clauses.
TACTICS = ("simplify", "fpa2bv", "simplify", "bit-blast", "simplify", "aig", "tseitin-cnf")
#: The tactic replaces uninterpreted functions by instances of "equal inputs give equal results". Beyond this limit it
#: leaves them as they are, and the clauses then do not constrain them.
_INSTANCES = 1 << 30
_SATISFIABLE, _UNSATISFIABLE = 10, 20


def decide(text: str, clauses: Path) -> tuple[str, dict[str, str]]:
    """Return ``sat`` or ``unsat``, and for ``sat`` the value of every declared constant in hex."""
    assertions = z3.parse_smt2_string(text)
    constants = _constants(assertions)
    # As Booleans with names, the bits of the constants can be found among the variables of the clauses.
    words = {
        name: [z3.Bool(f"{name}[{bit}]") for bit in range(constant.size() if z3.is_bv(constant) else 1)]
        for name, constant in constants.items()
    }
    exchanged = [
        (constants[name], _word(bits) if z3.is_bv(constants[name]) else bits[0]) for name, bits in words.items()
    ]
    goal = z3.Goal()
    goal.add(*(z3.substitute(assertion, *exchanged) for assertion in assertions))
    tactics = [z3.Tactic(name) for name in TACTICS]
    if "(declare-fun" in text:
        tactics[:0] = [z3.Tactic("simplify"), z3.With("ackermannize_bv", div0_ackermann_limit=_INSTANCES)]
    (flat,) = z3.Then(*tactics)(goal)
    if flat.inconsistent():
        return "unsat", {}
    dimacs = flat.dimacs()
    header, _, names = dimacs.partition("\nc ")
    clauses.write_text(header + "\n", encoding="utf-8")
    numbers = {}
    for line in names.splitlines():
        number, _, name = line.removeprefix("c ").partition(" ")
        numbers[name.strip("|")] = int(number)
    path, _ = cadical()
    done = run_within_limit([path, "-q", str(clauses)])
    clauses.unlink()
    if done.returncode == _UNSATISFIABLE:
        return "unsat", {}
    if done.returncode != _SATISFIABLE:
        said = (done.stderr + done.stdout).strip().splitlines() or ["no message"]
        raise ToolError(f"cadical: {said[-1]} (status {done.returncode})")
    true = {
        int(number)
        for line in done.stdout.splitlines()
        if line.startswith("v ")
        for number in line.split()[1:]
        if int(number) > 0
    }
    # A bit that no clause mentions may be anything: 0.
    return "sat", {
        name: hex(sum(1 << bit for bit in range(len(bits)) if numbers.get(f"{name}[{bit}]", 0) in true))
        for name, bits in words.items()
    }


def _word(bits: list[z3.BoolRef]) -> z3.BitVecRef:
    ones = [z3.If(bit, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) for bit in reversed(bits)]
    return z3.Concat(*ones) if len(ones) > 1 else ones[0]


def _constants(assertions: z3.AstVector) -> dict[str, z3.ExprRef]:
    found, seen, waiting = {}, set(), list(assertions)
    while waiting:
        term = waiting.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            if not z3.is_bv(term) and not z3.is_bool(term):
                raise ToolError(f"z3: got {term.decl()} of sort {term.sort()}, must be Boolean or a bit-vector")
            found[str(term.decl().name())] = term
        waiting += term.children()
    return found
