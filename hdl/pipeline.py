"""Register ranks between combinational cores, and the handshake that moves them."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, Value

__all__ = ["check_flags", "check_stages", "rank"]


def check_stages(stages: object, most: int, default: int) -> int:
    """Return the number of register ranks to build: `default` for None.

    Raises
    ------
    TypeError
        If it is not an int.
    ValueError
        If it is below 1 or above `most`.
    """
    if stages is None:
        return default
    if not isinstance(stages, int) or isinstance(stages, bool):
        raise TypeError(f"stages: got {stages!r}, must be an int from 1 to {most}, or None for {default}")
    if not 1 <= stages <= most:
        raise ValueError(f"stages: got {stages}, must be from 1 to {most} (None builds {default})")
    return stages


def check_flags(flags: object) -> bool:
    """Return whether flags are computed.

    Raises
    ------
    TypeError
        If it is not a bool.
    """
    if not isinstance(flags, bool):
        raise TypeError(f"flags: got {flags!r}, must be True or False")
    return flags


def rank(m: Module, name: str, value: Any, enable: Value, *, reset: bool = False, init: Any = None) -> Any:
    """Register a value while `enable` is high and return the register, of the same shape.

    Data needs no reset; pass ``reset=True`` for a valid bit. `init` is what it holds at power-up, 0 unless given: a
    register of an FPGA that some condition forces to a constant does so at no cost if it powers up with that constant.
    """
    register = Signal(value.shape(), name=name, reset_less=not reset, init=init)
    with m.If(enable):
        m.d.sync += register.eq(value)
    return register
