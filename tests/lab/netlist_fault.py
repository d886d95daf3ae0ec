"""A fault in a netlist that the exhaustive checks evaluate."""

import numpy as np

from tools.sliced import netlist
from tools.sliced.gates import KINDS

AND, OR = ([*KINDS].index(kind) for kind in ("$_AND_", "$_OR_"))


def with_a_changed_gate(monkeypatch, which):
    """Turn one AND of every netlist into an OR."""
    right = netlist.circuit

    def wrong(nets, rows):
        changed = rows.copy()
        changed[np.flatnonzero(rows[:, 0] == AND)[which], 0] = OR
        return right(nets, changed)

    monkeypatch.setattr(netlist, "circuit", wrong)
