"""The model whose results are the device's: every reduction is tried, then accumulators are improved step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import OPERAND_BITS, Accumulator, FusedSum
from golden.arrays.products import matmul
from golden.formats import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat
from golden.identification.disclosure import disclosures
from golden.identification.probes import Probe
from golden.kernels.accumulators import serves
from golden.presets import accumulators
from golden.reduction import Reduction
from golden.rounding import SUBNORMALS, Rounding

__all__ = [
    "Candidate",
    "Examples",
    "Model",
    "fitted_accumulator",
    "fitted_disclosure",
    "fitted_preset",
    "fitted_reduction",
    "nearest",
    "operand_bits",
    "variations",
]

_INNER = (FP32, FP16, BF16, CBFLOAT16, CB16)
# Passes over all parts of a rule; a rule that is right in few sums at first is no start.
_PASSES, _STARTS, _HOPELESS = 5, 2, 0.2
_ROUNDS, _FAILING = 12, 12
_SCREENED = (2, 8, 33, 130)
# A model must compute this one product before it is judged on others.
_FIRST_LENGTH, _FIRST_ROWS = 33, 64
_MODES = [mode for mode in Rounding if mode is not Rounding.STOCHASTIC]
_CUTS = (Rounding.TOWARD_ZERO, Rounding.DOWN, Rounding.TO_ODD)
_ROUNDINGS = (Rounding.NEAREST_EVEN, Rounding.TOWARD_ZERO, Rounding.TO_ODD, None)
_BITS = (None, *range(1, 41))
_RESULTS = (FP32, *(FloatFormat(f"e8m{bits}", 8, bits) for bits in range(22, 0, -1)))

Model = Reduction | Accumulator


@dataclass(frozen=True)
class Candidate:
    """A model, and the share of the examples that it computes as the device does."""

    model: Model
    share: float


class Examples:
    """Products and the device's results, with which models are compared; every NaN counts as the same.

    Parameters
    ----------
    asked, results : sequences
        Products of codes, and the codes of their results.
    operand, out : FloatFormat
        Formats of factors and results.
    """

    def __init__(
        self, asked: Sequence[Probe], results: Sequence[NDArray[Any]], operand: FloatFormat, out: FloatFormat
    ) -> None:
        self.asked, self.operand, self.out = list(asked), operand, out
        self.results = [self.plain(each) for each in results]
        self.count = sum(each.size for each in results)

    def plain(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes with one code for every NaN."""
        return np.where(self.out.is_nan(codes), self.out.nan if self.out.has_nan else 0, codes)

    def some(self, rows: int) -> Self:
        """Return examples of the first rows of each product."""
        asked = [Probe(each.name, each.a[:rows], each.b) for each in self.asked]
        return type(self)(asked, [each[:rows] for each in self.results], self.operand, self.out)

    def screened(self) -> Examples:
        """Return a few examples that most wrong models already fail."""
        chosen = [at for at, each in enumerate(self.asked) if each.a.shape[1] in _SCREENED]
        asked = [self.asked[at] for at in chosen]
        return type(self)(asked, [self.results[at] for at in chosen], self.operand, self.out).some(40)

    def first(self, length: int = _FIRST_LENGTH) -> Examples:
        """Return one product of so many terms, which almost every wrong model fails."""
        chosen = [at for at, each in enumerate(self.asked) if each.a.shape[1] == length][1:2]
        asked = [self.asked[at] for at in chosen]
        return type(self)(asked, [self.results[at] for at in chosen], self.operand, self.out).some(_FIRST_ROWS)

    def named(self, *names: str) -> Examples:
        """Return the examples of these kinds of probes."""
        chosen = [at for at, each in enumerate(self.asked) if each.name in names]
        asked = [self.asked[at] for at in chosen]
        return type(self)(asked, [self.results[at] for at in chosen], self.operand, self.out)

    def without(self, *names: str) -> Examples:
        """Return the examples of other kinds of probes than these."""
        return self.named(*({each.name for each in self.asked} - {*names}))

    def with_equal_zeros(self) -> Examples:
        """Return these examples, compared as if +0 and -0 were the same."""
        return _EqualZeros(self.asked, self.results, self.operand, self.out)

    def failing(self, model: Model, *, rows: int) -> Examples:
        """Return some sums of a column that the model computes otherwise: a few of each of two products."""
        asked, results = [], []
        for probe, result in zip(self.asked, self.results, strict=True):
            wrong = np.nonzero((self.computed(probe, model) != result)[:, 0])[0][:rows]
            if len(wrong):
                asked.append(Probe(probe.name, probe.a[wrong], probe.b))
                results.append(result[wrong])
            if len(asked) == 2:
                break
        return type(self)(asked, results, self.operand, self.out)

    def joined(self, other: Examples) -> Self:
        """Return these examples and others."""
        return type(self)([*self.asked, *other.asked], [*self.results, *other.results], self.operand, self.out)

    def extended(self, probe: Probe, result: NDArray[Any]) -> Examples:
        """Return these examples and one more product."""
        return type(self)([*self.asked, probe], [*self.results, result], self.operand, self.out)

    def computed(self, probe: Probe, model: Model) -> NDArray[Any]:
        """Return the model's results of a product, or of a batch of them."""
        options: dict[str, Any] = {"initial": probe.initial}
        if not isinstance(model, Reduction) and self.out != model.outer:
            options["out"] = self.out
        result: NDArray[Any] = matmul(probe.a, probe.b, operand=self.operand, reduction=model, **options)
        return self.plain(result)

    def share(self, model: Model, *, at_least: float = 0.0) -> float:
        """Return the share of equal results; no more than `at_least` as soon as it cannot become larger."""
        wrong, allowed = 0.0, (1.0 - at_least) * self.count
        for batch, result in self._batches:
            wrong += float(self.distances(self.computed(batch, model), result).sum())
            if wrong > allowed:
                return at_least if at_least else 1 - wrong / self.count
        return 1 - wrong / self.count

    @cached_property
    def _batches(self) -> list[tuple[Probe, NDArray[Any]]]:
        """The products and their results; those of one shape are one batch, for one call costs more than few sums."""
        alike: dict[Any, list[int]] = {}
        for at, each in enumerate(self.asked):
            alike.setdefault((each.a.shape, each.b.shape, each.initial is None), []).append(at)
        return [
            (_stacked([self.asked[at] for at in ats]), np.stack([self.results[at] for at in ats]))
            for ats in alike.values()
        ]

    def distances(self, given: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
        """Return 0 for equal codes and 1 for others."""
        return given != wanted


class _EqualZeros(Examples):
    """Examples that count +0 and -0 as the same."""

    def plain(self, codes: NDArray[Any]) -> NDArray[Any]:
        plain = super().plain(codes)
        return np.where(plain == self.out.sign_mask, 0, plain)


def _stacked(alike: Sequence[Probe]) -> Probe:
    """Return products of one shape as a batch."""
    a, b = (np.stack([getattr(each, factor) for each in alike]) for factor in "ab")
    starts = [each.initial for each in alike if each.initial is not None]
    return Probe(alike[0].name, a, b, initial=np.stack(starts) if starts else None)


def _first(preferred: FloatFormat) -> list[FloatFormat]:
    return sorted(_INNER, key=lambda fmt: fmt != preferred)


def fitted_reduction(
    examples: Examples, chunks: Iterable[int | None], modes: Sequence[Rounding] = tuple(_MODES)
) -> Candidate:
    """Return the reduction that computes most of the examples; formats, modes, chunks and subnormals are all tried.

    Of several that compute all examples, the one with fewer formats and conversions is returned.
    """
    single = examples.first(1)
    stages = (examples.first(2), examples.first(), examples.screened(), examples)
    formats = [(inner, outer) for outer in _first(examples.out) for inner in _first(outer)]
    best: tuple[float, Reduction] | None = None
    lengths = list(chunks)
    for subnormals, (inner, outer), mode in product(SUBNORMALS, formats, modes):
        for last in modes if outer != examples.out else modes[:1]:
            model = Reduction(inner, None, outer, examples.operand, examples.out, mode, last, subnormals=subnormals)
            share = single.share(model)  # a sum of one product is the same with every chunk
            if best is None or share > best[0]:
                best = share, model
            if share < 1.0:
                continue
            for chunk in lengths:
                chunked = replace(model, chunk=chunk)
                for number, stage in enumerate(stages):
                    share = 1 + number + stage.share(chunked)  # one that came further is nearer
                    if share < 2 + number:
                        break
                else:
                    return Candidate(chunked, 1.0)
                if share > best[0]:
                    best = share, chunked
    if best is None:
        raise ValueError("modes: got none, must have one at least")
    return Candidate(best[1], examples.share(best[1]))


def fitted_disclosure(examples: Examples) -> Candidate | None:
    """Return the product of RISC-V's integrated matrix extension that computes all examples."""
    stages = (examples.first(), examples.screened(), examples)
    for model in disclosures(examples.operand, examples.out):
        if all(stage.share(model) == 1.0 for stage in stages):
            return Candidate(model, 1.0)
    return None


def fitted_preset(examples: Examples) -> Candidate | None:
    """Return the machine of `golden.accumulators` that computes all examples."""
    bits, few = operand_bits(examples), examples.first()
    for rule in accumulators.values():
        if rule.operand_bits == bits and few.share(rule) == 1.0 and examples.share(rule, at_least=0.5) == 1.0:
            return Candidate(rule, 1.0)
    return None


def operand_bits(examples: Examples) -> int:
    """Return the `operand_bits` of accumulators that take these operands."""
    return min(bits for bits in OPERAND_BITS if examples.operand.width <= bits)


def _sums(spec: FusedSum, *, is_join: bool, joint: bool) -> Iterator[FusedSum]:
    """Return sums that differ from this one in a number or a mode; `joint`: in the cut and the rounding together."""
    roundings = _ROUNDINGS[:3] if is_join else _ROUNDINGS
    cuts: list[tuple[int | None, Rounding, bool]] = [(None, spec.cut, True), (None, spec.cut, False)]
    cuts += [(bits, spec.cut, False) for bits in range(40, 0, -1)]
    cuts += [(spec.fraction_bits, cut, False) for cut in _CUTS]
    total = spec.result if spec.result == FP16 else FP32
    whole = _RESULTS if total == FP32 else (total,)
    results = [(mode, fmt) for mode in roundings for fmt in (whole if mode in _ROUNDINGS[1:3] else whole[:1])]
    if joint:
        cuts = [(bits, cut, False) for bits in _BITS for cut in _CUTS] + cuts[:1]
        kept = [(mode, spec.result) for mode in roundings if spec.result != total and mode in _ROUNDINGS[1:3]]
        pairs = list(product(cuts, [*((mode, total) for mode in roundings), *kept]))
    else:
        own = (spec.fraction_bits, spec.cut, spec.chain), (spec.rounding, spec.result)
        pairs = [(cut, own[1]) for cut in cuts] + [(own[0], result) for result in results]
    for (bits, cut, chain), (mode, fmt) in pairs:
        try:
            yield replace(spec, fraction_bits=bits, cut=cut, chain=chain, rounding=mode, result=fmt)
        except ValueError:  # a combination that the family does not have
            continue


def variations(rule: Accumulator, joint: bool) -> Iterator[list[Accumulator]]:
    """Return groups of rules that differ from this one in one part, or in two; kernels serve all of them."""

    def changed(name: str, values: Iterable[Any], of: Any = rule) -> list[Any]:
        made = []
        for value in values:
            try:
                made.append(replace(of, **{name: value}))
            except ValueError:
                continue
        return [each for each in made if not isinstance(each, Accumulator) or serves(each)]

    yield changed("flush", ("none", "signed", "positive"))
    yield changed("join", _sums(rule.join, is_join=True, joint=joint))
    for at, stage in enumerate(rule.stages):
        yield changed(
            "stages",
            ((*rule.stages[:at], other, *rule.stages[at + 1 :]) for other in _sums(stage, is_join=False, joint=joint)),
        )
    yield changed("total_fraction_bits", _BITS)
    if joint:
        rounded = changed("join", changed("rounding", _ROUNDINGS[:3], of=rule.join))
        yield [each for other in rounded for each in changed("total_fraction_bits", _BITS, of=other)]
    near = () if rule.zero_exponent is None else range(rule.zero_exponent - 7, rule.zero_exponent + 8)
    yield changed("zero_exponent", (None, *range(-300, 257, 8), *near))
    around = range(rule.zero_total_exponent - 7, rule.zero_total_exponent + 8)
    yield changed("zero_total_exponent", (*range(-300, 257, 8), *around))
    yield changed("products_overflow", (False, True))
    yield changed("total_reach", _BITS)
    yield changed("depth", (None, *(rule.block * n for n in range(1, 33))))
    yield changed("promote_every", (None, *(rule.block * n for n in range(1, 33)), rule.promote_every))
    one = [FusedSum(1, chain=True), FusedSum(1, rounding="to_odd"), FusedSum(1, rounding="toward_zero")]
    places = range(len(rule.stages) + 1)
    yield changed(
        "stages",
        [
            *((*rule.stages[:at], extra, *rule.stages[at:]) for at in places for extra in one),
            *((*rule.stages[:at], *rule.stages[at + 1 :]) for at, each in enumerate(rule.stages) if each.terms == 1),
        ],
    )


def nearest(examples: Examples, rules: Iterable[Accumulator], best: Candidate) -> Candidate:
    """Return the first of the rules with the largest share, or the best so far if none has a larger one."""
    for rule in rules:
        share = examples.share(rule, at_least=best.share)
        if share > best.share:
            best = Candidate(rule, share)
    return best


def _improved(examples: Examples, start: Candidate) -> Candidate:
    best, joint = start, False
    for _ in range(_PASSES):
        before = best
        for group in variations(best.model, joint):  # type: ignore[arg-type]  # starts are accumulators
            best = nearest(examples, group, best)
            if best.share == 1.0:
                return best
        if best.share == before.share:
            if joint:
                return best
            joint = True
    return best


def _guided(examples: Examples, few: Examples, start: Candidate) -> Candidate:
    """Improve a rule on few sums; sums of the others on which it then fails join them."""
    working = few.some(_FIRST_ROWS // 4)
    found = start
    for _ in range(_ROUNDS):
        found = _improved(working, Candidate(found.model, working.share(found.model)))
        if found.share < 1.0:
            break
        failing = examples.failing(found.model, rows=_FAILING)
        if not failing.asked:
            return Candidate(found.model, 1.0)
        working = working.joined(failing)
    return Candidate(found.model, examples.share(found.model))


def fitted_accumulator(examples: Examples, starts: Sequence[Accumulator]) -> Candidate | None:
    """Return the accumulator that computes most of the examples: one improved from a start or from the best preset."""
    bits = operand_bits(examples)
    presets = [Candidate(rule, examples.share(rule)) for rule in accumulators.values() if rule.operand_bits == bits]
    few = examples.screened()
    own = [Candidate(rule, few.share(rule)) for rule in (replace(each, operand_bits=bits) for each in starts)]
    best: Candidate | None = None
    for start in (
        sorted(own, key=lambda each: -each.share)[:_STARTS] + sorted(presets, key=lambda each: -each.share)[:1]
    ):
        if start.share < _HOPELESS:
            continue
        found = _guided(examples, few, start)
        if best is None or found.share > best.share:
            best = found
        if best.share == 1.0:
            break
    return best
