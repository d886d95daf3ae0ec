"""The plan of a converter: formats, rounding modes, and the treatment of overflow."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.lib import data

from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, OVERFLOWS, Rounding
from hdl.cores.modes import controls_layout

__all__ = ["ConversionPlan"]


@dataclass(frozen=True)
class ConversionPlan:
    """A conversion: two formats, rounding modes and options.

    Parameters
    ----------
    source, destination : FloatFormat
    roundings : tuple of Rounding
        The modes that can be chosen at run time; a single one is fixed.
    overflow : str
        ``"special"`` or ``"saturate"``.
    random_bits : int
        Bits of a random number, if ``stochastic`` is among the modes.
    with_flags : bool
        Whether flags are computed; they are 0 otherwise.
    flushes : bool
        Whether subnormal codes and results become zeros of their sign (NUMERICS section 12).
    """

    source: FloatFormat
    destination: FloatFormat
    roundings: tuple[Rounding, ...] = (Rounding.NEAREST_EVEN,)
    overflow: str = OVERFLOWS[0]
    random_bits: int = DEFAULT_RANDOM_BITS
    with_flags: bool = True
    flushes: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is the default conversion of IEEE 754, which has a shorter datapath."""
        only_nearest = self.roundings == (Rounding.NEAREST_EVEN,)
        is_ieee = self.source.has_inf and self.destination.has_inf
        return only_nearest and is_ieee and not (self.saturates or self.flushes)

    @property
    def saturates(self) -> bool:
        """Whether infinities, and results that are too large, become the largest finite value."""
        return self.overflow != OVERFLOWS[0]

    @property
    def is_exact(self) -> bool:
        """Whether the destination holds every number of the source."""
        return self.destination.holds(self.source)

    @property
    def is_stochastic(self) -> bool:
        """Whether the converter takes random numbers."""
        return Rounding.STOCHASTIC in self.roundings

    @property
    def guard_bits(self) -> int:
        """Bits kept below the lowest fraction bit, not counting the sticky bit.

        The bits that decide on the rounding, and one that the largest subnormals keep with an unbounded exponent.
        """
        if self.is_exact:
            return 0
        return (not self.flushes) + (self.random_bits if self.is_stochastic else 1)

    @property
    def word_width(self) -> int:
        """Bits of ``[ leading | fraction | guard ]``."""
        return self.destination.precision + self.guard_bits

    @property
    def controls(self) -> data.StructLayout:
        """The controls of a code: ``rounding`` with several modes, and ``random`` if one is stochastic."""
        return controls_layout(self.roundings, self.random_bits)
