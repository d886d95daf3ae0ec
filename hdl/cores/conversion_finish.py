"""Conversion between any two formats, the last step: round in the chosen mode, determine class and flags."""

from __future__ import annotations

from amaranth import C, Cat, Const, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.rounding import Rounding
from hdl.cores.conversion_align import aligned_layout
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.conversion_words import at_least
from hdl.cores.modes import chosen_modes
from hdl.cores.result import result_layout
from hdl.cores.rounding import Bit, increment, of_chosen, stays_finite
from hdl.cores.words import named

__all__ = ["FinishConversion"]


class FinishConversion(wiring.Component):
    """Round to the destination, and determine the flags. Combinational.

    ::

        [ exponent_field | fraction ] guard | sticky
                       + increment

    The carry turns the largest subnormal into the smallest normal, and a full fraction into the next binade. The word
    is wide enough for every source number; a result is too large if it is above the largest finite code.

    Where subnormals are flushed, a number that is below the smallest normal one after the carry becomes a zero. If a
    format has no subnormals, the exponent field is counted as `ConversionPlan` says; the code takes it back.

    For a mode that the unit lacks, code and flags are 0.

    Parameters
    ----------
    plan : ConversionPlan

    Ports
    -----
    i : aligned_layout(plan), in
    controls : plan.controls, in
        Absent where it has no fields.
    o : result_layout(destination.width), out
    """

    def __init__(self, plan: ConversionPlan) -> None:
        self.plan = plan
        controls = {"controls": In(plan.controls)} if plan.controls.size else {}
        super().__init__({"i": In(aligned_layout(plan)), **controls, "o": Out(result_layout(plan.destination.width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o, plan = self.i, self.o, self.plan
        destination = plan.destination
        chosen = chosen_modes(plan.roundings, getattr(self, "controls", None))
        kept = Cat(i.fraction, i.exponent_field)
        is_lost, is_tiny = C(0, 1), C(0, 1)
        total: Value = kept
        if not plan.is_exact:
            is_lost = named(m, "is_lost", i.guard.any() | i.sticky)
            more = named(m, "more", Cat(self._increment(chosen, 0, lowest=i.fraction[0])))
            total = named(m, "rounded", (kept + more)[: len(kept)])
        if plan.in_place:
            is_low = i.is_low | ~total[destination.fraction_bits :].any()
            is_flushed = named(m, "is_flushed", is_low)
            total = named(m, "flushed", Mux(is_flushed, 0, total))
            is_tiny = is_flushed & ~i.is_zero
            is_lost = (is_lost | is_tiny) & ~i.is_zero
        elif plan.flushes_results:
            is_zero = named(m, "is_zero", ~(kept.any() | i.guard.any() | i.sticky))
            is_flushed = named(m, "is_flushed", ~at_least(total, plan.smallest_kept))
            total = named(m, "flushed", Mux(is_flushed, 0, total))
            is_tiny = is_flushed & ~is_zero
            is_lost = is_lost | is_tiny
        elif not plan.is_exact:
            # Tininess after rounding: with an unbounded exponent the result would keep one more bit. It reaches the
            # smallest normal only if these bits are all ones and the bits after them round it up.
            becomes_normal = i.fraction.all() & i.guard[-1] & self._increment(chosen, 1, lowest=1)
            is_tiny = ~i.exponent_field.any() & ~becomes_normal
        is_number = ~(i.is_nan | i.is_infinite)
        shift = plan.destination_shift
        beyond = destination.max_finite + 1 + (shift << destination.fraction_bits)
        is_beyond = named(m, "is_beyond", is_number & at_least(total, beyond))

        # Select a special code instead of the rounded number.
        has_special = not plan.saturates and (destination.has_inf or destination.has_nan)
        stays = of_chosen(chosen, lambda mode: stays_finite(mode, i.sign)) if has_special else 1
        to_largest = named(m, "to_largest", is_beyond & stays if has_special else is_beyond | i.is_infinite)
        to_special = (i.is_infinite | is_beyond) & ~to_largest if has_special else C(0, 1)
        if shift:
            field = (total[destination.fraction_bits :] - shift)[: destination.exponent_bits]
            total = Cat(total[: destination.fraction_bits], Mux(is_flushed, 0, field))
        magnitude = Cat(total, C(0, destination.width))[: destination.width - 1]
        magnitude = Mux(to_largest, destination.max_finite, magnitude)
        is_nan = i.is_nan
        if destination.has_inf:
            magnitude = Mux(to_special, destination.inf, magnitude)
        elif destination.has_merged:
            magnitude = Mux(to_special, destination.nan, magnitude)
        else:
            is_nan = is_nan | to_special
        magnitude = named(m, "magnitude", magnitude[: destination.width - 1])
        sign = i.sign if destination.has_negative_zero else i.sign & magnitude.any()
        nan = Const(destination.nan if destination.has_nan else 0, destination.width)
        overflow = is_beyond if has_special else to_largest
        if destination.has_merged:
            overflow = overflow | i.is_infinite
        flags = {
            "inexact": overflow | (is_number & is_lost),
            "underflow": is_number & is_tiny & is_lost,
            "overflow": overflow,
            "invalid": i.is_signalling if destination.has_nan and not destination.has_merged else i.is_nan,
        }
        code = Mux(is_nan, nan, Cat(magnitude, sign))
        if len(plan.roundings) > 1:
            # Gates, because a condition around the assignments would create a process for the flag that is always 0.
            is_known = named(m, "is_known", of_chosen(chosen, lambda mode: 1))
            code = code & is_known.replicate(destination.width)
            flags = {name: flag & is_known for name, flag in flags.items()}
        m.d.comb += o.bits.eq(code)
        if plan.with_flags:
            m.d.comb += [o.flags[name].eq(flag) for name, flag in flags.items()]
        return m

    def _increment(self, chosen: dict[Rounding, Bit], places: int, *, lowest: Bit) -> Bit:
        """Return the increment if the number were rounded `places` guard bits below the lowest fraction bit."""
        i, plan = self.i, self.plan
        guard = i.guard[: len(i.guard) - places]

        def of_mode(mode: Rounding) -> Bit:
            if mode is Rounding.STOCHASTIC:
                rest = guard[len(guard) - plan.random_bits :]
                return (rest + self.controls.random)[plan.random_bits]
            sticky = guard[:-1].any() | i.sticky
            return increment(mode, round_bit=guard[-1], sticky=sticky, lowest=lowest, sign=i.sign)

        return of_chosen(chosen, of_mode)
