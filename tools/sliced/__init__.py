"""Netlists as bit-sliced machine code: hundreds of millions of vectors a second."""

from tools.sliced.netlist import Sliced

__all__ = ["Sliced"]
