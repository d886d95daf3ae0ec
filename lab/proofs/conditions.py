"""Named conditions of a formula: which of them do not hold in a solution."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from lab.proofs.terms import equal

__all__ = ["named_conditions", "that_fail"]

_NAMES = re.compile(r"^; fails\.(\w+) (.*): (\[.*\])$", re.MULTILINE)


def named_conditions(port: str, words: str, names: Sequence[str], term: str, width: int) -> str:
    """Return the text that keeps conditions, and their names with them, for `that_fail`.

    Parameters
    ----------
    port : str
        A name that nothing else in the formula has.
    words : str
        Where, or when, they must hold; it follows their names.
    names : sequence of str
        Of the bits of `term`, the lowest first; further bits have no name.
    term : str
        A word of `width` bits; a bit is 1 if its condition holds.
    width : int
        Bits of the term.
    """
    constant = f"|fails.{port}|"
    return (
        f"; fails.{port} {words}: {json.dumps(list(names))}\n"
        f"(declare-const {constant} (_ BitVec {width}))\n(assert {equal(constant, term)})\n"
    )


def that_fail(text: str, ports: Mapping[str, int]) -> str:
    """Return the names of the conditions of a formula that a solution breaks; nothing if the formula names none.

    Parameters
    ----------
    text : str
        The formula.
    ports : dict of str to int
        The solution: the value of each port.
    """
    fails = []
    for port, words, listed in _NAMES.findall(text):
        names = [name for place, name in enumerate(json.loads(listed)) if not ports[port] >> place & 1]
        if names:
            fails.append(f"{', '.join(names)} {words}")
    return f"does not hold: {'; '.join(fails)}" if fails else ""
