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

    Notes
    -----
    A datapath with a format that has no subnormals (NUMERICS section 13) counts exponent fields so that 0 is left for
    numbers below those that the datapath keeps: `source_shift` and `destination_shift` are added to the fields of a
    code, and to its bias::

        destination    exponent    emin - 2 and below    emin - 1     emin
                       field               0                1           2      becomes a zero below the smallest normal
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
        is_ieee = self.source.is_ieee and self.destination.is_ieee
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
    def has_shifted_fields(self) -> bool:
        """Whether a format has no subnormals, so that fields are counted another way."""
        return not (self.source.subnormals and self.destination.subnormals)

    @property
    def in_place(self) -> bool:
        """Whether nothing is shifted: subnormals of two formats that have them are flushed."""
        return self.flushes and not self.has_shifted_fields

    @property
    def flushes_results(self) -> bool:
        """Whether results below the smallest normal number become zeros."""
        return self.flushes or not self.destination.subnormals

    @property
    def source_shift(self) -> int:
        """What is added to exponent fields of the source."""
        return int(self.source.normal_zero_field)

    @property
    def destination_shift(self) -> int:
        """How much larger the exponent fields inside are than the destination's."""
        if self.in_place or not self.flushes_results:
            return 0
        return 1 + self.destination.normal_zero_field

    @property
    def smallest_kept(self) -> int:
        """The smallest normal number of the destination: exponent field and fraction, as they are counted inside."""
        return self.destination.min_normal + (self.destination_shift << self.destination.fraction_bits)

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
        return (not self.flushes_results) + (self.random_bits if self.is_stochastic else 1)

    @property
    def word_width(self) -> int:
        """Bits of ``[ leading | fraction | guard ]``."""
        return self.destination.precision + self.guard_bits

    @property
    def controls(self) -> data.StructLayout:
        """The controls of a code: ``rounding`` with several modes, and ``random`` if one is stochastic."""
        return controls_layout(self.roundings, self.random_bits)
