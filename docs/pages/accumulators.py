"""``.. accumulators::``: the tables of `golden.accumulators`, made from the presets themselves."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from golden import Accumulator, FusedSum, accumulators

__all__ = ["Accumulators", "rule", "sources"]


class Accumulators(SphinxDirective):
    """Show every preset: its arithmetic, then its sources."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Write the tables as directives, and let Sphinx read them."""
        container = nodes.container()
        self.state.nested_parse(StringList([*_rules(), "", *_sources()], source="golden.accumulators"), 0, container)
        return container.children


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    for row in (headings, *rows):
        lines += [f"   {'* -' if number == 0 else '  -'} {cell}" for number, cell in enumerate(row)]
    return lines


def _rules() -> list[str]:
    headings = ("preset", "machine", "operands", "products at a time", "rule")
    return _table(
        headings,
        (
            (
                f"``{name}``",
                preset.provenance.machine,
                ", ".join(preset.provenance.formats),
                str(preset.block),
                rule(preset),
            )
            for name, preset in accumulators.items()
        ),
    )


def _sources() -> list[str]:
    headings = ("preset", "instructions", "source", "documented", "reverse-engineered", "unknown")
    return _table(headings, ((f"``{name}``", *sources(preset)) for name, preset in accumulators.items()))


def sources(preset: Accumulator) -> tuple[str, ...]:
    """Return where a preset comes from, a cell each."""
    given = preset.provenance
    cells = given.instructions, given.source, given.documented, given.reverse_engineered, given.unknown
    return tuple(cell.replace("*", r"\*").replace("_", r"\_") for cell in cells)


def rule(preset: Accumulator) -> str:
    """Return the arithmetic of a preset in words, made from its numbers."""
    parts = [_sum(stage) for stage in preset.stages]
    total = "" if preset.total_fraction_bits is None else f", the total at {preset.total_fraction_bits}"
    parts.append(f"with the total: {_sum(preset.join)}{total}")
    if preset.order:
        parts.append("order of products " + ", ".join(map(str, preset.order)))
    if preset.flush != "none":
        parts.append("subnormal numbers are zeros")
    if preset.promote_every is not None:
        parts.append(f"every {preset.promote_every} products the total joins a float32 sum")
    return "; ".join(parts)


def _sum(spec: FusedSum) -> str:
    kind = "chain of" if spec.chain else "sum of"
    which = " interleaved" if spec.interleaved else ""
    cut = "" if spec.fraction_bits is None else f", cut ({spec.cut}) at {spec.fraction_bits} fraction bits"
    rounded = "not rounded" if spec.rounding is None else f"rounded ({spec.rounding}) to {spec.result}"
    return f"{kind} {spec.terms}{which}{cut}, {rounded}"
