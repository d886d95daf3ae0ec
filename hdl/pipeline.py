"""Register ranks between combinational cores, and the handshake that moves them."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, Value

__all__ = ["rank"]


def rank(m: Module, name: str, value: Any, enable: Value, *, reset: bool = False, init: Any = None) -> Any:
    """Register a value while `enable` is high and return the register, of the same shape.

    Data needs no reset; pass ``reset=True`` for a valid bit. `init` is what it holds at power-up, 0 unless given: a
    register of an FPGA that some condition forces to a constant does so at no cost if it powers up with that constant.
    """
    register = Signal(value.shape(), name=name, reset_less=not reset, init=init)
    with m.If(enable):
        m.d.sync += register.eq(value)
    return register
