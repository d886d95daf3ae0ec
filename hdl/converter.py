"""The format converter: a pipelined stream unit around the conversion cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, OVERFLOWS, SUBNORMALS, Rounding
from hdl.cores.conversion import conversion_cores
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.modes import chosen_modes
from hdl.cores.result import flags_layout
from hdl.cores.rounding import of_chosen
from hdl.definitions import Choice, Format, RandomBits, Roundings, Stages, Subnormals, Switch
from hdl.parameters import Parameters, built_from, documented
from hdl.pipeline import rank

__all__ = ["DEPTHS", "ConverterParameters", "FloatConverter"]

#: Every depth. Units and proofs of every depth are made from this.
DEPTHS = (1, 2, 3)
_EXACT, _ROUNDED = 1, 2


@dataclass(frozen=True, kw_only=True)
class ConverterParameters(Parameters):
    """Parameters of `hdl.FloatConverter`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    source: Annotated[FloatFormat, Format("format of the codes that enter")]
    destination: Annotated[FloatFormat, Format("format of the results")]
    stages: Annotated[
        int,
        Stages(
            "register ranks",
            DEPTHS[-1],
            f"{_EXACT} for an exact conversion, {_ROUNDED} for one that rounds",
            note="1: at the output. 2: also before rounding. 3: also in the middle of the shift.",
        ),
    ] = None  # type: ignore[assignment]  # None only between the call and the check
    flags: Annotated[bool, Switch("exception flags", note="Without them the output has no field ``flags``.")] = True
    roundings: Annotated[
        Sequence[Rounding | str],
        Roundings(
            "rounding modes",
            note="A single one is fixed; of several, each code names its own in the field ``rounding``.",
            is_rare=True,
        ),
    ] = (Rounding.NEAREST_EVEN,)
    overflow: Annotated[
        str,
        Choice(
            "what becomes of a result that is too large: infinity or NaN, or the largest finite value",
            OVERFLOWS,
            note="``special`` gives the largest finite value, too, where the destination has neither infinity nor NaN.",
            is_rare=True,
        ),
    ] = OVERFLOWS[0]
    random_bits: RandomBits = DEFAULT_RANDOM_BITS
    subnormals: Subnormals = SUBNORMALS[0]

    @property
    def plan(self) -> ConversionPlan:
        """The plan that the cores are built from."""
        modes: tuple[Rounding, ...] = self.roundings  # type: ignore[assignment]  # checked
        flushes = self.subnormals == "flush"
        return ConversionPlan(
            self.source, self.destination, modes, self.overflow, self.random_bits, self.flags, flushes
        )

    @property
    def recommended_stages(self) -> int:
        """The default depth, which gives the highest clock frequency."""
        return _EXACT if self.destination.holds(self.source) else _ROUNDED


@documented(ConverterParameters)
class FloatConverter(wiring.Component):
    """Convert a stream of codes from one format to another (NUMERICS section 3).

    One conversion enters and one leaves in every cycle. The result follows its code after `latency` cycles. The whole
    pipeline stalls while a result is not accepted.

    Attributes
    ----------
    latency : int
        Cycles from input to output.
    i : stream of unsigned(source.width), in
        Codes of `source`. With several modes, or random numbers, a struct:

        - ``bits``: the code
        - ``rounding``: code of the mode (NUMERICS section 9), 3 bits; absent with a single mode
        - ``random``: `random_bits` bits (NUMERICS section 10); absent unless ``stochastic`` is among the modes
    o : stream of struct, out
        - ``bits``: code of `destination`
        - ``flags``: five bits in the order of `golden.Flag`; absent in a unit without flags
        - ``error``: 1 if ``rounding`` named a mode that the unit was not built for; bits and flags are then 0. Absent
          with a single mode

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If `stages` is out of range.
    """

    @built_from(ConverterParameters)
    def __init__(self, parameters: ConverterParameters) -> None:
        self.latency = self.stages
        controls = parameters.plan.controls
        self._has_choice = "rounding" in controls.members
        code = (
            data.StructLayout({"bits": self.source.width, **controls.members}) if controls.size else self.source.width
        )
        #: Comments in the generated Verilog for ports that are not structs.
        self.port_notes = {} if controls.size else {"i__payload": f"code of {self.source}"}
        fields = {"bits": self.destination.width} | ({"flags": flags_layout()} if self.flags else {})
        super().__init__(
            {
                "i": In(stream.Signature(code)),
                "o": Out(stream.Signature(data.StructLayout(fields | ({"error": 1} if self._has_choice else {})))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan = self.parameters.plan
        first, second, rounder = conversion_cores(plan)
        m.submodules.first_shift, m.submodules.second_shift = first, second
        m.submodules.round = rounder

        enable = ~self.o.valid | self.o.ready
        controls = None
        if plan.controls.size:
            code, controls = self.i.payload.bits, Signal(plan.controls)
            m.d.comb += [controls[name].eq(self.i.payload[name]) for name in plan.controls.members]
        else:
            code = self.i.payload
        m.d.comb += [self.i.ready.eq(enable), first.code.eq(code)]
        valid, half_shifted = self.i.valid, first.o
        if self.stages >= 3:
            valid = rank(m, "half_shifted_valid", valid, enable, reset=True)
            half_shifted = rank(m, "half_shifted", half_shifted, enable)
            if controls is not None:
                controls = rank(m, "half_shifted_controls", controls, enable)
        m.d.comb += second.i.eq(half_shifted)
        shifted = second.o
        if self.stages >= 2:
            valid = rank(m, "shifted_valid", valid, enable, reset=True)
            shifted = rank(m, "shifted", shifted, enable)
            if controls is not None:
                controls = rank(m, "shifted_controls", controls, enable)
        m.d.comb += rounder.i.eq(shifted)
        if controls is not None:
            m.d.comb += rounder.controls.eq(controls)
        m.d.comb += self.o.valid.eq(rank(m, "result_valid", valid, enable, reset=True))
        # All NaNs have one code. If the register powers up with it, synchronous set and reset inputs can produce it.
        init = {"bits": self.destination.nan} if self.destination.has_nan else None
        result = rank(m, "result", rounder.o, enable, init=init)
        m.d.comb += self.o.payload.bits.eq(result.bits)
        if self.flags:
            m.d.comb += self.o.payload.flags.eq(result.flags)
        if self._has_choice:
            is_known = of_chosen(chosen_modes(plan.roundings, controls), lambda mode: 1)
            m.d.comb += self.o.payload.error.eq(rank(m, "error", ~is_known, enable))
        return m
