"""The multiplier of significands: generic, or the primitive of an FPGA with its registers."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, ClockSignal, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["MULTIPLIERS", "Multiplier"]

#: How the multiplier is built: left to synthesis, as ``MULT18X18D`` of the ECP5, or as ``MULT18X18`` of Lattice Nexus.
MULTIPLIERS = ("generic", "ecp5", "nexus")

_PORT_WIDTH = 18


class Multiplier(wiring.Component):
    """Multiply two unsigned words, with optional input and output registers. One product a cycle.

    Parameters
    ----------
    width : int
        Bits of a factor, at most 18 for the primitive.
    input_rank, output_rank : bool
        Whether there are registers before and after the multiplication.
    kind : str
        One of `MULTIPLIERS`. Synthesis infers a multiplier from the generic form but leaves its registers outside;
        for Nexus it takes in the output's alone.

    Ports
    -----
    a, b : unsigned(width), in
    o : unsigned(2 * width), out
        The product, as many cycles later as there are ranks.
    """

    def __init__(
        self, width: int, *, input_rank: bool = False, output_rank: bool = False, kind: str = "generic"
    ) -> None:
        self.width, self.input_rank, self.output_rank, self.kind = width, input_rank, output_rank, kind
        super().__init__({"a": In(width), "b": In(width), "o": Out(2 * width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.kind in _PRIMITIVES:
            product = Signal(2 * _PORT_WIDTH)
            m.submodules.primitive = _PRIMITIVES[self.kind](self, product)
            m.d.comb += self.o.eq(product)
            return m
        factors: tuple[Any, Any] = (self.a, self.b)
        if self.input_rank:
            factors = (
                Signal(self.width, name="a_rank", reset_less=True),
                Signal(self.width, name="b_rank", reset_less=True),
            )
            m.d.sync += [factors[0].eq(self.a), factors[1].eq(self.b)]
        if self.output_rank:
            product = Signal(2 * self.width, name="product_rank", reset_less=True)
            m.d.sync += product.eq(factors[0] * factors[1])
            m.d.comb += self.o.eq(product)
        else:
            m.d.comb += self.o.eq(factors[0] * factors[1])
        return m


def _ecp5(multiplier: Multiplier, product: Signal) -> Instance:
    """Instantiate a MULT18X18D with unsigned factors; only the first and last of its three ranks are used."""
    clock_of = {"INPUTA": multiplier.input_rank, "INPUTB": multiplier.input_rank, "OUTPUT": multiplier.output_rank}
    parameters = {f"p_REG_{rank}_CLK": "CLK0" if used else "NONE" for rank, used in clock_of.items()}
    has_clock = multiplier.input_rank or multiplier.output_rank
    ports: dict[str, Any] = {}
    for letter, factor in (("A", multiplier.a), ("B", multiplier.b)):
        padded = Cat(factor, C(0, _PORT_WIDTH - multiplier.width))
        ports |= {f"i_{letter}{place}": padded[place] for place in range(_PORT_WIDTH)}
        ports |= {f"i_SIGNED{letter}": C(0, 1), f"i_SOURCE{letter}": C(0, 1)}
    ports |= {f"o_P{place}": product[place] for place in range(2 * _PORT_WIDTH)}
    ports |= {"i_CLK0": ClockSignal() if has_clock else C(0, 1), "i_CE0": C(1, 1), "i_RST0": C(0, 1)}
    return Instance("MULT18X18D", **parameters, **ports)


def _nexus(multiplier: Multiplier, product: Signal) -> Instance:
    """Instantiate a MULT18X18 with unsigned factors and the ranks that are asked for."""
    ranks = {"INPUTA": multiplier.input_rank, "INPUTB": multiplier.input_rank, "OUTPUT": multiplier.output_rank}
    has_clock = multiplier.input_rank or multiplier.output_rank
    controls = {f"i_CE{place}": C(1, 1) for place in ("A", "B", "OUT")}
    controls |= {f"i_RST{place}": C(0, 1) for place in ("A", "B", "OUT")}
    return Instance(
        "MULT18X18",
        **{f"p_REG{rank}": "REGISTER" if used else "BYPASS" for rank, used in ranks.items()},
        i_A=Cat(multiplier.a, C(0, _PORT_WIDTH - multiplier.width)),
        i_B=Cat(multiplier.b, C(0, _PORT_WIDTH - multiplier.width)),
        i_SIGNEDA=C(0, 1),
        i_SIGNEDB=C(0, 1),
        i_CLK=ClockSignal() if has_clock else C(0, 1),
        **controls,
        o_Z=product,
    )


_PRIMITIVES = {"ecp5": _ecp5, "nexus": _nexus}
