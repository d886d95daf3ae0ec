"""Engine B: bitwuzla, whose encoder of floating point is SymFPU."""

from __future__ import annotations

import bitwuzla

__all__ = ["decide"]


def decide(text: str) -> tuple[str, dict[str, str]]:
    """Return ``sat``, ``unsat`` or ``unknown``, and for ``sat`` the value of every declared constant in hex."""
    manager, options = bitwuzla.TermManager(), bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(manager, options)
    parser.parse(text, True, False)
    solver = parser.bitwuzla()
    answer = str(solver.check_sat()).rpartition(".")[2].lower()
    if answer != "sat":
        return answer, {}
    constants = (term for term in parser.get_declared_funs() if not term.sort().is_fun())
    return "sat", {term.symbol().strip("|"): _hex(solver.get_value(term)) for term in constants}


def _hex(value: bitwuzla.Term) -> str:
    return hex(int(value.value() if value.sort().is_bool() else int(value.value(16), 16)))
