"""Proof about the rank that widens operands: it is a queue of its core's results, as a converter is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from golden.formats import NARROW_FORMATS, FloatFormat
from golden.rounding import Rounding
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import product_beat_layout
from hdl.mac.widen import WidenBeat, Widening
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout
from lab.netlists.netlist import Instance
from lab.netlists.yosys import SEQUENTIAL, netlist_of
from lab.proofs.by_interval import magnitude_of
from lab.proofs.pipelines import stream_formula
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import (
    DOUBLE,
    bits,
    both,
    either,
    equal,
    field_of,
    inverse,
    is_infinite,
    is_nan,
    is_signalling,
    refute,
    sign_bit,
    slice_of,
)

__all__ = ["widening_proofs"]

_UNITS = {"mac": (MacParameters, product_beat_layout), "vector_mac": (VectorParameters, vector_beat_layout)}


def widening_proofs() -> Iterator[Proof]:
    """Yield the proofs of the rank ahead of both units, with every named format of 8 bits and fewer."""
    for unit in _UNITS:
        for engine in (BITWUZLA, Z3_CADICAL):
            yield Proof(
                f"widening/{unit}",
                "widening of operands",
                unit,
                "queue of the core's results",
                engine,
                partial(_build, unit),
                timeout=120,
                fast=engine == BITWUZLA,
            )

    build = partial(_core, MacParameters(operands=NARROW_FORMATS, roundings=tuple(Rounding)))
    yield Proof("widening/core", "widening of operands", "mac", "same number", BITWUZLA, build, timeout=120, fast=True)


def _core(parameters: MacParameters, folder: Path) -> str:
    """Return a formula with a solution if a beat changes in anything but the widening of its operands."""
    inner = parameters.widened
    assert inner, "there is nothing to widen to"
    narrow, wide = product_beat_layout(parameters), product_beat_layout(parameters.core)
    unit = netlist_of(WidenBeat(parameters, narrow, wide), folder).instance()
    given, got = unit.port("i"), unit.port("o")
    text, claims = unit.text + unit.shown, []
    chosen = field_of(given, narrow, "format")
    for name in ("a", "b"):
        out = field_of(got, wide, name)
        for index, fmt in enumerate(parameters.operands):
            code = slice_of(field_of(given, narrow, name), fmt.width - 1, 0)
            is_its = equal(chosen, bits(index, narrow["format"].width))
            claims.append(either(inverse(is_its), _is_widened(code, fmt, out, inner)))
    is_there = f"(bvult {chosen} {bits(len(parameters.operands), narrow['format'].width)})"
    level = f"(ite {is_there} {field_of(given, narrow, 'level')} {bits(3, 2)})"
    claims.append(equal(field_of(got, wide, "level"), level))
    same = [name for name, part in wide if part.width and name not in ("a", "b", "level", "format")]
    claims += [equal(field_of(got, wide, name), field_of(given, narrow, name)) for name in same]
    return text + refute(both(*claims))


def _is_widened(code: str, fmt: FloatFormat, out: str, inner: FloatFormat) -> str:
    """Tell whether a code of the inner format is the number, the infinity or the kind of NaN that a narrow one is."""
    numbers = [
        magnitude_of(slice_of(word, of.width - 2, 0), of.width - 1, of.fraction_bits, of.bias, DOUBLE)
        for word, of in ((code, fmt), (out, inner))
    ]
    same_sign = equal(sign_bit(code, fmt), sign_bit(out, inner))
    is_finite = inverse(either(is_nan(out, inner), is_infinite(out, inner)))
    # The code of fnuz formats that would be -0 is their NaN.
    is_number = both(is_finite, same_sign, f"(fp.eq {' '.join(numbers)})")
    infinite = both(is_infinite(out, inner), same_sign)
    is_the_nan = both(is_nan(out, inner), equal(is_signalling(code, fmt), is_signalling(out, inner)))
    return f"(ite {is_nan(code, fmt)} {is_the_nan} (ite {is_infinite(code, fmt)} {infinite} {is_number}))"


def _build(unit: str, folder: Path) -> str:
    kind, layout = _UNITS[unit]
    parameters = kind(operands=NARROW_FORMATS)
    layouts = (layout(parameters), layout(parameters.core))  # type: ignore[arg-type]  # each its own kind's

    core = netlist_of(WidenBeat(parameters, *layouts), folder)

    def joins(payload: str) -> tuple[Instance, str]:
        result = core.instance("core", given={"i": payload})
        return result, result.port("o")

    return stream_formula(netlist_of(Widening(parameters, *layouts), folder, SEQUENTIAL), 1, joins)
