"""Proofs about the values of an array of lanes: a few products of one tile, with any operands, give the fused steps.

The array starts in its power-up state. Beats of one tile follow one another, as fast as they are taken. The rows that
leave must have the bits that `FusedStep` gives for the same products and promotions, one after the other, in every
lane. Sums start from +0, or from any initial values that beats have loaded, row by row. The formats are small enough
for solvers to multiply in them; ranks and control do not depend on the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from golden.formats import FloatFormat
from hdl.cores.fused_step import FusedStep
from hdl.mac.inner import OPERAND
from hdl.matrix.matrix_mac import MatrixMac
from hdl.matrix.ports import matrix_beat_layout, matrix_result_layout
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import netlist_of, netlist_of_verilog
from lab.proofs.control import TINY
from lab.proofs.proof import BITWUZLA, Proof
from lab.proofs.terms import bits, both, either, equal, field_of, inverse, refute, slice_of

__all__ = ["matrix_value_proofs", "values_formula"]

#: One group of places in a significand, and two.
_SHORT, _LONG = FloatFormat("1-3-2", 3, 2), FloatFormat("1-2-5", 2, 5)
#: The smallest one with a signalling NaN, which units with initial values need.
_WITH_SIGNALLING = FloatFormat("1-2-2", 2, 2)
#: Format, rows, columns, level, products, chunk, initial values. Chunks of two and of one; a total that is not 0.
_CASES = (
    (TINY, 2, 2, 2, 1, 1, False),
    (_SHORT, 1, 1, 0, 2, 1, False),
    (_SHORT, 1, 1, 1, 3, 2, False),
    (_SHORT, 1, 1, 2, 3, 2, False),
    (_LONG, 1, 1, 1, 1, 1, False),
    (_WITH_SIGNALLING, 2, 2, 2, 1, 1, True),
    (_SHORT, 1, 1, 0, 1, 1, True),
    (_SHORT, 1, 1, 1, 1, 1, True),
    (_SHORT, 1, 1, 2, 2, 1, True),
)
#: The same without level 0, where totals lie outside of the lanes: a chunk of one product, and two of them.
_SHARED = ((TINY, 2, 2, 2, 1, 1), (_LONG, 1, 1, 1, 1, 1), (_SHORT, 1, 1, 1, 2, 1))
#: Any tile but 0, which idle operations carry.
_TILE = 5
#: Cycles between a product's issue and the one before, a promotion's way, and the rest.
_SPARE = 12


def matrix_value_proofs() -> Iterator[Proof]:
    """Yield the proofs of every case."""
    cases = [(*case, (0, 1, 2) if case[3] else (0,)) for case in _CASES]
    for fmt, rows, columns, level, products, chunk, initial, levels in cases + [
        (*case, False, (1, 2)) for case in _SHARED
    ]:
        claim = f"matrix/values/{fmt}/{rows}x{columns}/level_{level}/products_{products}{'/initial' if initial else ''}"
        claim += "/levels_12" if levels == (1, 2) else ""
        title = f"{fmt}, {rows} x {columns} lanes, level {level}, {products} products in chunks of {chunk}"
        title += ", initial values" if initial else ""
        title += ", levels 1 and 2" if levels == (1, 2) else ""
        build = partial(_build, fmt, rows, columns, level, products, chunk, levels=levels, initial=initial)
        yield Proof(claim, "array: values", title, "fused steps in order", BITWUZLA, build, 900, True)


def _build(
    fmt: FloatFormat,
    rows: int,
    columns: int,
    level: int,
    products: int,
    chunk: int,
    folder: Path,
    *,
    levels: tuple[int, ...],
    initial: bool,
) -> str:
    size: dict[str, Any] = {"rows": rows, "columns": columns, "initial": initial}
    unit = MatrixMac(operands=(fmt,), inner=OPERAND, levels=levels, chunk_bits=2, **size)
    step = netlist_of(FusedStep(unit.parameters.formats), folder)
    return values_formula(unit, netlist_of_verilog(unit, folder), step, level, products, chunk)


def values_formula(unit: MatrixMac, netlist: Netlist, step: Netlist, level: int, products: int, chunk: int) -> str:
    """Return a formula with a solution if, for some operands, the fused steps give other results."""
    parameters = unit.parameters
    beat, answer = matrix_beat_layout(parameters), matrix_result_layout(parameters)
    text, payloads = "", []
    loaded = unit.rows if unit.initial else 0
    core, distance = parameters.core, unit.accumulate_latency
    if core.shares_promotions and chunk == 1:
        # Its chunk goes through all ranks, the queue and into the chains before the next one may end.
        distance = len(core.operation_ranks) + 2 + 3
    cycles = (loaded + products) * distance + unit.latency + parameters.returning_position
    cycles += unit.rows + _SPARE
    for row in range(loaded):
        # Operands, `first` and `last` may be anything.
        noise, marks, codes = f"noise_{row}", f"marks_{row}", f"initial_{row}"
        text += f"(declare-const {noise} (_ BitVec {beat['a'].width + beat['b'].width}))\n"
        text += f"(declare-const {marks} (_ BitVec 2))\n(declare-const {codes} (_ BitVec {beat['initial'].width}))\n"
        kind = bits(level | _TILE << 2, 2 + parameters.register_width)
        its_row = bits(row << 1 | 1, 1 + beat["row"].width)
        payloads.append(f"(concat {its_row} {codes} {marks} {kind} {noise})")
    for k in range(products):
        operands = f"operands_{k}"
        text += f"(declare-const {operands} (_ BitVec {beat['a'].width + beat['b'].width}))\n"
        rest = level | _TILE << 2 | (k == 0 and not loaded) << 2 + parameters.register_width
        rest |= (k == products - 1) << 3 + parameters.register_width
        payloads.append(f"(concat {bits(rest, beat.size - beat['a'].width - beat['b'].width)} {operands})")
    instances: list[Instance] = []
    always = {"clk": "#b0", "rst": "#b0", "o__ready": "#b1", "chunk": bits(chunk, 2)}
    # A beat is offered until it is taken: the first at once, the second behind it, the others when one is issued.
    accepted = [0, *(1 + distance * k for k in range(loaded + products - 1))]
    for cycle in range(cycles):
        number = next((k for k, at in enumerate(accepted) if cycle <= at), None)
        given = always | {"i__valid": "#b0" if number is None else "#b1"}
        if number is not None:
            given["i__payload"] = payloads[number]
        held = {"held": instances[-1].registers} if instances else {}
        instances.append(netlist.instance(f"t{cycle}", given=given, **held))
        text += instances[-1].text
    taken = [equal(instances[at].port("i__ready"), "#b1") for at in accepted]
    text += f"(assert {instances[0].initial})\n"

    wanted: list[list[tuple[str, str]]] = []
    for row in range(unit.rows):
        wanted.append([])
        for column in range(unit.columns):
            lane, result = _lane(unit, step, level, products, chunk, row, column)
            text += lane
            wanted[-1].append(result)
    claims = list(taken)
    for row, results in enumerate(wanted):
        came = []
        for instance in instances:
            payload, offers = instance.port("o__payload"), equal(instance.port("o__valid"), "#b1")
            is_its = both(offers, equal(field_of(payload, answer, "row"), bits(row, 1))) if unit.rows > 1 else offers
            came.append(is_its)
            claims.append(either(inverse(is_its), _is_row(payload, answer, results)))
        claims.append(either(*came))
    return text + refute(both(*claims))


def _is_row(payload: str, answer: Any, results: Sequence[tuple[str, str]]) -> str:
    """Return that a row has these codes and flags, and the tile's number."""
    code, flags = field_of(payload, answer, "result"), field_of(payload, answer, "flags")
    width = answer["result"].width // len(results)
    size = answer["flags"].width // len(results)
    claims = [equal(field_of(payload, answer, "register"), bits(_TILE, answer["register"].width))]
    claims.append(equal(field_of(payload, answer, "error"), bits(0, 2)))
    for column, (wanted, raised) in enumerate(results):
        claims.append(equal(slice_of(code, width * column + width - 1, width * column), wanted))
        claims.append(equal(slice_of(flags, size * column + size - 1, size * column), raised))
    return both(*claims)


