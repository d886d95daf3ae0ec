"""Stimulus and expectations of the format converters."""

from __future__ import annotations

from collections import Counter

import numpy as np

from golden import Flag, FloatFormat, convert, decode
from hdl import FloatConverter
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.coverage import classes, count_bins, rounding_cases
from sim.stimulus.operands import Codes, boundary, random_codes, specials
from sim.stimulus.patterns import PATTERNS, pattern, takes_on_sight
from sim.stimulus.resets import EPISODES, required_resets, stalled_and_cut_off

__all__ = ["converter_scenarios", "required_bins"]

_STREAM_VECTORS = 600
_EPISODE_VECTORS = 100
#: Codes that are simulated; all of them run as machine code.
_SAMPLE = 6000


def converter_scenarios(
    component: FloatConverter, port: Port, rng: np.random.Generator, effort: float
) -> list[Scenario]:
    """Return every code of a narrow source or the interesting ones of float32, and the stream matrix."""
    source, destination = component.source, component.destination
    codes = _all_codes(source, rng) if source.width <= 16 else _wide_codes(source, destination, rng, effort)
    if effort < 0.5:
        keep = max(2000, int(len(codes) * effort))
        codes = np.concatenate([specials(source), _near_boundaries(source, destination, rng), codes[:keep]])
    whole = "all_codes" if source.width <= 16 and effort >= 0.5 else "boundary_codes"
    every = _scenario(whole, codes, source, destination, port)
    every.is_bulk = True
    some = rng.choice(codes, min(len(codes), int(_SAMPLE * min(2 * effort, 1.0))), replace=False)
    sampled = np.concatenate([specials(source), _near_boundaries(source, destination, rng), some])
    scenarios = [every, _scenario("sampled_codes", sampled, source, destination, port)]
    scenarios.append(_resets(codes, component, port, rng))
    for idle in PATTERNS:
        for backpressure in PATTERNS:
            few = rng.choice(codes, int(_STREAM_VECTORS * min(effort, 1.0)))
            name = f"stream_idle_{idle}_backpressure_{backpressure}"
            scenario = _scenario(name, few, source, destination, port)
            scenario.offers, scenario.takes = pattern(idle, rng), pattern(backpressure, rng)
            scenario.on_sight = takes_on_sight(backpressure)
            scenarios.append(scenario)
    return scenarios


def _resets(codes: Codes, component: FloatConverter, port: Port, rng: np.random.Generator) -> Scenario:
    """Reset the unit repeatedly in the middle of a stream."""
    drawn = rng.choice(codes, EPISODES * _EPISODE_VECTORS)
    scenario = _scenario("resets", drawn, component.source, component.destination, port)
    return stalled_and_cut_off(scenario, range(0, len(drawn), _EPISODE_VECTORS), component.latency, rng)


def _all_codes(source: FloatFormat, rng: np.random.Generator) -> Codes:
    return rng.permutation(np.arange(1 << source.width, dtype=np.uint64))


def _near_boundaries(source: FloatFormat, destination: FloatFormat, rng: np.random.Generator) -> Codes:
    """Return the smallest and largest values of the destination, and their neighbourhoods, in the source.

    Three quarters of the way from a subnormal power of two to the next value, a single bit is sticky. For each power it
    falls out of another shift.
    """
    edges = [0, 1, 2, 3, destination.min_normal - 2, destination.min_normal - 1, destination.min_normal]
    edges += [destination.max_finite - 1, destination.max_finite]
    edges += [1 << bit for bit in range(2, destination.fraction_bits)]
    return _around(np.array(edges, np.uint64), source, destination, (0.0, 0.5, 0.75))


