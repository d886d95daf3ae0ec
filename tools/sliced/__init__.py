"""Netlists as bit planes: one instruction evaluates a gate for 512 vectors, or for 512 faulty copies of a unit.

Two compiled runners remain beside cocotb. CXXRTL (`tools.compiled`, `sim.cycles`) evaluates words, which one unit with
memories needs; these planes evaluate single bits, which make every input of a core, and one fault for each bit, cheap.
"""

from tools.sliced.netlist import Sliced

__all__ = ["Sliced"]
