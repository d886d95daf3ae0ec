"""The choice of a rounding mode: the bits that bring it in, beside what is to be rounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.lib import data

from golden.rounding import Rounding
from hdl.cores.rounding import Bit

__all__ = ["chosen_modes", "controls_layout"]


def controls_layout(roundings: Sequence[Rounding], random_bits: int) -> data.StructLayout:
    """Return what comes with everything that is rounded: no fields if one mode is fixed and takes no random number.

    ``rounding``
        Code of the mode, if there are several to choose from.
    ``random``
        The random number, if ``stochastic`` is among them.
    """
    fields: dict[str, Any] = {"rounding": Rounding} if len(roundings) > 1 else {}
    return data.StructLayout(fields | ({"random": random_bits} if Rounding.STOCHASTIC in roundings else {}))


def chosen_modes(roundings: Sequence[Rounding], controls: Any) -> dict[Rounding, Bit]:
    """Return for each mode whether it is the chosen one; none is if the code names a mode that is not built.

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
