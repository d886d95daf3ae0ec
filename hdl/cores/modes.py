"""The choice of a rounding mode: the control bits that accompany each number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.lib import data

from golden.rounding import Rounding
from hdl.cores.rounding import Bit

__all__ = ["chosen_modes", "controls_layout"]


def controls_layout(roundings: Sequence[Rounding], random_bits: int) -> data.StructLayout:
    """Return the layout of the rounding controls; it has no fields for a single mode without random numbers.

    ``rounding``
        Code of the mode, if there are several to choose from.
    ``random``
        The random number, if ``stochastic`` is among them.
    """
    fields: dict[str, Any] = {"rounding": Rounding} if len(roundings) > 1 else {}
    return data.StructLayout(fields | ({"random": random_bits} if Rounding.STOCHASTIC in roundings else {}))


def chosen_modes(roundings: Sequence[Rounding], controls: Any) -> dict[Rounding, Bit]:
    """Return for each mode whether it is the chosen one; none is if the unit lacks the mode that the code names.

    Parameters
    ----------
    roundings : sequence of Rounding
        The modes that are built.
    controls : View or None
        With the fields of `controls_layout`; None where it has none.
    """
    if len(roundings) == 1:
        return {roundings[0]: 1}
    return {mode: controls.rounding == mode.value for mode in roundings}
