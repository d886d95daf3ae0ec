"""The matrix engine from Python: products of NumPy arrays, on a board or in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from numpy.typing import ArrayLike, NDArray

from golden.flags import Flag
from golden.formats import CBFLOAT16, FloatFormat, as_format
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import Rounding, as_rounding
from hdl.engine.arguments import Operands, as_chunk, as_level, as_matrices, as_switch, as_totals, is_among, result_shape
from hdl.engine.conversion import to_values
from hdl.engine.device import Device
from hdl.engine.mapped import Mapped
from hdl.engine.products import Product, converts, multiply
from hdl.engine.requests import RequestLike, obstacle_of, product_of
from hdl.engine.serial_line import SerialBridge, open_port
from hdl.engine.simulated import Simulation
from hdl.engine.transport import Region, Transport
from hdl.matrix_engine.matrix_engine import MatrixEngine

__all__ = ["Engine"]

_BAUD = 1_000_000
_PATIENCE = 10.0


class Engine:
    """A matrix engine behind a transport. It is a back end of `golden`, too.

    Parameters
    ----------
    transport : Transport
        How registers and memory are reached; `simulated`, `serial` and `mapped` make one.
    patience : float
        Seconds without progress after which a product is given up.

    Attributes
    ----------
    name : str
        ``"engine"``, the name of this back end in errors.
    flags : golden.Flag
        OR of the flags of all results of the last product, if the engine was built with flags.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.
    TransportError
        If no engine answers.

    Examples
    --------
    >>> import golden
    >>> from hdl.engine import Engine
    >>> engine = Engine.simulated(rows=2, columns=2)                       # doctest: +SKIP
    >>> engine.matmul(a, b, operand="cbfloat16", level=1)                  # doctest: +SKIP
    >>> golden.matmul(a, b, operand="cbfloat16", backend=engine)           # doctest: +SKIP
    """

    name = "engine"

    def __init__(self, transport: Transport, *, patience: float = _PATIENCE) -> None:
        if isinstance(transport, str | Path):
            raise TypeError(f"transport: got {transport!r}; Engine.serial and Engine.mapped take a name")
        self._transport = transport
        self._device = Device(transport, patience)
        self._lock = Lock()  # registers and memory hold one product
        self.flags = Flag(0)

    @classmethod
    def simulated(
        cls,
        rows: int = 4,
        columns: int = 4,
        operands: Sequence[FloatFormat | str] | FloatFormat | str = (CBFLOAT16,),
        levels: Sequence[int] = (0, 1, 2),
        latency: int = 20,
        memory: int = 1 << 26,
        patience: float = _PATIENCE,
        **parameters: Any,
    ) -> Engine:
        """Simulate an engine. The first time, compiling it takes a quarter of a minute for 4 x 4 lanes.

        Parameters
        ----------
        rows, columns, operands, levels, **parameters
            Of `hdl.MatrixEngine`; formats may be given by name.
        latency : int
            Cycles from a request of the engine to the first answer of its memory.
        memory : int
            Bytes of memory.
        patience : float
            As of the class.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong.
        RuntimeError
            If there is no C++ compiler, or it fails.
        """
        if not isinstance(latency, int) or isinstance(latency, bool) or not 0 <= latency <= _MOST_LATENCY:
            raise ValueError(f"latency: got {latency!r}, must be an int from 0 to {_MOST_LATENCY}")
        if not isinstance(memory, int) or isinstance(memory, bool) or memory < _LEAST_MEMORY:
            raise ValueError(f"memory: got {memory!r}, must be an int of at least {_LEAST_MEMORY}")
        several = [operands] if isinstance(operands, FloatFormat | str) else operands
        formats = tuple(as_format(each, "operands") for each in several)
        unit = MatrixEngine(rows=rows, columns=columns, operands=formats, levels=levels, **parameters)
        return cls._over(Simulation(unit, latency=latency, memory=memory), patience)

    @classmethod
    def serial(cls, port: str, *, baud: int = _BAUD, patience: float = _PATIENCE) -> Engine:
        """Reach an engine over a UART bridge (`hdl.engine.frames`); needs pyserial, the extra ``serial``.

        Parameters
        ----------
        port : str
            Name of the port, such as ``/dev/ttyUSB0``.
        baud : int
            Bits a second on the line, at least 1.
        patience : float
            As of the class.

        Raises
        ------
        ModuleNotFoundError
            Without pyserial.
        TypeError, ValueError
            If `port` is no name, or `baud` no int of at least 1.
        TransportError
            If the port cannot be opened, somebody else has it open, or nothing answers there.
        """
        return cls._over(SerialBridge(open_port(port, baud), port), patience)

    @classmethod
    def mapped(
        cls,
        path: str | Path,
        *,
        offset: int = 0,
        memory: tuple[int, int] = (0, 1 << 20),
        memory_path: str | Path | None = None,
        memory_offset: int | None = None,
        patience: float = _PATIENCE,
    ) -> Engine:
        """Reach an engine through a file that is mapped into memory: ``/dev/mem``, a UIO device, a PCIe BAR.

        Parameters
        ----------
        path : str or Path
            The file with the registers.
        offset : int
            Where they begin in it.
        memory : tuple of int
            Address and size in bytes of memory that nobody else uses, as the engine sees it. The processor must see it
            without a cache, or with one that is coherent.
        memory_path : str or Path, optional
            The file with that memory; `path` unless given.
        memory_offset : int, optional
            Where it begins in that file; at the engine's own address unless given, as in ``/dev/mem``.
        patience : float
            As of the class.

        Raises
        ------
        TypeError, ValueError
            If `offset` is not a multiple of 4, `memory` or `memory_offset` is out of range, or the memory overlaps the
            registers.
        TransportError
            If a file cannot be mapped, or no engine answers.
        """
        if not isinstance(memory, Sequence) or len(memory) != 2:
            raise TypeError(f"memory: got {memory!r}, must be an address and a number of bytes")
        region = Region(*memory)
        transport = Mapped(path, memory=region, offset=offset, memory_path=memory_path, memory_offset=memory_offset)
        return cls._over(transport, patience)

    @classmethod
    def _over(cls, transport: Transport, patience: float) -> Engine:
        try:
            return cls(transport, patience=patience)
        except BaseException:  # whoever tries again finds the port free
            transport.close()
            raise

    def matmul(
        self,
        a: ArrayLike,
        b: ArrayLike,
        *,
        operand: FloatFormat | str,
        level: int = 1,
        chunk: int | None = DEFAULT_CHUNK,
        initial: ArrayLike | None = None,
        out: FloatFormat | str | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
        rounding: Rounding | str = Rounding.NEAREST_EVEN,
    ) -> NDArray[Any]:
        """Matrix product ``(..., M, K) @ (..., K, N)``, with the bits of `golden.matmul`.

        Parameters
        ----------
        a, b : arrays
            Codes in `operand` (unsigned), or float32 values that are rounded to it, to nearest even. The leading axes
            broadcast.
        operand : FloatFormat or str
        level : int
            Precision level 0, 1 or 2.
        chunk : int or None
            Products in a chunk at levels 1 and 2; None is one chunk of any length.
        initial : array, optional
            Codes in the outer format from which the totals start, or float32 values; it broadcasts to the result.
        out : FloatFormat or str, optional
            Converts the result once more; the outer format unless given.
        transpose_a, transpose_b : bool
            The array holds (..., K, M), (..., N, K).
        rounding : Rounding or str
            Mode of every step and promotion.

        Returns
        -------
        codes : unsigned array of shape (..., M, N)
            In `out` or the outer format.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong, or the engine was not built for it.
        hdl.engine.CommandFailed
            If the engine refuses the product or a bus gives an error.
        hdl.engine.EngineStuck
            If it makes no progress.
        hdl.engine.TransportError
            If the connection fails.
        """
        features, fmt = self._device.features, as_format(operand, "operand")
        if not is_among(fmt, features.operands):
            allowed = ", ".join(features.operands)
            raise ValueError(f"operand: got {fmt}, must be one of {allowed}, as the engine is built")
        mode = as_rounding(rounding, "rounding")
        if mode not in features.roundings:
            allowed = ", ".join(map(str, features.roundings))
            raise ValueError(f"rounding: got {mode}, must be one of {allowed}, as the engine is built")
        level = as_level(level, features)
        outer = Reduction.for_level(level, fmt).outer
        given = Operands(
            as_matrices(a, fmt, "a", transposed=as_switch(transpose_a, "transpose_a")),
            as_matrices(b, fmt, "b", transposed=as_switch(transpose_b, "transpose_b")),
        )
        shape = result_shape(given)
        result = outer if out is None else as_format(out, "out")
        is_converted = converts(outer, None if out is None else result, initial, given.length)
        if is_converted and not is_among(result, features.results):
            allowed = ", ".join(dict.fromkeys((*(() if result == outer else (outer.name,)), *features.results)))
            raise ValueError(f"out: got {result}, must be one of {allowed}, as the engine is built")
        totals = None if initial is None else as_totals(initial, outer, shape, features)
        runs = as_chunk(chunk, given.length, level, features)
        product = Product(fmt, level, runs, mode, outer, result, is_converted)
        return self._multiplied(product, given, totals)

    def _multiplied(self, product: Product, given: Operands, totals: NDArray[Any] | None) -> NDArray[Any]:
        with self._lock:
            found, flags = multiply(self._device, product, given, totals)
            self.flags = Flag(flags)
        return found

    def obstacle(self, request: RequestLike) -> str | None:
        """Return the reason to refuse a request of `golden`, in words; None to serve it."""
        return obstacle_of(request, self._device.features)

    def compute(self, request: RequestLike) -> Any:
        """Return the answer to a request of `golden` without an obstacle."""
        product, given, totals, shape = product_of(request, self._device.features)
        codes = self._multiplied(product, given, totals).reshape(shape)
        return request.answer(to_values(codes, product.result) if request.as_values else codes)

    def info(self) -> dict[str, Any]:
        """Return the properties of the engine: lanes, formats, levels, limits, and its accumulation in RISC-V's words.

        Returns
        -------
        dict
            ``rows`` and ``columns`` of lanes, ``bus_width`` in bits, names of ``operands`` and ``results``, ``levels``,
            ``roundings``, ``float32_operands``, ``initial``, ``flags``, ``subnormals``, ``most_chunk``, ``most_size``,
            ``address_bits``, ``queue``, ``memory`` (address and bytes), ``transport``, and ``riscv``: G (products that
            are added before a rounding), psm (0: one sum, in the order of k), rnd (the modes).
        """
        features, memory = self._device.features, self._device.memory
        return {
            "rows": features.rows,
            "columns": features.columns,
            "bus_width": features.bus_width,
            "operands": features.operands,
            "results": features.results,
            "levels": features.levels,
            "roundings": tuple(map(str, features.roundings)),
            "float32_operands": features.has_float32,
            "initial": features.has_initial,
            "flags": features.has_flags,
            "subnormals": "flush" if features.flushes else "keep",
            "most_chunk": (1 << features.chunk_bits) - 1,
            "most_size": features.most,
            "address_bits": features.address_bits,
            "queue": features.queue,
            "memory": tuple(memory),
            "transport": self._transport.name,
            "riscv": {"G": 1, "psm": 0, "rnd": tuple(map(str, features.roundings))},
        }

    def counters(self) -> dict[str, Any]:
        """Return the engine's counters since they were cleared; each has 32 bits.

        Returns
        -------
        dict
            ``cycles`` in which a command ran, ``beats`` of the array, ``products`` (a beat has one in every lane, those
            beyond an edge included), and ``stalls``: cycles without a beat because operands were on their way
            (``load``) or the array was not ready (``array``), and cycles in which results waited for the bus
            (``store``).
        """
        value = self._device.value
        beats = value("PRODUCTS")
        return {
            "cycles": value("CYCLES"),
            "beats": beats,
            "products": beats * self._device.features.lanes,
            "stalls": {cause: value(f"STALLS_{cause.upper()}") for cause in ("load", "array", "store")},
        }

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._device.write("CONTROL", clear_counters=1)

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.close()


_MOST_LATENCY = 1 << 20
_LEAST_MEMORY = 1 << 12
