"""The netlists of the format converters: every code of every source, bits and flags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from golden import FP32, FloatFormat
from golden.formats import CONVERSIONS
from hdl import FloatConverter
from lab.exhaustive.check import Check, Comparison, compare_bits
from lab.exhaustive.rounding import codes_from_float32, count_alike, flags_from_float32, round_float32, values_of_codes
from tools.sliced import Sliced

__all__ = ["converter_checks"]


class _Converter:
    """The netlist of a converter's generated Verilog, its registers as wires, and its judges."""

    def __init__(self, source: FloatFormat, destination: FloatFormat) -> None:
        self.source, self.destination = source, destination
        self.label = f"netlist of {source} to {destination}"

    def build(self) -> None:
        unit = FloatConverter(source=self.source, destination=self.destination)
        self.netlist = Sliced(unit, rst=0, i__valid=1, o__ready=1)
        if self.netlist.constants != {"i__ready": 1, "o__valid": 1}:
            raise RuntimeError(f"{self.label}: got {self.netlist.constants}, must always be ready, its output valid")

    def compare_float32(self, start: int, stop: int) -> Comparison:
        """Compare within one exponent field: in one compiled loop, and again in Python to show any difference."""
        alike = count_alike(start, stop, self.destination, self.netlist)
        if alike == stop - start:
            return Comparison(alike)
        return self._compare(start, stop, *round_float32(start, stop, self.destination))

    def compare_codes(self, start: int, stop: int) -> Comparison:
        """Compare codes of a format of 16 bits: float32 holds their values, which are then rounded as float32 codes."""
        codes = np.arange(start, stop, dtype=np.uint32)
        values = values_of_codes(self.source)[codes]
        fraction = codes & np.uint32(2**self.source.fraction_bits - 1)
        is_signalling = np.isnan(values.view(np.float32)) & (fraction < 1 << (self.source.fraction_bits - 1))
        flags = is_signalling * np.uint32(16)
        if self.destination != FP32:
            results = np.empty_like(values)
            for field in np.unique(values >> np.uint32(23)):
                at = np.flatnonzero(values >> np.uint32(23) == field)
                results[at] = codes_from_float32(values[at], self.destination)
                flags[at] |= flags_from_float32(values[at], self.destination)
            values = results
        return self._compare(start, stop, values, flags)

    def _compare(self, start: int, stop: int, codes: NDArray[np.uint32], flags: NDArray[np.uint32]) -> Comparison:
        inputs = np.arange(start, stop, dtype=np.uint32)
        got = self.netlist(i__payload=inputs)
        found = compare_bits(f"{self.label}, bits", inputs, got["o__payload.bits"], codes)
        found.add(compare_bits(f"{self.label}, flags", inputs, got["o__payload.flags"], flags))
        return found


def converter_checks(pairs: Sequence[tuple[FloatFormat, FloatFormat]] = CONVERSIONS) -> list[Check]:
    """Return one check for each ordered pair of formats."""
    checks = []
    for source, destination in pairs:
        converter = _Converter(source, destination)
        # Pieces of float32 hold no arrays, so they may be large; every one lies in one exponent field.
        compare, piece = (
            (converter.compare_float32, 1 << 22) if source == FP32 else (converter.compare_codes, 1 << source.width)
        )
        name = f"netlist_{source}_to_{destination}"
        checks.append(Check(name, 1 << source.width, "integer rounding", compare, piece, converter.build))
    return checks
