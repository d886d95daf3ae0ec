"""The operation: control that travels through the pipeline beside the data, one for all lanes."""

from __future__ import annotations

from amaranth.lib import data

from hdl.mac.operation import operation_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["vector_operation_layout"]


def vector_operation_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the fields of an operation: those of `hdl.mac.operation.operation_layout`, and one more.

    ``register``
        The row that it reads and writes. A promotion of the odd lanes to fp32 goes to the odd row.
    ``wide``
        The accumulators are fp32, one in each pair of lanes; the lanes that are 16-bit only have nothing to do.
    ``is_second``
        The promotion of the odd lanes to fp32.
    """
    fields = {name: field.shape for name, field in operation_layout(parameters, parameters.lanes)}
    return data.StructLayout(fields | {"is_second": 1})
