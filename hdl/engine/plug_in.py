"""The simulated engine as a back end of `golden` by name: ``golden.backend("simulated")``, ``fit --backend simulated``.

`golden` finds it as an entry point of the group ``cbfloat.backends`` and so never imports `hdl`.
"""

from __future__ import annotations

from hdl.engine.engine import Engine

__all__ = ["simulated"]


def simulated() -> Engine:
    """Return an engine of 4 x 4 lanes for cbfloat16 at all levels, simulated."""
    engine = Engine.simulated()
    engine.name = "simulated"
    return engine
