"""Registers of each lane's own, where synthesis would merge equal ones into one with many readers."""

from __future__ import annotations

from typing import Any

from amaranth import C, ClockSignal, Instance, Module, ResetSignal, Signal, Value

__all__ = ["copied"]


def copied(m: Module, name: str, value: Any, kind: str, *, resets: bool = False) -> Any:
    """Register a value, also where other registers have the same, and return the register, of the same shape.

    In the generic form this is a plain register; it is the one that is simulated and proven. For a family whose
    synthesis merges equal registers, every bit is a primitive that it must keep.

    Parameters
    ----------
    m : Module
    name : str
    value : ValueCastable
    kind : str
        One of `hdl.cores.multiplier.MULTIPLIERS`.
    resets : bool
        Whether a reset clears the register: that of its clock domain. ``ResetInserter`` would miss the primitive; what
        clears a part does so by `hdl.cores.clearing`.
    """
    register = Signal(value.shape(), name=name, reset_less=not resets)
    if kind != "ecp5":
        m.d.sync += register.eq(value)
        return register
    bits = Value.cast(value)
    for place, bit in enumerate(bits):
        m.submodules[f"{name}_{place}"] = _ecp5(bit, Value.cast(register)[place], resets=resets)
    return register


def _ecp5(bit: Value, q: Value, *, resets: bool) -> Instance:
    """Instantiate a TRELLIS_FF without enable, which starts at 0 as every register does."""
    return Instance(
        "TRELLIS_FF",
        a_keep=1,
        p_GSR="DISABLED",
        p_CEMUX="1",
        p_CLKMUX="CLK",
        p_LSRMUX="LSR",
        p_SRMODE="LSR_OVER_CE",
        p_REGSET="RESET",
        i_CLK=ClockSignal(),
        i_LSR=ResetSignal(allow_reset_less=True) if resets else C(0, 1),
        i_DI=bit,
        o_Q=q,
    )
