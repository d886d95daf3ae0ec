"""The operation: control that travels through the pipeline with the data of a step."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import select_width
from hdl.mac.chunks import chunk_facts_layout
from hdl.mac.parameters import MacParameters
from hdl.mac.ports import Error, rounding_fields

__all__ = ["Flight", "operation_layout"]


def operation_layout(parameters: MacParameters, lanes: int = 1) -> data.StructLayout:
    """Return the layout of an operation: one step in every lane, products or the promotions of chunks.

    ``register``, ``format``
        The fields of the product.
    ``accumulator_format``
        Index of the format of the accumulator and the result.
    ``wide``
        The accumulator is fp32, a pair of registers.
    ``is_product``
        The operation writes, and is not a promotion.
    ``partial``
        It is a product whose accumulator is the partial sum of a chunk, not the total.
    ``fresh``
        The accumulator is +0, regardless of the register.
    ``promote``
        The chunk ends here: the result comes back as the product ``partial * 1.0`` to be added to the total.
    ``fresh_total``, ``wide_total``
        ``fresh`` and ``wide`` of that promotion.
    ``last``
        The total after this operation, or after its promotion, leaves as a result.
    ``error``
        The product was refused; the operation changes nothing.
    ``writes``
        The operation is valid and not refused.
    ``rounding``, ``random``, ``random_promotion``
        `hdl.mac.ports.rounding_fields`, the random numbers of every lane.
    """
    return data.StructLayout(
        {
            "register": parameters.register_width,
            "format": select_width(len(parameters.operands)),
            "accumulator_format": select_width(len(parameters.accumulators)),
            "wide": 1,
            "is_product": 1,
            "partial": 1,
            "fresh": 1,
            "promote": 1,
            "fresh_total": 1,
            "wide_total": 1,
            "last": 1,
            "error": Error,
            "writes": 1,
            **rounding_fields(parameters, lanes),
        }
    )


class Flight(wiring.Component):
    """Carry operations along with their data, and add the facts about a product's chunk on the way.

    Parameters
    ----------
    parameters : MacParameters
    operation : data.StructLayout
        With the fields of `operation_layout`.

    Ports
    -----
    issued : operation, in
    facts : chunk_facts_layout, in
        Facts about the product `chunk_delay` ranks behind its issue.
    at : array of operation, out
        The operation as issued and behind each rank.
    """

    def __init__(self, parameters: MacParameters, operation: data.StructLayout) -> None:
        self.parameters, self._layout = parameters, operation
        ranks = len(parameters.operation_ranks)
        super().__init__(
            {"issued": In(operation), "facts": In(chunk_facts_layout()), "at": Out(operation).array(ranks + 1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout, parameters = self._layout, self.parameters
        current: Any = self.issued
        for position, there in enumerate(self.at):
            m.d.comb += there.eq(current)
            if parameters.has_chunks and position == parameters.chunk_delay:
                is_chunk, facts = current.partial, self.facts
                m.d.comb += [
                    there.fresh.eq(Mux(is_chunk, facts.starts, current.fresh)),
                    there.promote.eq(is_chunk & facts.ends),
                    there.fresh_total.eq(is_chunk & facts.is_first),
                ]
            if position + 1 < len(self.at):
                current = Signal(layout, name=f"operation_{position + 1}")
                m.d.sync += current.eq(there)
        return m