def _lane(
    unit: MatrixMac, step: Netlist, level: int, products: int, chunk: int, row: int, column: int
) -> tuple[str, tuple[str, str]]:
    """Return the text of a lane's steps, and its code and flags in the end."""
    (fmt,), formats = unit.operands, unit.parameters.formats
    width, name = fmt.width, f"lane_{row}_{column}"
    zero = bits(0, formats.accumulator_width)
    indexed = "accumulator_format" in step.inputs
    text, flags = "", []

    def computed(at: str, a: str, b: str, acc: str, index: int) -> str:
        nonlocal text
        given = {"a": a, "b": b, "acc": acc} | ({"accumulator_format": bits(index, 1)} if indexed else {})
        instance = step.instance(f"{name}_{at}", given=given)
        text += instance.text
        result = instance.port("o")
        flags.append(slice_of(result, formats.accumulator_width + 4, formats.accumulator_width))
        return slice_of(result, formats.accumulator_width - 1, 0)

    wide = len(formats.accumulators) - 1
    total, partial_sum = zero, zero
    if unit.initial:
        # The code is in the low bits; those above it may be anything.
        its = width if level == 2 else formats.accumulator_width
        low = formats.accumulator_width * column
        total = slice_of(f"initial_{row}", low + its - 1, low)
        if its < formats.accumulator_width:
            total = f"((_ zero_extend {formats.accumulator_width - its}) {total})"
    for k in range(products):
        a = slice_of(f"operands_{k}", width * row + width - 1, width * row)
        low = width * (unit.rows + column)
        b = slice_of(f"operands_{k}", low + width - 1, low)
        if level == 0:
            total = computed(f"step_{k}", a, b, total, wide)
            continue
        partial_sum = computed(f"step_{k}", a, b, zero if k % chunk == 0 else partial_sum, 0)
        if k % chunk == chunk - 1 or k == products - 1:
            promoted = slice_of(partial_sum, width - 1, 0)
            total = computed(f"promotion_{k}", promoted, bits(fmt.one, width), total, wide if level == 1 else 0)
    raised = flags[0]
    for each in flags[1:]:
        raised = f"(bvor {raised} {each})"
    return text, (total, raised)
