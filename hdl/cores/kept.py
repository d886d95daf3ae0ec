# amaranth: UnusedElaboratable=no
"""Copies of a register, each of which drives a part of what hangs on it."""

from __future__ import annotations

from amaranth import ClockSignal, Instance, Module, ResetSignal, Signal, Value

__all__ = ["kept"]


def kept(m: Module, register: Signal, value: Value, name: str, kind: str) -> Signal:
    """Return a copy of a register that synthesis does not merge with it.

    A register that reaches many lanes is far from most of them, and synthesis merges equal ones. For an ECP5 the copy
    is a primitive, which is kept. For any other target it is the register itself.

    Parameters
    ----------
    m : Module
        Gets the primitive.
    register : Signal
        Of one bit, 0 after a reset.
    value : Value
        What the register will hold in the next cycle.
    name : str
        Of the copy.
    kind : str
        One of `hdl.cores.multiplier.MULTIPLIERS`.
    """
    if kind != "ecp5":
        return register
    copy = Signal(name=name)
    m.submodules[f"kept_{name}"] = Instance(
        "TRELLIS_FF",
        a_keep=1,
        p_GSR="DISABLED",
        p_CEMUX="1",
        p_CLKMUX="CLK",
        p_LSRMUX="LSR",
        p_REGSET="RESET",
        p_SRMODE="LSR_OVER_CE",
        i_CLK=ClockSignal(),
        i_LSR=ResetSignal(),
        i_CE=1,
        i_DI=value,
        o_Q=copy,
    )
    return copy
