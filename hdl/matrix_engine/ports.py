"""The layouts and ports that the parts of a matrix engine share."""

from __future__ import annotations

from typing import Any

from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.registers import REGISTERS

__all__ = [
    "axi_notes",
    "axi_ports",
    "block_layout",
    "checked_layout",
    "command_layout",
    "line_layout",
    "slice_layout",
    "to_read_layout",
]

_ID_BITS = 1
_CHANNELS = {
    "aw": "address of a write", "ar": "address of a read", "w": "data of a write", "b": "answer to a write",
    "r": "data of a read",
}  # fmt: skip
_SIGNALS = {
    "id": "number of the transaction", "addr": "byte address", "len": "transfers of the burst, less one",
    "size": "binary logarithm of the bytes of a transfer", "burst": "1: addresses increase", "lock": "lock",
    "cache": "memory type", "prot": "protection", "qos": "quality of service", "data": "the data",
    "strb": "the bytes that are written", "last": "last transfer of the burst",
    "resp": "0: OKAY, 2: SLVERR, 3: DECERR", "valid": "the sender offers a transfer", "ready": "the receiver takes it",
}  # fmt: skip


def axi_notes() -> dict[str, str]:
    """Return what each signal of AXI4 and AXI4-Lite means, without prefix."""
    return {
        f"{channel}{signal}": f"{of}: {meaning}"
        for channel, of in _CHANNELS.items()
        for signal, meaning in _SIGNALS.items()
    }


def axi_ports(parameters: EngineParameters) -> dict[str, Any]:
    """Return the ports of the AXI4 manager, without prefix."""
    address = {
        "id": Out(_ID_BITS), "addr": Out(parameters.address_bits), "len": Out(8), "size": Out(3), "burst": Out(2),
        "lock": Out(1), "cache": Out(4), "prot": Out(3), "qos": Out(4), "valid": Out(1), "ready": In(1),
    }  # fmt: skip
    return {
        **{f"aw{name}": port for name, port in address.items()},
        "wdata": Out(parameters.bus_width),
        "wstrb": Out(parameters.bus_bytes),
        "wlast": Out(1),
        "wvalid": Out(1),
        "wready": In(1),
        "bid": In(_ID_BITS),
        "bresp": In(2),
        "bvalid": In(1),
        "bready": Out(1),
        **{f"ar{name}": port for name, port in address.items()},
        "rid": In(_ID_BITS),
        "rdata": In(parameters.bus_width),
        "rresp": In(2),
        "rlast": In(1),
        "rvalid": In(1),
        "rready": Out(1),
    }


def command_layout() -> data.StructLayout:
    """Return a command: the words of all registers that belong to it, fields by their names, and its tag."""
    fields: dict[str, Any] = {}
    for register in REGISTERS:
        if register.is_command:
            if len(register.fields) == 1:
                fields[register.name.lower()] = 32
            else:
                fields[register.name.lower()] = data.StructLayout(_padded(register))
    return data.StructLayout(fields | {"tag": 8})


def checked_layout(parameters: EngineParameters) -> data.StructLayout:
    """Return a command that was checked, with what follows from its options.

    ``error``
        An `EngineError`; 0 if the command can run.
    ``format``
        Index of the operand format.
    ``is_wide``
        The elements of D have 4 bytes.
    ``converts``
        Results are converted, from the format ``source`` (of FORMAT_CODES).
    ``is_void``
        There is nothing to do.
    """
    return data.StructLayout(
        {
            "command": command_layout(),
            "error": 8,
            "format": range(max(2, len(parameters.operands))),
            "is_wide": 1,
            "converts": 1,
            "source": 4,
            "is_void": 1,
        }
    )


def _padded(register: Any) -> dict[str, int]:
    """Return all bits of a register by name, those between its fields as ``unused``."""
    fields, at = {}, 0
    for each in sorted(register.fields, key=lambda each: each.low):
        if each.low > at:
            fields[f"unused_{at}"] = each.low - at
        fields[each.name] = each.width
        at = each.low + each.width
    if at < 32:
        fields[f"unused_{at}"] = 32 - at
    return fields


def line_layout(parameters: EngineParameters) -> data.StructLayout:
    """Return a line: elements that lie side by side in memory, a part of a stored row of A or B.

    ``address``
        Of its first element, in bytes.
    ``count``
        Elements; at least one.
    ``is_float32``
        4 bytes an element, otherwise 2.
    ``is_b``
        For the panel of B.
    ``half``
        The half of block RAM.
    ``is_across``
        The elements belong to different lanes and the same k; otherwise to one lane and consecutive k.
    ``index``
        Number of the line in its slice: k if ``is_across``, otherwise the row of the block (of B: its column).
    ``ends``
        It is the last line of its slice.
    ``is_c``
        It is a row of C, for the panel of B. If its elements have 4 bytes, `index` is odd for their upper halves and
        even for their lower ones: the row is read twice. Only with initial values.
    """
    return data.StructLayout(
        {
            "address": parameters.address_bits,
            "count": range(parameters.line_most + 1),
            "is_float32": 1,
            "is_b": 1,
            "half": 1,
            "is_across": 1,
            "index": range(parameters.line_most),
            "ends": 1,
            **({"is_c": 1} if parameters.initial else {}),
        }
    )


def to_read_layout(parameters: EngineParameters) -> data.StructLayout:
    """Return the layout of a line whose words are on their way, as the loader needs it.

    ``words``
        Words of the bus.
    ``line``
        The line.
    """
    return data.StructLayout({"words": 9, "line": line_layout(parameters)})


def slice_layout(parameters: EngineParameters) -> data.StructLayout:
    """Return a slice: up to `depth` products of all elements of a block.

    ``last_k``
        Its products, less one.
    ``first``, ``last``
        It is the first, or the last one of its block.
    ``is_empty``
        K is 0: one product of zeros stands for it.
    ``last_tile_row``, ``last_tile_column``
        Tiles of the block, less one.
    ``is_initial``
        It holds rows of C in place of products; `last_k` is the last row of a tile. Only with initial values.
    """
    return data.StructLayout(
        {
            "last_k": range(parameters.depth),
            "first": 1,
            "last": 1,
            "is_empty": 1,
            "last_tile_row": range(parameters.tile_rows),
            "last_tile_column": range(parameters.tile_columns),
            **({"is_initial": 1} if parameters.initial else {}),
        }
    )


def block_layout(parameters: EngineParameters) -> data.StructLayout:
    """Return a block of D.

    ``address``
        Of its first element, in bytes.
    ``rows``, ``columns``
        Its size in elements.
    """
    return data.StructLayout(
        {
            "address": parameters.address_bits,
            "rows": range(parameters.block_rows + 1),
            "columns": range(parameters.block_columns + 1),
        }
    )
