"""Proofs about the values in a vector unit and the order of its results, for any number of beats.

The lanes are left out. One of them, with the even lane beside it where needed, gives the results of a sequential
model's records; these may be anything, and so may the results of the other lanes. An *element* is one row of one lane.
As long as every operation of the element gets the operands of its record, we may assume that the lane gives the results
of the records. So this holds for every arithmetic.

By induction over cycles, as in `lab.proofs.along_model`; the invariant includes the conditions of
`lab.proofs.vector_steady`. With a reset in any cycle and a port ``chunk`` that changes at will:

- every operation of the element is issued with the operands of its beat, or of the promotion that its chunk asks for.
  It reads the accumulator of the model, and has the flags of all operations before it;
- results of a row leave in the order of its beats, refusals apart. The second part of a result at level 1 directly
  follows the first one. The element's part of a result is right.

The row is an unknown constant, so it may be any row. The lanes are taken in turn. Lanes and rows share only the
operations and the two queues with a place for each lane, and the proofs about these hold for all lanes alike. The
element knows of other rows' operations only whether they write where its values stand. So a claim about one element
holds for each, and for the unit.

The premise is the unit's rule for its user: a beat continues only values of its level, in every row that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data
from amaranth.lib.wiring import In

from golden.formats import FloatFormat
from hdl.mac.operands import GROUP
from hdl.mac.parameters import WORD_WIDTH
from hdl.vector.parameters import VectorParameters
from lab.proofs.along_model.induction import induction
from lab.proofs.along_vector.contents import Contents
from lab.proofs.along_vector.delivery import Delivery
from lab.proofs.along_vector.element import Element
from lab.proofs.along_vector.order import agreement, held_operands, issue, totals, waiting_promotions
from lab.proofs.along_vector.record import Record, given_layout
from lab.proofs.left_out import OpenVectorMac
from lab.proofs.opened_vector import OpenedVector
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.vector_beats import BeatsAndChunks
from lab.proofs.vector_steady import SIZES, More, SteadyVector, size_parameters, size_slug, size_title

__all__ = ["ValuesVector", "value_proofs", "values_component"]

_MEANS = "induction along a sequential model"
_TWO_GROUPS = (GROUP + 2, *SIZES[0][1:])


class ValuesVector(SteadyVector):
    """A vector unit without its lanes beside the sequential model of one element.

    Parameters
    ----------
    lane : int
        Of the element.

    Ports
    -----
    half : in
        The element's row within the pair; it must keep its value.
    given, total_given, noise, watch : in
        Any values: the lane's results for the product that is issued, and for its promotion; the results of lanes for
        anything else; see `Delivery`.
    """

    def __init__(self, lane: int, unit_type: type[OpenVectorMac] = OpenVectorMac, **given: Any) -> None:
        self.lane = lane
        #: Known when it has been elaborated.
        self.element: Element
        self.beats: BeatsAndChunks
        parameters = VectorParameters(**given)
        layout = given_layout(parameters)
        ports = {"half": In(1), "given": In(layout), "total_given": In(layout), "watch": In(1)}
        super().__init__(ports | {"noise": In(data.ArrayLayout(layout, parameters.lanes))}, unit_type, **given)

    def more(self, m: Module, opened: OpenedVector, model: BeatsAndChunks) -> More:
        """Return the conditions on the element."""
        for memory in (*opened.words, *opened.low_ends, *opened.classes, *opened.kept_operands):
            m.d.comb += [row.addr.eq(place) for place, row in enumerate(memory.rows)]
        element = self.element = Element(m, self, opened, model)
        self.beats = model
        _lanes(m, self, element)
        contents = [Contents(m, element, is_class=is_class) for is_class in (False, True)]
        leaves = self.o.valid & self.o.ready
        delivery = Delivery(m, element, self.watch, self.o.payload, leaves)
        conditions = [
            *agreement(element),
            *held_operands(element),
            *waiting_promotions(element),
            *totals(m, element),
            *(condition for each in contents for condition in each.conditions),
            *delivery.conditions,
        ]
        claims = [*issue(element), *(claim for each in contents for claim in each.claims)]
        return More(conditions, [*claims, *delivery.claims], element.is_legal)


def _lanes(m: Module, top: ValuesVector, element: Element) -> None:
    """Let the lanes give the results in the records of their operations, and anything otherwise."""
    records, packed = element.records, element.opened.answered
    low_bits = element.parameters.formats.low_fraction_bits
    for at, lane in enumerate(element.opened.lanes):
        noise = top.noise[at]

        def gives(record: Record, name: str, at: int = at, noise: Any = noise) -> Value:
            its = record.is_step & record.wide if at == element.lane & ~1 else C(0, 1)
            if at == element.lane:
                its |= record.is_step & ~record.wide
            return Mux(its, Cat(record.fields.given[name]), Cat(noise[name]))

        below = low_bits if at % 2 else 0
        code = gives(element.delivered, "code")
        m.d.comb += [
            lane.number.eq(gives(records[-2], "number")[below:]),
            lane.result.eq(gives(records[-1], "number")[below:]),
            lane.result_class.eq(Cat(gives(records[-1], "its_class"), gives(records[-1], "flags"))),
            lane.promoted.eq(gives(records[-1], "promoted")),
            lane.given("code").eq(Mux(packed.wide, code, code[:WORD_WIDTH])),
        ]


def values_component(
    lane: int, lanes: int, stages: int, operands: tuple[FloatFormat, ...], **changes: Any
) -> ValuesVector:
    """Return a unit of some size, and the lane of its element."""
    return ValuesVector(lane, **size_parameters(lanes, stages, operands) | changes)


def value_proofs() -> Iterator[Proof]:
    """Yield the proofs of every lane, in units of three depths, two of them released; two engines for the smallest.

    A unit with two groups of lanes has a proof of its last lane only.
    """
    for size in (*SIZES, _TWO_GROUPS):
        for lane in range(size[0]) if size in SIZES else (size[0] - 1,):
            for engine in (BITWUZLA, Z3_CADICAL) if size == SIZES[0] else (BITWUZLA,):
                build = partial(_build, lane, *size)
                claim, title = f"vector/values/{size_slug(*size)}/lane_{lane}", f"{size_title(*size)}, lane {lane}"
                yield Proof(claim, "vector: values", title, _MEANS, engine, build, timeout=1800)


def _build(lane: int, lanes: int, stages: int, operands: tuple[FloatFormat, ...], folder: Path) -> str:
    return induction(values_component(lane, lanes, stages, operands), folder)
