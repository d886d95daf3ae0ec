"""Rules about sums: overflow on the way, lost addends, distance from fp32. The remedy is a level or a chunk."""

from __future__ import annotations

from golden.torch.instruments.report.advice import Advice, Case, Rule, new_levels, places
from golden.torch.instruments.report.judging import Judged
from golden.torch.instruments.report.limits import LIMITS
from golden.torch.instruments.report.rules_of_underflow import unexplained

__all__ = ["RULES"]

_SWAMPED = LIMITS["swamped"].share


def _chunk_overflow(each: Judged) -> float:
    return each.of_products["overflow"] if each.layer.level else 0.0


def _total_overflow(each: Judged) -> float:
    return each.of_promotions["overflow"] if each.layer.level == 2 else 0.0


def _chunk_swamped(each: Judged) -> float:
    share = each.of_products["swamped"] if each.layer.level else 0.0
    return share if share > _SWAMPED else 0.0


def _total_swamped(each: Judged) -> float:
    share = each.of_promotions["swamped"] if each.layer.level == 2 else 0.0
    return share if share > _SWAMPED else 0.0


def _overflow_in_chunks(case: Case) -> Advice | None:
    found = [(each, share) for each in case.forward() if (share := _chunk_overflow(each))]
    if not found:
        return None
    said, layers = places(found)
    return Advice(
        "Partial sums overflow within a chunk.",
        f"Steps that add a product overflow {said} of these steps.",
        "Use level 0 there: its sums are fp32. Level 1 does not help, for it sums a chunk in 16 bits as level 2 does. "
        "If the output is still infinite at level 0, the result itself is too large for the format.",
        layers,
        new_levels((each for each, _ in found), lambda level: 0),
    )


def _overflow_in_totals(case: Case) -> Advice | None:
    found = [(each, share) for each in case.forward() if (share := _total_overflow(each)) and not _chunk_overflow(each)]
    if not found:
        return None
    said, layers = places(found)
    return Advice(
        "Totals overflow at level 2, while the sum of each chunk fits.",
        f"Promotions overflow {said} of the promotions; no step within a chunk does.",
        "Use level 1 there: it sums a chunk in 16 bits as before, and the chunks in fp32.",
        layers,
        new_levels((each for each, _ in found), lambda level: 1),
    )


def _swamped_in_chunks(case: Case) -> Advice | None:
    found = [(each, share) for each in unexplained(case) if (share := _chunk_swamped(each))]
    if not found:
        return None
    said, layers = places(found)
    chunk = case.run.settings.chunk
    shorter = "a chunk length, such as 32" if chunk is None else f"a shorter chunk, such as {max(1, chunk // 2)}"
    precision = f"precision: {{chunk: {32 if chunk is None else max(1, chunk // 2)}}}"
    return Advice(
        "Addends are swamped within a chunk.",
        f"Steps lose their addend whole {said} of these steps; the limit is {LIMITS['swamped'].allowed}.",
        f"Use {shorter}, or level 0 for these places: levels 1 and 2 both sum a chunk in 16 bits.",
        layers,
        new_levels((each for each, _ in found), lambda level: 0),
        precision,
    )


def _swamped_in_totals(case: Case) -> Advice | None:
    found = [
        (each, share) for each in unexplained(case) if (share := _total_swamped(each)) and not _chunk_swamped(each)
    ]
    if not found:
        return None
    said, layers = places(found)
    return Advice(
        "Partial sums are swamped by the total at level 2.",
        f"Promotions lose a whole chunk {said} of the promotions; the limit is {LIMITS['swamped'].allowed}.",
        "Use level 1 there: it sums the chunks in fp32.",
        layers,
        new_levels((each for each, _ in found), lambda level: 1),
    )


def _far_from_fp32(case: Case) -> Advice | None:
    others = (_chunk_overflow, _total_overflow, _chunk_swamped, _total_swamped)
    found = [
        (each, each.shares["distance"] or 0.0)
        for each in unexplained(case)
        if each.is_beyond("distance") and each.layer.level and not any(other(each) for other in others)
    ]
    if not found:
        return None
    said, layers = places(found)
    return Advice(
        "Results are far from those of fp32, though no event explains it.",
        f"The mean relative distance is beyond {LIMITS['distance'].allowed} {said}.",
        "Rounding errors add up there. Use the next lower level.",
        layers,
        new_levels((each for each, _ in found), lambda level: level - 1),
    )


def _invalid(case: Case) -> Advice | None:
    found = [
        (each, share)
        for each in case.layers
        if (share := each.shares["invalid"] or 0.0) and not each.shares["overflow"]
    ]
    if not found:
        return None
    said, layers = places(found)
    first = case.run.telling[0] if case.run.telling else None
    source = f" The earliest bad step is {first.step}, in {first.module}: {first.cause}." if first is not None else ""
    return Advice(
        "Sums meet infinities that they did not make.",
        f"Steps are invalid {said} of the steps, and none there overflows: the operands were infinite already.",
        f"Mend the layer that overflows first, not these.{source}",
        layers,
    )


RULES = (
    Rule(
        "overflow in chunks",
        "forward, level 1 or 2: a step that adds a product overflows",
        _overflow_in_chunks,
    ),
    Rule(
        "overflow of totals",
        "forward, level 2: a promotion overflows, and no step that adds a product does",
        _overflow_in_totals,
    ),
    Rule(
        "swamped in chunks",
        f"level 1 or 2: more than {LIMITS['swamped'].allowed} of the steps that add a product are swamped",
        _swamped_in_chunks,
    ),
    Rule(
        "swamped totals",
        f"level 2: more than {LIMITS['swamped'].allowed} of the promotions are swamped, and not so many products",
        _swamped_in_totals,
    ),
    Rule(
        "far from fp32",
        f"level 1 or 2: the mean relative distance is beyond {LIMITS['distance'].allowed}, and none of the rules above "
        "speaks of that layer",
        _far_from_fp32,
    ),
    Rule("invalid", "a step is invalid in a layer where none overflows", _invalid),
)
