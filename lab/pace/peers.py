"""Other open units, measured with the same tools, device, wrapper and seeds as `make fpga`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PEERS", "Peer"]


@dataclass(frozen=True)
class Peer:
    """A fused multiply-add unit that takes one product in every cycle.

    Parameters
    ----------
    name : str
    operand, accumulator : str
    comb : int
        LUT4 + 2 CCU2C.
    megahertz : float
        Median of three seeds; of a range that was measured, the upper end.
    """

    name: str
    operand: str
    accumulator: str
    comb: int
    megahertz: float

    @property
    def density(self) -> float:
        """Million products per second and 1000 COMB."""
        return 1000 * self.megahertz / self.comb


_HARDFLOAT = "Berkeley HardFloat, 4 cut points"

#: Those that accumulate in the operand format, and those that accumulate in fp32.
PEERS = (
    Peer(_HARDFLOAT, "float16", "float16", 1050, 68),
    Peer(_HARDFLOAT, "1-6-9 bits", "1-6-9 bits", 1075, 68),
    Peer(_HARDFLOAT, "bfloat16", "bfloat16", 825, 68),
    Peer("FloPoCo, 3 ranks", "float16", "float16", 835, 72),
    Peer(_HARDFLOAT, "float16", "float32", 2373, 55),
    Peer("FPnew multi-format, 3 registers", "float32, float16, bfloat16", "the same", 2685, 32),
)
