"""A clock of another frequency than the board's: the ECP5's phase-locked loop."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from amaranth import Instance, Signal

__all__ = ["PllSettings"]

# Megahertz, from the data sheet: the oscillator, and the phase detector behind the input divider.
_OSCILLATOR = (400.0, 800.0)
_DETECTOR = (3.125, 400.0)
_DIVIDERS = range(1, 129)


@dataclass(frozen=True)
class PllSettings:
    """The three dividers of an EHXPLLL: output = input * `feedback` / `input`, oscillator = output * `output`.

    Parameters
    ----------
    given, wanted : float
        Megahertz in and out.
    input, feedback, output : int
        Dividers, 1 to 128.
    """

    given: float
    wanted: float
    input: int
    feedback: int
    output: int

    @classmethod
    def find(cls, given: float, wanted: float) -> PllSettings:
        """Return the settings that give exactly a frequency.

        Raises
        ------
        ValueError
            If no setting gives the frequency.
        """
        low, high = _OSCILLATOR
        for divider, feedback in itertools.product(range(1, 17), range(1, 81)):
            if abs(given * feedback / divider - wanted) > 1e-6 or not _DETECTOR[0] <= given / divider <= _DETECTOR[1]:
                continue
            fitting = [output for output in _DIVIDERS if low <= wanted * output <= high]
            if fitting:
                # In the middle of its range the oscillator is farthest from its limits.
                return cls(given, wanted, divider, feedback, fitting[len(fitting) // 2])
        raise ValueError(
            f"clock: got {wanted:g} MHz, must be one that a PLL makes of {given:g} MHz: {given:g} * n / m with n up to "
            f"80, m up to 16, at least {low / _DIVIDERS[-1]:g} and at most {high:g} MHz"
        )

    def instance(self, clock_in: Signal, clock_out: Signal, locked: Signal) -> Instance:
        """Return the loop between two clock signals; `locked` tells that the output is steady."""
        return Instance(
            "EHXPLLL",
            # What the loop filter needs to know, as the vendor's tools write it.
            a_FREQUENCY_PIN_CLKI=f"{self.given:g}",
            a_FREQUENCY_PIN_CLKOP=f"{self.wanted:g}",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_OUTDIVIDER_MUXA="DIVA",
            p_CLKI_DIV=self.input,
            p_CLKFB_DIV=self.feedback,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=self.output,
            p_CLKOP_CPHASE=self.output - 1,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            i_RST=0,
            i_STDBY=0,
            i_CLKI=clock_in,
            i_CLKFB=clock_out,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=clock_out,
            o_LOCK=locked,
        )
