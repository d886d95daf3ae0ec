"""Netlists as bit planes: one instruction evaluates a gate for 512 vectors, or for 512 faulty copies of a unit.

There are two compiled runners beside cocotb. CXXRTL (`tools.compiled`, `sim.cycles`) evaluates words, which suits one
unit with memories. These planes evaluate single bits, which makes every input of a core, and one fault for each bit,
cheap.
"""

from tools.sliced.netlist import Sliced

__all__ = ["Sliced"]
