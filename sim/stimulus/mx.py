"""Stimulus and expectations of the block quantiser."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat, Rounding, decode, encode, mx
from golden.arrays.checks import code_dtype
from hdl import MxQuantizer
from hdl.mx.number_plan import NumberPlan
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.coverage import classes, count_bins, rounding_cases
from sim.stimulus.mx_numbers import (
    around_quotients,
    around_scales,
    exponents_of,
    number_bins,
    quantized,
    required_number_bins,
    values_of,
)
from sim.stimulus.operands import Codes, random_codes, specials, with_exponents
from sim.stimulus.patterns import PATTERNS, pattern, takes_on_sight
from sim.stimulus.resets import required_resets

__all__ = ["block_scenarios", "required_block_bins"]

#: Beats of a scenario of the stream matrix, in whole blocks.
_STREAM_BEATS = 160
#: Number of episodes cut off by a reset, and length of the first one in cycles.
_EPISODES, _EARLIEST = 24, 2
#: Blocks drawn at random.
_RANDOM = 1500
#: Number of directed blocks that are simulated; all of them run as machine code.
_SAMPLE = 24


def block_scenarios(component: MxQuantizer, port: Port, rng: np.random.Generator, effort: float) -> list[Scenario]:
    """Return blocks of every kind, and the stream matrix."""
    maker = _Maker(component, port, rng)
    blocks = np.concatenate([maker.directed(), maker.drawn(int(_RANDOM * effort))])
    rng.shuffle(blocks)
    every = maker.scenario("all_blocks", blocks)
    every.is_bulk = True
    count = max(1, _STREAM_BEATS // component.beats)
    scenarios = [every, maker.scenario("sampled_blocks", rng.choice(blocks, max(4, _SAMPLE // component.beats)))]
    scenarios += [_resets(maker, blocks), _resets_in_every_cycle(maker, blocks)]
    for idle in PATTERNS:
        for backpressure in PATTERNS:
            scenario = maker.scenario(f"stream_idle_{idle}_backpressure_{backpressure}", rng.choice(blocks, count))
            scenario.offers, scenario.takes = pattern(idle, rng), pattern(backpressure, rng)
            scenario.on_sight = takes_on_sight(backpressure)
            if idle == backpressure == "none":
                scenario.cycles = len(scenario.payloads)  # a beat in every cycle
            scenarios.append(scenario)
    return scenarios


def _resets(maker: _Maker, blocks: Codes) -> Scenario:
    """Reset the unit at various times, from the first beats until it is full with no result taken."""
    unit, rng = maker.unit, maker.rng
    full = unit.values.depth + unit.latency
    cuts = np.unique(np.linspace(_EARLIEST, full + 2 * _EARLIEST, _EPISODES).round().astype(np.int64))
    each = -(-(full + 2 * _EARLIEST) // unit.beats) + 1
    scenario = maker.scenario("resets", rng.choice(blocks, (len(cuts) + 1) * each))
    # The receiver waits, takes for as long, and waits again.
    scenario.takes = np.repeat([False, True], full + _EARLIEST)
    starts = np.arange(len(cuts) + 1) * each * unit.beats
    # The last episode runs to its end.
    scenario.episodes = np.stack([starts, starts, np.append(cuts, 0)], 1)
    return scenario


def _resets_in_every_cycle(maker: _Maker, blocks: Codes) -> Scenario:
    """Reset the unit in every cycle of a range; each time, a following block shows whether any state was left.

    In some of these cycles a block is complete, a state that only one or two registers hold.
    """
    unit, rng = maker.unit, maker.rng
    cuts = np.arange(_EARLIEST, 2 * unit.beats + unit.latency + _EARLIEST)
    # Beats of the first block and the next one; and one block that runs to its end.
    each = -(-int(cuts[-1]) // unit.beats) + 1
    scenario = maker.scenario("resets_in_every_cycle", rng.choice(blocks, len(cuts) * (each + 1)))
    starts = unit.beats * (np.arange(len(cuts))[:, np.newaxis] * (each + 1) + [0, each]).ravel()
    scenario.episodes = np.stack([starts, starts, np.stack([cuts, 0 * cuts], 1).ravel()], 1)
    scenario.is_bulk = True
    return scenario


class _Maker:
    """Makes blocks, and their expected results."""

    def __init__(self, component: MxQuantizer, port: Port, rng: np.random.Generator) -> None:
        self.unit, self.port, self.rng = component, port, rng
        self.source, self.element = component.source, component.plan.element
        self.has_numbers = isinstance(component.plan, NumberPlan)

    def directed(self) -> Codes:
        """Return blocks of zeros, of subnormals, with an infinity or a NaN anywhere, and around ties and limits."""
        source, block = self.source, self.unit.block
        usual = self._below(np.full(4 * block, self._a_middle_exponent()))
        zeros = np.array([[0] * block, [source.sign_mask] * block, [0, source.sign_mask] * (block // 2)])
        parts = [zeros, self._subnormal(), usual]
        for special in (source.inf, source.inf | source.sign_mask, source.nan, source.inf | 1):
            here = self._below(np.full(block, self._a_middle_exponent()))
            np.fill_diagonal(here, special)
            parts.append(here[: block if special == source.inf else 4])
        alone = np.zeros((block, block), np.int64)
        np.fill_diagonal(alone, np.resize(specials(source), block))
        parts += [alone, self._bits_below_a_number()]
        # With every exponent of the source as the largest.
        lowest = source.emin - source.fraction_bits
        parts.append(self._below(np.arange(lowest, source.emax + 1)))
        if self.has_numbers:
            parts += [around_quotients(self.unit, self.rng), around_scales(self.unit, self.rng)]
        else:
            parts.append(self._around_elements())
        return np.concatenate([np.asarray(part).astype(np.uint64) for part in parts])

    def drawn(self, count: int) -> Codes:
        """Return random blocks: of any codes, and of numbers near the largest of a block."""
        source = self.source
        third = max(1, count // 3)
        anything = random_codes(source, third * self.unit.block, self.rng).reshape(third, -1)
        exponents = self.rng.integers(source.emin - source.fraction_bits, source.emax + 1, 2 * third)
        return np.concatenate([anything, self._below(exponents)])

    def _a_middle_exponent(self) -> int:
        return (self.source.emin + self.source.emax) // 2

    def _below(self, exponents: NDArray[Any]) -> Codes:
        """Return a block for each exponent: one number has it, in each place in turn.

        The others have a smaller one, or in every other round of the places also the same.
        """
        block, element, number = self.unit.block, self.element, np.arange(len(exponents))
        depth = element.emax - element.emin + element.precision + 3
        below = np.maximum(self.rng.integers(0, depth, (len(exponents), block)), 1 - number[:, np.newaxis] // block % 2)
        below[number, number % block] = 0
        wanted = np.maximum(np.asarray(exponents)[:, np.newaxis] - below, self.source.emin - self.source.fraction_bits)
        return with_exponents(self.source, wanted.ravel(), self.rng).reshape(wanted.shape)

    def _subnormal(self) -> Codes:
        """Return blocks of subnormals alone, of every size."""
        places = np.arange(self.source.fraction_bits)
        largest = 1 << places[:, np.newaxis]
        codes = self.rng.integers(0, 2 * largest, (len(places), self.unit.block))
        codes[:, self.rng.integers(0, self.unit.block)] |= largest[:, 0]
        return codes | self.rng.integers(0, 2, codes.shape) * self.source.sign_mask

    def _bits_below_a_number(self) -> Codes:
        """Return blocks with a power of two, and every subnormal power of two below it."""
        source, element = self.source, self.element
        largest = np.arange(source.emin, source.emin + element.emax - element.emin + element.precision)
        fields = np.minimum(largest - source.emin + 1, source.max_finite_field) << source.fraction_bits
        bits = np.resize(1 << np.arange(source.fraction_bits), (len(fields), self.unit.block - 1))
        return np.concatenate([fields[:, np.newaxis], bits], -1)

    def _around_elements(self) -> Codes:
        """Return the element's values, the midpoints, and values above the largest, with neighbours in the source."""
        source, element, rng = self.source, self.element, self.rng
        codes = np.arange(element.max_finite + 1, dtype=code_dtype(element))
        values = decode(codes, element).astype(np.float64)
        beyond = 2.0**element.emax * np.array([1.95, 1.99])
        points = np.concatenate([values, (values[:-1] + values[1:]) / 2, values[1:2] / 4, beyond])
        # At two scales; values too small for the source are zeros.
        scales = np.ldexp(1.0, np.array([0, self._a_middle_exponent() - element.emax]))
        given = encode((points * scales[:, np.newaxis]).ravel(), source).astype(np.int64)
        given = np.stack([np.maximum(given - 1, 0), given, given + 1], -1).reshape(len(scales), -1)
        given |= rng.integers(0, 2, given.shape) * source.sign_mask
        most = self.unit.block - 1
        filled = np.pad(given, ((0, 0), (0, -given.shape[1] % most))).reshape(len(scales), -1, most)
        top = encode(scales * 2.0**element.emax, source).astype(np.int64)
        tops = np.broadcast_to(top[:, np.newaxis, np.newaxis], (*filled.shape[:2], 1))
        return np.concatenate([filled, tops], -1).reshape(-1, self.unit.block)

    def scenario(self, name: str, blocks: Codes) -> Scenario:
        """Return a scenario of blocks of the source's codes."""
        unit, codes = self.unit, blocks.astype(code_dtype(self.source))
        if self.has_numbers:
            return self._with_numbers(name, codes)
        random = self._random(blocks.shape) if unit.plan.is_stochastic else None
        values = decode(codes, self.source)
        options: dict[str, Any] = {"random": random, "random_bits": unit.random_bits} if random is not None else {}
        scales, elements = mx.quantize(values, self.element, block=unit.block, rounding=unit.rounding, **options)
        request = {"values": codes} | ({} if random is None else {"random": random})
        bins = _bins(codes, values.astype(np.float64), scales[:, 0], elements, self.source, self.element)
        return self._of(name, request, scales[:, 0], elements, bins)

    def _with_numbers(self, name: str, codes: Codes) -> Scenario:
        """Return a scenario of a unit whose scales are numbers."""
        unit, values = self.unit, values_of(codes, self.source)
        exponents = exponents_of(values, self.rng)
        scales, elements = quantized(unit, values, exponents)
        # Only the exponent of the last beat counts.
        each = self.rng.integers(-128, 128, (len(codes), unit.beats))
        each[:, -1] = exponents
        bins = number_bins(unit, codes, exponents, scales, elements)
        scenario = self._of(name, {"values": codes}, scales, elements, bins, tensor_exponent=each.ravel() & 0xFF)
        scenario.details = {**scenario.details, "tensor_exponent": exponents}
        return scenario

    def _of(
        self, name: str, request: dict[str, NDArray[Any]], scales: Codes, elements: Codes, bins: Counter[str],
        **of_beats: NDArray[Any],
    ) -> Scenario:  # fmt: skip
        """Return a scenario of blocks with their scales and elements; `of_beats` has further fields of each beat."""
        unit, beats = self.unit, len(scales) * self.unit.beats
        packed = {
            key: _joined(each.reshape(beats, unit.lanes), self.port.request.widths[key] // unit.lanes)
            for key, each in request.items()
        }
        number = np.arange(beats)
        answers = self.port.answer.pack(
            codes=_joined(elements.reshape(beats, unit.lanes), self.element.width),
            scale=np.repeat(scales, unit.beats),
            last=number % unit.beats == unit.beats - 1,
        )
        return Scenario(
            name=name,
            payloads=self.port.request.pack(**packed, **of_beats),
            answers=answers,
            case=number // unit.beats,
            ends=number // unit.beats * unit.beats + unit.beats - 1,
            details=request,
            coverage=dict(bins),
        )

    def _random(self, shape: tuple[int, ...]) -> NDArray[np.uint32]:
        bits = self.unit.random_bits
        edges = self.rng.choice([0, 1, (1 << bits) - 1], shape)
        return np.where(self.rng.random(shape) < 0.3, edges, self.rng.integers(0, 1 << bits, shape)).astype(np.uint32)


def _joined(rows: NDArray[Any], width: int) -> Any:
    """Return the numbers of each row as one word, the first in the lowest bits."""
    fields = Fields({str(lane): width for lane in range(rows.shape[1])})
    return fields.pack(**{str(lane): rows[:, lane] for lane in range(rows.shape[1])})


def _bins(
    given: Codes, values: NDArray[np.float64], scales: Codes, codes: Codes, source: FloatFormat, element: FloatFormat
) -> Counter[str]:
    """Count kinds of blocks; and for each value of a block without NaN its class, its element's, and how it rounds."""
    kinds = classes(given, source)
    largest = np.where(np.isnan(values), np.inf, np.abs(values)).max(-1)
    has_nan, has_infinity = (np.isin(kinds, names).any(-1) for names in (["nan", "signalling"], ["infinity"]))
    block = np.select(
        [has_nan & has_infinity, has_nan, has_infinity, largest == 0, ~(kinds == "normal").any(-1), scales == 0],
        ["nan_and_infinity", "nan", "infinity", "zeros", "subnormals", "least_scale"],
        "usual",
    )
    bins = count_bins(np.full(len(block), "block"), block)
    sound = scales != mx.SCALE_NAN
    scaled = np.ldexp(values[sound], -(scales[sound].astype(np.int32) - mx.SCALE_BIAS)[:, np.newaxis])
    cases = rounding_cases(scaled, 0.0, codes[sound].astype(np.uint16), element)
    top = float(decode(np.array(element.max_finite, code_dtype(element)), element))
    cases = np.where(np.abs(scaled) > top, "saturated", cases)
    of_code = classes(codes[sound], element)
    bins += count_bins(np.full(cases.size, "value"), kinds[sound].ravel(), of_code.ravel(), cases.ravel())
    first = np.where(np.isnan(values), -1, np.abs(values)).argmax(-1)[sound & (largest > 0)]
    bins["largest/first"], bins["largest/last"] = int((first == 0).sum()), int((first == values.shape[1] - 1).sum())
    return +bins


def required_block_bins(component: MxQuantizer) -> set[str]:
    """Return the bins that must not be empty."""
    if isinstance(component.plan, NumberPlan):
        return required_number_bins(component)
    source, element = component.source, component.element
    required = required_resets(component.latency, answers_wait_for_more=component.beats > 1)
    kinds = ["nan", "infinity", "zeros", "subnormals", "usual"]
    required |= {f"block/{kind}" for kind in kinds} | {"largest/first", "largest/last"}
    if source.emin - element.emax < -mx.SCALE_BIAS:
        required.add("block/least_scale")
    required |= {f"value/{kind}/{kind}/exact" for kind in ("zero", "normal")} | {"value/normal/normal/saturated"}
    required |= {f"value/subnormal/{kind}/exact" for kind in ("subnormal", "normal")}
    if component.rounding is not Rounding.NEAREST_EVEN:
        return required
    # The smallest values driven around the elements may be subnormal in the source.
    is_normal = element.emin - element.fraction_bits - 2 >= source.emin
    required |= {f"value/{'normal' if is_normal else 'subnormal'}/zero/{case}" for case in ("below_half", "tie")}
    required |= {f"value/normal/normal/{case}" for case in ("below_half", "tie", "above_half")}
    return required