def _around(codes: Codes, source: FloatFormat, destination: FloatFormat, ways: tuple[float, ...] = (0.0, 0.5)) -> Codes:
    """Return values of the destination, points on the way to the next ones, and the neighbours of all, in the source.

    The second half of the codes is the first with the opposite sign.
    """
    dtype = np.uint32 if destination.width > 16 else np.uint16
    values = decode(codes.astype(dtype), destination).astype(np.float64)
    above = decode(np.minimum(codes + np.uint64(1), destination.max_finite).astype(dtype), destination)
    with np.errstate(all="ignore"):
        points = np.concatenate([values + way * (above - values) for way in ways])
        found = points.astype(np.float32)
    if source.width <= 16:
        given = convert(found.view(np.uint32), "float32", source).astype(np.int64)
    else:
        given = found.view(np.uint32).astype(np.int64)
    nearby = np.concatenate([given - 1, given, given + 1])
    kept = nearby[(nearby >= 0) & (nearby < source.sign_mask)]
    return np.concatenate([kept, kept | source.sign_mask]).astype(np.uint64)


def _wide_codes(source: FloatFormat, destination: FloatFormat, rng: np.random.Generator, effort: float) -> Codes:
    """Return operands in the style of TestFloat, and every value and midpoint of the destination with neighbours."""
    exponents = [0, destination.emin, destination.emin - destination.fraction_bits, destination.emax, source.emax]
    count = int(20_000 * effort)
    parts = [specials(source), boundary(source, exponents), _near_boundaries(source, destination, rng)]
    positive = np.arange(destination.max_finite + 1, dtype=np.uint64)
    around = _around(positive, source, destination)
    # A random sign for each halves the time and loses nothing, because the sign only passes through.
    half = len(around) // 2
    chosen = np.where(rng.random(half) < 0.5, around[:half], around[half:])
    parts += [
        chosen if effort >= 1 else rng.choice(chosen, int(len(chosen) * effort)),
        random_codes(source, count, rng),
    ]
    return rng.permutation(np.concatenate(parts))


def _scenario(name: str, codes: Codes, source: FloatFormat, destination: FloatFormat, port: Port) -> Scenario:
    given = codes.astype(np.uint32 if source.width > 16 else np.uint16)
    bits, flags = convert(given, source, destination, return_flags=True)
    fields = {"bits": bits} | ({"flags": flags} if "flags" in port.answer.widths else {})
    exact = decode(given, source).astype(np.float64)
    with np.errstate(all="ignore"):
        rounding = rounding_cases(exact, 0.0, bits, destination)
    bins = count_bins(classes(codes, source), classes(bits, destination), rounding)
    for flag in Flag:
        bins[f"flag/{flag.name}"] = int(np.count_nonzero(flags & flag))
    return Scenario(
        name=name,
        payloads=codes.astype(np.uint64),
        answers=port.answer.pack(**fields),
        case=np.arange(len(codes)),
        ends=np.arange(len(codes)),
        coverage=Counter({key: count for key, count in bins.items() if count}),
    )


def required_bins(source: FloatFormat, destination: FloatFormat, latency: int) -> set[str]:
    """Return the bins that must not be empty, from the two formats and the cycles that a conversion takes."""
    required = {"zero/zero/exact", "normal/normal/exact", "infinity/infinity/not_finite", "nan/nan/not_finite"}
    required |= {"signalling/nan/not_finite", "flag/INVALID"} | required_resets(latency, answers_wait_for_more=False)
    source_lowest, lowest = source.emin - source.fraction_bits, destination.emin - destination.fraction_bits
    lost_bits = source.precision - destination.precision
    if lost_bits > 0:
        required |= {"normal/normal/tie", "flag/INEXACT"}
    if lost_bits > 1:  # a single lost bit is a tie or nothing
        required |= {"normal/normal/below_half", "normal/normal/above_half"}
    if destination.emax < source.emax:
        required |= {"normal/infinity/overflow", "flag/OVERFLOW"}
    if source_lowest < lowest:
        required.add("flag/UNDERFLOW")
    # Where does the smallest normal of the source fall? Subnormals of the source may be normal, subnormal or lost.
    if source.emin < destination.emin:
        required |= {f"normal/subnormal/{case}" for case in ("exact", "below_half", "tie", "above_half")}
    if source.emin < lowest - 1:
        required.add("normal/zero/below_half")
    if source.emin > destination.emin:
        required.add("subnormal/normal/exact")
    if source.emin == destination.emin:
        required.add("subnormal/subnormal/exact")
    return required
