"""The operation: control that travels through the pipeline with the data, one for all lanes."""

from __future__ import annotations

from amaranth.lib import data

from hdl.mac.operation import operation_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["vector_operation_layout"]


def vector_operation_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the layout of an operation: `hdl.mac.operation.operation_layout` with the field ``is_second``.

    ``register``
        The row to read and write. A promotion of the odd lanes to fp32 goes to the odd row.
    ``wide``
        The accumulators are fp32, one in each pair of lanes; 16-bit lanes are idle.
    ``is_second``
        The operation is the promotion of the odd lanes to fp32.
    """
    fields = {name: field.shape for name, field in operation_layout(parameters, parameters.lanes)}
    return data.StructLayout(fields | {"is_second": 1})
