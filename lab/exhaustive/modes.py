"""The netlists of converters with every rounding mode: all codes of every source of at most 16 bits, in each mode.

Every round takes 2^16 inputs, each with its own random number: all codes, which a narrow source repeats. Stochastic
rounding meets only some of the random numbers here; the proofs cover all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

import golden
from golden import FORMATS, FloatFormat, Rounding
from golden.arrays.checks import code_dtype
from golden.rounding import DEFAULT_RANDOM_BITS, MODE_BITS, NO_MODES
from hdl import FloatConverter
from lab.exhaustive.check import Check, Comparison, compare_operands
from tools.sliced import Sliced

__all__ = ["ROUNDS", "mode_checks"]

#: The mode of each round: every mode, codes that name none, and stochastic many times.
ROUNDS = (*(mode.value for mode in Rounding), *NO_MODES, *[Rounding.STOCHASTIC.value] * 8)

_WIDEST = 16
_INPUTS = 1 << _WIDEST


class _Converters(wiring.Component):
    """Converters of one source into several formats, which share their input.

    Ports
    -----
    code, rounding, random : in
    to_... : struct, out
        The output of the converter into that format.
    """

    def __init__(self, source: FloatFormat, destinations: Sequence[FloatFormat]) -> None:
        self.units = {
            f"to_{destination}": FloatConverter(source=source, destination=destination, roundings=tuple(Rounding))
            for destination in destinations
        }
        results = {name: Out(unit.o.payload.shape()) for name, unit in self.units.items()}
        super().__init__({
            "code": In(source.width), "rounding": In(MODE_BITS), "random": In(DEFAULT_RANDOM_BITS), **results,
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, unit in self.units.items():
            m.submodules[name] = unit
            given = unit.i.payload
            m.d.comb += [given.bits.eq(self.code), given.rounding.eq(self.rounding), given.random.eq(self.random)]
            m.d.comb += [unit.i.valid.eq(1), unit.o.ready.eq(1), getattr(self, name).eq(unit.o.payload)]
        return m


class _Source:
    """The netlist of all converters of a source, judged by golden."""

    def __init__(self, source: FloatFormat, destinations: Sequence[FloatFormat]) -> None:
        self.source, self.destinations = source, destinations

    def build(self) -> None:
        self.netlist = Sliced(_Converters(self.source, self.destinations), rst=0)

    def compare(self, start: int, stop: int) -> Comparison:
        """Compare one round."""
        number, count = start // _INPUTS, stop - start
        codes = np.arange(count, dtype=np.uint32) & np.uint32((1 << self.source.width) - 1)
        random = np.random.default_rng(number).integers(0, 1 << DEFAULT_RANDOM_BITS, count, np.uint32)
        mode = ROUNDS[number]
        got = self.netlist(code=codes, rounding=np.full(count, mode, np.uint32), random=random)
        found = Comparison(count)
        for destination in self.destinations:
            for name, values in self._wanted(codes, mode, random, destination).items():
                port = f"to_{destination}.{name}"
                # A flag that is never raised is a constant.
                given = got[port] if port in got else np.full(count, self.netlist.constants[port], np.uint32)
                label = f"{self.source} to {destination}, mode {mode}, {name}"
                found.add(compare_operands(label, (codes, random), given, values))
        return found

    def _wanted(
        self, codes: NDArray[np.uint32], code: int, random: NDArray[np.uint32], destination: FloatFormat
    ) -> dict[str, NDArray[Any]]:
        if code not in {mode.value for mode in Rounding}:
            nothing = np.zeros_like(codes)
            return {"bits": nothing, "flags": nothing, "error": nothing + 1}
        options: dict[str, Any] = {"random": random} if Rounding(code) is Rounding.STOCHASTIC else {}
        given = codes.astype(code_dtype(self.source))
        bits, flags = golden.convert(
            given, self.source, destination, rounding=Rounding(code), return_flags=True, **options
        )
        return {"bits": bits, "flags": flags, "error": np.zeros_like(codes)}


def mode_checks(formats: Sequence[FloatFormat] = FORMATS) -> list[Check]:
    """Return one check for each source of at most 16 bits, into all the other formats."""
    checks = []
    for source in formats:
        if source.width <= _WIDEST:
            netlist = _Source(source, [fmt for fmt in formats if fmt != source])
            name = f"netlists_{source}_in_modes"
            checks.append(Check(name, len(ROUNDS) * _INPUTS, "golden.convert", netlist.compare, _INPUTS, netlist.build))
    return checks
