"""What a bug put into the RTL is."""

from __future__ import annotations

from dataclasses import dataclass

from sim.run.compiled import Engine
from tools.evidence import Unit, of_rtl

__all__ = ["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """An edit of the RTL.

    Parameters
    ----------
    name : str
    file : str
        Below ``hdl``.
    old, new : str
        Source text; `old` must occur exactly once.
    unit : str
        The unit whose regression must fail.
    scenarios : str
        The scenarios that are run; all of them if empty.
    effort : float
        Share of the unit's stimulus.
    engine : Engine
        What runs it. Where few scenarios show it, a simulator takes less time than a compiler.
    """

    name: str
    file: str
    old: str
    new: str
    unit: str = "mac_cbfloat16"
    scenarios: str = ""
    effort: float = 0.15
    engine: Engine = Engine.COMPILED

    @property
    def part(self) -> Unit:
        """What it is a fault of: the unit, or the step inside it."""
        unit = of_rtl(self.unit)
        return Unit.STEP if self.file.startswith("cores/") and unit is not Unit.CONVERTERS else unit
