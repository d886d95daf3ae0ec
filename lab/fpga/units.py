"""The measured units: to add a row to the table, add a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial

from amaranth.lib import wiring

from golden.formats import CBFLOAT16, FP32, HALF_FORMATS
from hdl.converter import FloatConverter
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.vector.vector_mac import VectorMac

__all__ = ["Build", "catalogue", "parameters_of", "select"]

Build = Callable[[], wiring.Component]

_SHOWN = ("source", "destination", "operands", "levels", "lanes", "registers", "stages")


def catalogue() -> dict[str, Build]:
    """Return a builder for every unit that is measured, by its name, in the order of the table."""
    return dict(_entries())


def _entries() -> Iterator[tuple[str, Build]]:
    for narrow in HALF_FORMATS:
        for stages in (1, 2, 3):
            convert = partial(FloatConverter, source=FP32, destination=narrow, stages=stages)
            yield f"float32_to_{narrow}_stages{stages}", convert
            yield f"float32_to_{narrow}_stages{stages}_no_flags", partial(convert, flags=False)
    for narrow in HALF_FORMATS:
        yield f"{narrow}_to_float32", partial(FloatConverter, source=narrow, destination=FP32, stages=1)

    # The DSP of an ECP5 has registers of its own, which synthesis does not find.
    mac = partial(MultiplyAccumulate, multiplier="ecp5")
    for fmt in HALF_FORMATS:
        yield f"mac_{fmt}_level2", partial(mac, operands=(fmt,), levels=(2,))
        yield f"mac_{fmt}_level0", partial(mac, operands=(fmt,), levels=(0,))
        yield f"mac_{fmt}", partial(mac, operands=(fmt,))
    yield "mac_cbfloat16_no_flags", partial(mac, operands=(CBFLOAT16,), flags=False)
    yield "mac", partial(mac, operands=HALF_FORMATS)
    yield "mac_no_flags", partial(mac, operands=HALF_FORMATS, flags=False)
    for stages in range(1, 14):
        yield f"mac_cbfloat16_stages{stages}", partial(mac, operands=(CBFLOAT16,), stages=stages)
    for stages in (3, 4):
        yield f"mac_cbfloat16_level2_stages{stages}", partial(mac, operands=(CBFLOAT16,), levels=(2,), stages=stages)

    vector = partial(VectorMac, multiplier="ecp5")
    for lanes in (4, 8):
        yield f"vector_mac_cbfloat16_lanes{lanes}", partial(vector, operands=(CBFLOAT16,), lanes=lanes)
    yield "vector_mac_lanes4", partial(vector, operands=HALF_FORMATS, lanes=4)


def select(patterns: Sequence[str]) -> dict[str, Build]:
    """Return the units that match any of some names or wildcard patterns; without patterns, all.

    Raises
    ------
    ValueError
        If a pattern matches nothing.
    """
    units = catalogue()
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in units):
            raise ValueError(f"unit: got {pattern!r}, must match one of {', '.join(units)}")
    return {
        name: build
        for name, build in units.items()
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def parameters_of(unit: wiring.Component) -> str:
    """Return the parameters of a unit, defaults included, as a line of text."""

    def text(value: object) -> str:
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)

    shown = [f"{key} {text(getattr(unit, key))}" for key in _SHOWN if hasattr(unit, key)]
    if hasattr(unit, "flags"):
        shown.append("flags" if unit.flags else "no flags")
    return "; ".join(shown)
