"""The random numbers of stochastic rounding: Philox4x32-10 as a stream unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.philox_round import WORD_BITS, PhiloxRound, state_layout
from hdl.definitions import Stages
from hdl.parameters import Parameters, built_from, documented
from hdl.pipeline import rank

__all__ = ["Philox4x32", "PhiloxParameters"]

_ROUNDS = 10


@dataclass(frozen=True, kw_only=True)
class PhiloxParameters(Parameters):
    """Parameters of `hdl.Philox4x32`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    stages: Annotated[
        int,
        Stages(
            "register ranks",
            _ROUNDS,
            str(_ROUNDS),
            note="As many rounds as evenly as possible lie between two ranks; the last one is at the output.",
        ),
    ] = None  # type: ignore[assignment]  # None only between the call and the check

    @property
    def recommended_stages(self) -> int:
        """The default depth: one round between two ranks."""
        return _ROUNDS


@documented(PhiloxParameters)
class Philox4x32(wiring.Component):
    """Give the random words of a stream of counters and keys, by Philox4x32-10 (NUMERICS section 10).

    One counter enters and four words leave in every cycle. They follow their counter after `latency` cycles. The whole
    pipeline stalls while they are not accepted. The random number of a rounding is the top bits of word 0.

    Attributes
    ----------
    latency : int
        Cycles from input to output.
    i : stream of struct, in
        - ``counter``: four words of 32 bits: output index (low, high), step, call
        - ``key``: two words of 32 bits: the seed, low word first
    o : stream of array of 4 unsigned(32), out
    """

    @built_from(PhiloxParameters)
    def __init__(self, parameters: PhiloxParameters) -> None:
        self.latency = self.stages
        words = data.ArrayLayout(WORD_BITS, 4)
        super().__init__({"i": In(stream.Signature(state_layout())), "o": Out(stream.Signature(words))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        enable = ~self.o.valid | self.o.ready
        m.d.comb += self.i.ready.eq(enable)
        valid, state = self.i.valid, self.i.payload
        for number in range(_ROUNDS):
            m.submodules[f"round_{number}"] = core = PhiloxRound()
            m.d.comb += core.i.eq(state)
            state = core.o
            if (number + 1) * self.stages // _ROUNDS > number * self.stages // _ROUNDS:
                valid = rank(m, f"valid_{number}", valid, enable, reset=True)
                state = rank(m, f"state_{number}", state, enable)
        m.d.comb += [self.o.valid.eq(valid), self.o.payload.eq(state.counter)]
        return m
