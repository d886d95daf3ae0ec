"""Groups of values that pass from one core to the next."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from amaranth import Module, Signal

from hdl.cores.words import named

__all__ = ["Bundle"]


class Bundle(SimpleNamespace):
    """Named values: the arguments and results of the datapath's steps.

    Parameters
    ----------
    **values : Value or Bundle
    """

    def map(self, function: Callable[[str, Any], Any], prefix: str = "") -> Bundle:
        """Return the bundle with a function of name and value applied to every value, nested bundles included."""
        return Bundle(
            **{
                name: value.map(function, f"{prefix}{name}_")
                if isinstance(value, Bundle)
                else function(prefix + name, value)
                for name, value in vars(self).items()
            }
        )

    def but(self, **changed: Any) -> Bundle:
        """Return the bundle with some values replaced or added."""
        return Bundle(**vars(self) | changed)

    def without(self, *names: str) -> Bundle:
        """Return the bundle with some values left out."""
        return Bundle(**{name: value for name, value in vars(self).items() if name not in names})

    def named(self, m: Module) -> Bundle:
        """Assign every value to a signal with its name."""
        return self.map(lambda name, value: named(m, name, value))

    def registered(self, m: Module, step: str) -> Bundle:
        """Assign every value to a register without reset, with the name of the step before its own."""

        def register(name: str, value: Any) -> Signal:
            held = Signal(value.shape(), name=f"{step}_{name}", reset_less=True)
            m.d.sync += held.eq(value)
            return held

        return self.map(register)
