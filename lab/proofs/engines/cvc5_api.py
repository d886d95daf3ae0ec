"""Engine C: cvc5, the only other one that takes any floating-point format."""

from __future__ import annotations

import cvc5

__all__ = ["decide"]


def decide(text: str) -> tuple[str, dict[str, str]]:
    """Return ``sat``, ``unsat`` or ``unknown``, and for ``sat`` the value of every declared constant in hex."""
    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    for option in ("fp-exp", "produce-models"):
        solver.setOption(option, "true")
    symbols = cvc5.SymbolManager(manager)
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, "(set-logic QF_UFBVFP)\n" + text, "proof")
    while True:
        command = parser.nextCommand()
        if command.isNull():
            break
        if said := command.invoke(solver, symbols):
            raise RuntimeError(f"cvc5: {said}")
    result = solver.checkSat()
    if not result.isSat():
        return "unsat" if result.isUnsat() else "unknown", {}
    constants = (term for term in symbols.getDeclaredTerms() if not term.getSort().isFunction())
    return "sat", {str(term).strip("|"): _hex(solver.getValue(term)) for term in constants}


def _hex(value: cvc5.Term) -> str:
    return hex(int(value.getBooleanValue()) if value.isBooleanValue() else int(value.getBitVectorValue(16), 16))
