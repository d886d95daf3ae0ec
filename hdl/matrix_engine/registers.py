"""The registers of `hdl.MatrixEngine` as plain data: RTL, drivers, C header and documents are made from this table.

The bus is AXI4-Lite with 32 data bits and `ADDRESS_BITS` address bits. Access is by whole words: a write with some of
the four byte strobes off, or to a register that cannot be written, changes nothing and is answered with SLVERR.
Registers without a name read as 0.

**Give a command**

1. Read ``STATUS`` until ``can_submit`` is 1.
2. Write ``M`` ... ``CHUNK``, in any order. The registers keep their values, so only those that differ from the last
   command need a write.
3. Write a tag of your choice to ``SUBMIT``. The engine copies all these registers into its queue. If the queue is
   full, the write is answered with SLVERR and nothing is queued.

Commands run in their order, one result for each. The queue holds `QUEUE_DEPTH` commands besides the one that runs.

**See it complete**

1. Wait for the output ``interrupt``, which is 1 while ``INTERRUPT.enable`` is 1 and a result waits; or read
   ``RESULT`` until ``valid`` is 1. With ``valid`` 0 all its fields are 0.
2. ``RESULT.error`` is an `EngineError`, ``RESULT.tag`` the tag of the command, ``RESULT.flags`` the OR of the flags
   of all results (`golden.Flag`). With ``error`` 0, all of D is in memory: the bus has answered every write.
3. Write any value to ``RESULT`` to remove this result. The next one, if any, then shows.

`RESULT_DEPTH` results can wait; further commands wait until one of them is removed.

A refused command has touched no memory. A command that ends with ``READ``, ``WRITE`` or ``ABORTED`` may have written
parts of D, and the rest of D is unchanged; the engine takes the next command.

**Stop**

- ``CONTROL.abort``: the running command and all in the queue end with ``ABORTED``, each with a result.
- ``CONTROL.reset``: they end without results. Results that wait, counters, command registers and ``INTERRUPT`` become
  0.

Both let the bus finish the transfers that it has begun; ``STATUS.busy`` is 1 until then. After an abort, go on
removing results meanwhile: each command that ends needs a place in ``RESULT``. Before ``busy`` is 0, submit nothing,
and after a reset write no register.

**Matrices.** A is M x K, B is K x N, C and D are M x N. Element (i, j) of a matrix stored by rows lies at ``address +
i * row stride + j * element size`` bytes, in little-endian order. With ``OPTIONS.a_transposed``, A is stored as its
transpose K x M, so that (i, k) lies at ``address + k * row stride + i * element size``; B likewise, as N x K. Matrix
number n of a batch lies n batch strides further on; a batch stride of 0 gives every product the same A, B or C.
Elements have 2 bytes in the 16-bit formats, 4 in float32. Addresses and strides are multiples of the element size.
With ``OPTIONS.initial``, totals start from C, which is in the outer format: float32 at levels 0 and 1, the operand
format at level 2, whatever D is converted to. A C of one row has no use for its row stride.

**Ports** of the component: ``aclk``, ``aresetn``, ``interrupt``; the subordinate ``s_axil_awaddr`` ...
``s_axil_rready`` (see `hdl.axi_lite`, here with `ADDRESS_BITS` address bits); the AXI4 manager ``m_axi_``:
``awid[0:0]``, ``awaddr``, ``awlen``, ``awsize``, ``awburst``, ``awlock``, ``awcache``, ``awprot``, ``awqos``,
``awvalid``, ``awready``; ``wdata``, ``wstrb``, ``wlast``, ``wvalid``, ``wready``; ``bid``, ``bresp``, ``bvalid``,
``bready``; ``arid``, ``araddr`` ... ``arready`` as for ``aw``; ``rid``, ``rdata``, ``rresp``, ``rlast``, ``rvalid``,
``rready``. ``m_axi_wdata`` and ``rdata`` have `bus_width` bits.

The module imports nothing of Amaranth.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "ADDRESS_BITS",
    "FORMAT_CODES",
    "IDENTITY",
    "QUEUE_DEPTH",
    "REGISTERS",
    "RESULT_DEPTH",
    "VERSION",
    "Access",
    "EngineError",
    "Field",
    "Initial",
    "Register",
    "register_named",
]

#: Bits of a byte address on the AXI4-Lite bus.
ADDRESS_BITS = 8
#: ``ID.identity``: "ME" in ASCII.
IDENTITY = 0x4D45
#: ``ID.version``: grows with every change that a driver can notice.
VERSION = 1
#: Commands that wait besides the one that runs.
QUEUE_DEPTH = 2
#: Results that wait to be removed.
RESULT_DEPTH = 4

#: The number of each format in ``FORMATS``, ``OPTIONS.format`` and ``OPTIONS.d_format``.
FORMAT_CODES: Mapping[str, int] = MappingProxyType(
    {"cbfloat16": 0, "float16": 1, "bfloat16": 2, "cb16": 3, "float32": 15}
)


class EngineError(enum.IntEnum):
    """How a command ended: ``RESULT.error``.

    Attributes
    ----------
    NONE
        D is in memory.
    FORMAT
        An operand format or a format of D that the engine was not built for, or float32 operands in an engine without
        their converters.
    LEVEL
        A level that the engine was not built for, or 3.
    ROUNDING
        A rounding mode that the engine was not built for.
    CHUNK
        A chunk length of more bits than ``LIMITS.chunk_bits``.
    SIZE
        M, N, K or the number of batches is 2^``LIMITS.size_bits`` or more.
    INITIAL
        ``OPTIONS.initial`` is 3, or not 0 in an engine without ``FEATURES.initial``.
    ALIGNMENT
        The address or a stride of a matrix that is used is no multiple of its element size. Strides without a use, as
        the row stride of a single row or the batch stride of a batch of one, may be any words.
    STRIDE
        Rows of D, or matrices of its batch, would overlap each other, or lie between each other in another way than all
        matrices within one row stride.
    RANGE
        A matrix does not end below 2^``LIMITS.address_bits``.
    OVERLAP
        The bytes from the first to the last element of D (of all its batches) overlap those of A, B or C.
    READ
        The bus answered a read with SLVERR or DECERR.
    WRITE
        The bus answered a write with SLVERR or DECERR.
    ABORTED
        ``CONTROL.abort`` ended it.
    """

    NONE = 0
    FORMAT = 1
    LEVEL = 2
    ROUNDING = 3
    CHUNK = 4
    SIZE = 5
    INITIAL = 6
    ALIGNMENT = 7
    STRIDE = 8
    RANGE = 9
    OVERLAP = 10
    READ = 16
    WRITE = 17
    ABORTED = 18


class Initial(enum.IntEnum):
    """The initial value of each sum: ``OPTIONS.initial``. C is in the outer format of the level.

    In an engine without ``FEATURES.initial``, only NONE.
    """

    NONE = 0
    #: C is an M x N matrix.
    MATRIX = 1
    #: C is one row of N elements, added to every row of the product.
    ROW = 2


class Access(enum.Enum):
    """Who may do what with a register."""

    #: Read only.
    READ = "ro"
    #: Read and write.
    READ_WRITE = "rw"
    #: A write does something; reads as 0.
    WRITE = "wo"
    #: Read; any write removes the first result.
    POP = "pop"


@dataclass(frozen=True)
class Field:
    """Some bits of a register.

    Parameters
    ----------
    name : str
    low : int
        Lowest bit.
    width : int
        Number of bits.
    description : str
    """

    name: str
    low: int
    width: int
    description: str

    @property
    def mask(self) -> int:
        """The field's bits within the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """A register of 32 bits.

    Parameters
    ----------
    name : str
    address : int
        In bytes.
    access : Access
    fields : tuple of Field
    description : str
    is_command : bool
        Whether ``SUBMIT`` copies it into the queue.
    reset : int or None
        Value after a reset; None if it depends on the engine's parameters or state.
    """

    name: str
    address: int
    access: Access
    fields: tuple[Field, ...]
    description: str
    is_command: bool = False
    reset: int | None = 0

    def field(self, name: str) -> Field:
        """Return a field by its name.

        Raises
        ------
        ValueError
            If the register has no such field.
        """
        for each in self.fields:
            if each.name == name:
                return each
        raise ValueError(f"name: got {name!r}, must be one of {', '.join(each.name for each in self.fields)}")

    def fields_of(self, word: int) -> dict[str, int]:
        """Return the values of all fields in a word of the register."""
        return {each.name: (word & each.mask) >> each.low for each in self.fields}

    def word(self, **values: int) -> int:
        """Return the word with these fields, all others 0.

        Raises
        ------
        ValueError
            If there is no such field, or if a value does not fit.
        """
        word = 0
        for name, value in values.items():
            each = self.field(name)
            if not 0 <= value < 1 << each.width:
                raise ValueError(f"{name}: got {value}, must fit {each.width} bits")
            word |= value << each.low
        return word


_WHOLE = 32


def _whole(name: str, address: int, description: str, access: Access = Access.READ_WRITE) -> Register:
    is_command = access is Access.READ_WRITE
    return Register(name, address, access, (Field("value", 0, _WHOLE, description),), description, is_command)


def _matrix(name: str, address: int, unless: str = "") -> tuple[Register, ...]:
    return (
        _whole(f"{name}_ADDRESS", address, f"byte address of {name}, low 32 bits{unless}"),
        _whole(f"{name}_ADDRESS_HIGH", address + 4, f"byte address of {name}, high 32 bits"),
        _whole(f"{name}_ROW_STRIDE", address + 8, f"bytes from one stored row of {name} to the next"),
        _whole(f"{name}_BATCH_STRIDE", address + 12, f"bytes from one {name} of a batch to the next"),
    )


#: Every register, by address.
REGISTERS: tuple[Register, ...] = (
    Register(
        "ID",
        0x00,
        Access.READ,
        (Field("version", 0, 16, "version of this table"), Field("identity", 16, 16, "0x4D45")),
        "what answers here",
        reset=IDENTITY << 16 | VERSION,
    ),
    Register(
        "SHAPE",
        0x04,
        Access.READ,
        (
            Field("rows", 0, 8, "rows of lanes"),
            Field("columns", 8, 8, "columns of lanes"),
            Field("tiles", 16, 8, "tiles in rotation"),
            Field("bus_bytes", 24, 8, "bytes of a word on the AXI4 bus"),
        ),
        "size of the array and of its bus",
        reset=None,
    ),
    Register(
        "FORMATS",
        0x08,
        Access.READ,
        (
            Field("operands", 0, 16, "bit n: operands in format n of FORMAT_CODES; bit 15: float32 operands, rounded"),
            Field("results", 16, 16, "bit n: results converted to format n; the outer format is always possible"),
        ),
        "formats that the engine was built for",
        reset=None,
    ),
    Register(
        "FEATURES",
        0x0C,
        Access.READ,
        (
            Field("levels", 0, 3, "bit n: precision level n"),
            Field("roundings", 8, 7, "bit n: rounding mode with code n (NUMERICS section 9)"),
            Field("initial", 16, 1, "1: C may be added"),
            Field("flags", 17, 1, "1: RESULT shows flags"),
            Field("subnormals_flush", 18, 1, "1: subnormals become zeros (NUMERICS section 12)"),
            Field("queue", 24, 4, "commands that wait besides the one that runs"),
            Field("results", 28, 4, "results that wait to be removed"),
        ),
        "what else the engine was built for",
        reset=None,
    ),
    Register(
        "LIMITS",
        0x10,
        Access.READ,
        (
            Field("chunk_bits", 0, 8, "bits of a chunk length"),
            Field("size_bits", 8, 8, "bits of M, N, K and of the number of batches"),
            Field("address_bits", 16, 8, "bits of a byte address in memory"),
        ),
        "limits on a command",
        reset=None,
    ),
    Register(
        "CONTROL",
        0x14,
        Access.WRITE,
        (
            Field("abort", 0, 1, "1: end all commands with ABORTED"),
            Field("reset", 1, 1, "1: end all commands without results, and clear all that can be cleared"),
            Field("clear_counters", 2, 1, "1: the counters restart from 0"),
        ),
        "stop, or clear the counters",
    ),
    Register(
        "INTERRUPT",
        0x18,
        Access.READ_WRITE,
        (
            Field("enable", 0, 1, "1: the output interrupt is 1 while a result waits"),
            Field("pending", 8, 1, "1: a result waits; read only"),
        ),
        "interrupt",
    ),
    Register(
        "STATUS",
        0x1C,
        Access.READ,
        (
            Field("busy", 0, 1, "1: a command runs or waits, or the bus is being drained"),
            Field("can_submit", 1, 1, "1: the queue has a place"),
            Field("queued", 8, 4, "commands in the queue"),
            Field("results", 12, 4, "results that wait"),
        ),
        "state of the queues",
        reset=0b10,
    ),
    Register(
        "RESULT",
        0x20,
        Access.POP,
        (
            Field("error", 0, 8, "an EngineError"),
            Field("tag", 8, 8, "tag of the command"),
            Field("flags", 16, 5, "OR of the flags of its results, as in golden.Flag"),
            Field("valid", 31, 1, "1: there is a result"),
        ),
        "the oldest result; any write removes it",
    ),
    _whole("CYCLES", 0x24, "cycles in which a command ran", Access.READ),
    _whole(
        "PRODUCTS",
        0x28,
        "beats of the array: each one product in every lane, those beyond an edge included",
        Access.READ,
    ),
    _whole("STALLS_LOAD", 0x2C, "cycles without a beat: operands were not in block RAM yet", Access.READ),
    _whole("STALLS_ARRAY", 0x30, "cycles without a beat: the array was not ready for one", Access.READ),
    _whole("STALLS_STORE", 0x34, "cycles in which a row of results waited for the bus", Access.READ),
    _whole("M", 0x40, "rows of A, C and D"),
    _whole("N", 0x44, "columns of B, C and D"),
    _whole("K", 0x48, "products of an element"),
    _whole("BATCHES", 0x4C, "number of products A B"),
    *_matrix("A", 0x50),
    *_matrix("B", 0x60),
    *_matrix("C", 0x70, "; unused without OPTIONS.initial"),
    *_matrix("D", 0x80),
    Register(
        "OPTIONS",
        0x90,
        Access.READ_WRITE,
        (
            Field("format", 0, 4, "operand format, of FORMAT_CODES: a 16-bit one"),
            Field("level", 4, 2, "precision level"),
            Field("rounding", 8, 3, "rounding mode of the steps and promotions"),
            Field("a_transposed", 12, 1, "1: A is stored as K x M"),
            Field("b_transposed", 13, 1, "1: B is stored as N x K"),
            Field("a_float32", 14, 1, "1: A is stored in float32, and rounded to the operand format, ties to even"),
            Field("b_float32", 15, 1, "1: B likewise"),
            Field("initial", 16, 2, "an Initial"),
            Field("d_converted", 20, 1, "1: D is converted from the outer format to d_format, ties to even"),
            Field("d_format", 24, 4, "format of D, of FORMAT_CODES, if d_converted is 1"),
        ),
        "options of a command",
        is_command=True,
    ),
    _whole("CHUNK", 0x94, "products in a chunk (levels 1 and 2); 0: one chunk of any length"),
    Register(
        "SUBMIT",
        0x98,
        Access.WRITE,
        (Field("tag", 0, 8, "shown with the result"),),
        "put the command into the queue",
    ),
)

_BY_NAME = {each.name: each for each in REGISTERS}


def register_named(name: str) -> Register:
    """Return a register by its name.

    Raises
    ------
    ValueError
        If there is no such register.
    """
    if name not in _BY_NAME:
        raise ValueError(f"name: got {name!r}, must be one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
