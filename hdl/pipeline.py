"""Register ranks between combinational cores, and the handshake that moves them."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, Value

__all__ = ["rank"]


def rank(m: Module, name: str, value: Any, enable: Value, *, reset: bool = False, init: Any = None) -> Any:
    """Register a value while `enable` is high and return the register, of the same shape.

    Data needs no reset; pass ``reset=True`` for a valid bit. `init` is the value at power-up, 0 by default. In an FPGA,
    a condition that forces a register to a constant costs nothing if this is also its value at power-up.
    """
    register = Signal(value.shape(), name=name, reset_less=not reset, init=init)
    with m.If(enable):
        m.d.sync += register.eq(value)
    return register
