"""Stimulus and expectations of the converters between any formats, and of those with a choice of rounding modes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import Flag, FloatFormat, Rounding, convert, decode
from golden.arrays.checks import code_dtype
from golden.rounding import MODE_BITS
from hdl import FloatConverter
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.coverage import classes, count_bins
from sim.stimulus.operands import Codes, boundary, random_codes, specials
from sim.stimulus.patterns import PATTERNS, pattern, takes_on_sight
from sim.stimulus.resets import EPISODES, required_resets, stalled_and_cut_off

__all__ = ["mode_scenarios", "required_mode_bins"]

_STREAM_VECTORS = 600
_EPISODE_VECTORS = 100
_SAMPLE = 4000
#: Codes of the field ``rounding``.
_CODES = 1 << MODE_BITS


def mode_scenarios(component: FloatConverter, port: Port, rng: np.random.Generator, effort: float) -> list[Scenario]:
    """Return codes in all modes, with invalid mode codes too, and the stream matrix."""
    source, destination = component.source, component.destination
    if source.width <= 8:
        # Every code in every mode, several times for the random numbers.
        codes = rng.permutation(np.tile(np.arange(1 << source.width, dtype=np.uint64), 8 * _CODES))
    else:
        parts = [specials(source), _around(source, destination)]
        exponents = [0, destination.emin, destination.emin - destination.fraction_bits, destination.emax]
        parts += [boundary(source, exponents), random_codes(source, int(20_000 * effort), rng)]
        codes = rng.permutation(np.tile(np.concatenate(parts), 4))
    maker = _Maker(component, port, rng)
    # By chance alone, a zero or an infinity would miss one of the modes in one run of three.
    every = maker.scenario("codes_in_all_modes", codes, each_in_all_modes=specials(source))
    every.is_bulk = True
    some = rng.choice(codes, int(_SAMPLE * min(2 * effort, 1.0)))
    scenarios = [every, maker.scenario("sampled_codes", some, each_in_all_modes=specials(source))]
    resets = maker.scenario("resets", rng.choice(codes, EPISODES * _EPISODE_VECTORS))
    starts = range(0, len(resets.payloads), _EPISODE_VECTORS)
    scenarios.append(stalled_and_cut_off(resets, starts, component.latency, rng))
    for idle in PATTERNS:
        for backpressure in PATTERNS:
            few = rng.choice(codes, int(_STREAM_VECTORS * min(effort, 1.0)))
            scenario = maker.scenario(f"stream_idle_{idle}_backpressure_{backpressure}", few)
            scenario.offers, scenario.takes = pattern(idle, rng), pattern(backpressure, rng)
            scenario.on_sight = takes_on_sight(backpressure)
            scenarios.append(scenario)
    return scenarios


def _around(source: FloatFormat, destination: FloatFormat) -> Codes:
    """Return values of the destination, quarters between them, and the neighbours of all, in a wider source."""
    edges = np.arange(min(destination.max_finite + 1, 1 << 10), dtype=np.uint64)
    values = decode(edges.astype(code_dtype(destination)), destination).astype(np.float64)
    gaps = np.diff(values, append=2 * values[-1] - values[-2])
    points = np.concatenate([values + gaps * quarter for quarter in (0, 0.25, 0.5, 0.75)]).astype(np.float32)
    given = convert(points.view(np.uint32), "float32", source).astype(np.int64)
    nearby = np.concatenate([given - 1, given, given + 1])
    kept = nearby[(nearby >= 0) & (nearby < source.sign_mask)]
    return np.concatenate([kept, kept | source.sign_mask]).astype(np.uint64)


def _has(flags: NDArray[np.uint64], flag: Flag) -> NDArray[np.bool_]:
    return flags & np.uint64(flag) != 0


class _Maker:
    """Draws modes and random numbers for codes, and computes the expected results."""

    def __init__(self, component: FloatConverter, port: Port, rng: np.random.Generator) -> None:
        self.component, self.port, self.rng = component, port, rng

    def scenario(self, name: str, codes: Codes, each_in_all_modes: Codes | None = None) -> Scenario:
        """Return a scenario of codes in random modes, after some codes in every mode."""
        modes = self._modes(len(codes))
        if each_in_all_modes is not None:
            built = self._built()
            modes = np.concatenate([np.tile(built, len(each_in_all_modes)), modes])
            codes = np.concatenate([np.repeat(each_in_all_modes, len(built)), codes])
        randoms = self._randoms(len(codes))
        bits, flags = self._expected(codes, modes, randoms)
        is_refused = np.array([code not in {mode.value for mode in self.component.roundings} for code in range(_CODES)])
        given = {"code": codes, "rounding": modes, "random": randoms}
        answer = {"bits": bits, "flags": flags, "refused": is_refused[modes]}
        request, wanted = self.port.request.widths, self.port.answer.widths
        sound = ~is_refused[modes]
        names = np.array([str(Rounding(code)) if not is_refused[code] else "no_mode" for code in range(_CODES)])
        bins = count_bins(
            np.full(len(codes), "rounding"),
            names[modes],
            classes(codes, self.component.source),
            np.select([_has(flags, Flag.OVERFLOW), _has(flags, Flag.INEXACT)], ["overflow", "inexact"], "exact"),
        )
        for flag in Flag:
            bins[f"flag/{flag.name}"] = int(np.count_nonzero(_has(flags[sound], flag)))
        if self.component.subnormals == "flush":
            bins += self._flushed(codes[sound], bits[sound], flags[sound])
        return Scenario(
            name=name,
            payloads=self.port.request.pack(**{key: value for key, value in given.items() if key in request}),
            answers=self.port.answer.pack(**{key: value for key, value in answer.items() if key in wanted}),
            case=np.arange(len(codes)),
            ends=np.arange(len(codes)),
            coverage={key: count for key, count in bins.items() if count},
        )

    def _flushed(self, codes: Codes, bits: NDArray[np.uint64], flags: NDArray[np.uint64]) -> Counter[str]:
        """Count the effects of flushing on subnormal codes and results, by sign."""
        source, destination = self.component.source, self.component.destination
        magnitude, result = codes & np.uint64(source.sign_mask - 1), bits & np.uint64(destination.sign_mask - 1)
        values = np.abs(decode(codes.astype(code_dtype(source)), source).astype(np.float64))
        smallest = result == destination.min_normal
        bins: Counter[str] = Counter()
        for name, met in (
            ("operand", (magnitude > 0) & (magnitude < source.min_normal) & (result == 0) & (flags == 0)),
            ("result", (result == 0) & _has(flags, Flag.UNDERFLOW)),
            ("rounds_up_to_normal", smallest & (values < 2.0**destination.emin)),
        ):
            negative = codes >= source.sign_mask
            bins[f"flush/{name}-"] = int(np.count_nonzero(met & negative))
            bins[f"flush/{name}+"] = int(np.count_nonzero(met & ~negative))
        return bins

    def _built(self) -> NDArray[np.int64]:
        return np.array([mode.value for mode in self.component.roundings])

    def _modes(self, count: int) -> NDArray[np.int64]:
        built = self._built()
        if len(built) == 1:
            return np.full(count, built[0])
        # One in sixteen names any code at all.
        anything = self.rng.integers(0, _CODES, count)
        return np.where(self.rng.random(count) < 1 / 16, anything, self.rng.choice(built, count))

    def _randoms(self, count: int) -> NDArray[np.uint32]:
        bits = self.component.random_bits
        drawn = self.rng.integers(0, 1 << bits, count)
        edges = self.rng.choice([0, 1, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1], count)
        return np.where(self.rng.random(count) < 0.3, edges, drawn).astype(np.uint32)

    def _expected(
        self, codes: Codes, modes: NDArray[np.int64], randoms: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        unit = self.component
        bits, flags = np.zeros(len(codes), np.uint64), np.zeros(len(codes), np.uint64)
        for mode in unit.roundings:
            at = np.flatnonzero(modes == mode.value)
            options: dict[str, Any] = {"rounding": mode, "overflow": unit.overflow, "subnormals": unit.subnormals}
            if mode is Rounding.STOCHASTIC:
                options |= {"random": randoms[at], "random_bits": unit.random_bits}
            given = codes[at].astype(code_dtype(unit.source))
            bits[at], flags[at] = convert(given, unit.source, unit.destination, return_flags=True, **options)
        return bits, flags


def required_mode_bins(component: FloatConverter) -> set[str]:
    """Return the bins that must not be empty."""
    source, destination = component.source, component.destination
    names = [str(mode) for mode in component.roundings]
    required = required_resets(component.latency, answers_wait_for_more=False)
    loses_small = source.emin - source.fraction_bits < destination.emin - destination.fraction_bits
    if component.subnormals == "flush":
        loses_small = source.emin < destination.emin
        required |= {f"flush/operand{sign}" for sign in "+-"}
        if loses_small:
            required |= {f"flush/result{sign}" for sign in "+-"}
            if source.precision > destination.precision:
                required |= {f"flush/rounds_up_to_normal{sign}" for sign in "+-"}
    if 1 < len(names) < _CODES:
        required.add("rounding/no_mode/normal/exact")
    for name in names:
        required |= {f"rounding/{name}/{kind}/exact" for kind in ("zero", "normal")}
        if source.has_nan:
            required.add(f"rounding/{name}/nan/exact")
        if loses_small or source.precision > destination.precision:
            required |= {f"rounding/{name}/normal/inexact"}
        if source.emax > destination.emax:
            required.add(f"rounding/{name}/normal/overflow")
        if source.has_inf:
            finite = component.overflow == "saturate" or not (destination.has_inf or destination.has_nan)
            required.add(f"rounding/{name}/infinity/{'overflow' if finite else 'exact'}")
    if loses_small:
        required.add("flag/UNDERFLOW")
    if source.has_inf or (source.has_nan and not destination.has_nan):
        required.add("flag/INVALID")
    return required
