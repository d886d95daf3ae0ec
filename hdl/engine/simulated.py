"""The engine as machine code, with a memory on its bus."""

from __future__ import annotations

import ctypes
import threading
import time
from pathlib import Path
from typing import Any

from amaranth import Shape
from amaranth.back import rtlil
from amaranth.lib import wiring

from hdl.engine.transport import Region, TransportError, closed
from hdl.simulation.compiling import OPTIONS, cache_folder, headers, kept_translation, library, said_when_slow

__all__ = ["Simulation"]

_BENCH = Path(__file__).with_name("axi_bench.h")
#: Cycles after which a register's bus is taken for dead.
_ANSWER = 10_000
#: Cycles between two looks at the clock of the host: some tens of milliseconds.
_SLICE = 4096
#: Seconds after them in which another thread gets to the registers.
_TURN = 50e-6


class Simulation:
    """A matrix engine that is simulated, cycle by cycle.

    Compiling it takes a quarter of a minute for 4 x 4 lanes; the result is kept in the user's cache
    (`hdl.simulation.compiling.cache_folder`).

    Parameters
    ----------
    engine : hdl.MatrixEngine
    latency : int
        Cycles from a request of the engine to the first answer of its memory.
    memory : int
        Bytes of memory.
    base : int
        Its first address.
    outstanding : int
        Bursts in each direction that the memory accepts before it has served them.

    Raises
    ------
    RuntimeError
        If there is no C++ compiler, or it fails.
    """

    def __init__(
        self,
        engine: wiring.Component,
        *,
        latency: int = 20,
        memory: int = 1 << 26,
        base: int = 0,
        outstanding: int = 32,
    ) -> None:
        self.name, self.memory = f"simulation, memory with a latency of {latency} cycles", Region(base, memory)
        with said_when_slow("preparing the simulation of the engine; the first time, it is compiled"):
            self._code = ctypes.CDLL(str(_library(engine)))
        for function, result, arguments in (
            ("create", ctypes.c_void_p, (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint)),
            ("destroy", None, (ctypes.c_void_p,)),
            ("memory", ctypes.c_void_p, (ctypes.c_void_p,)),
            ("fault", ctypes.c_char_p, (ctypes.c_void_p,)),
            ("cycles", ctypes.c_uint64, (ctypes.c_void_p,)),
            ("bytes_read", ctypes.c_uint64, (ctypes.c_void_p,)),
            ("bytes_written", ctypes.c_uint64, (ctypes.c_void_p,)),
            ("read_register", ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint)),
            ("write_register", ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint)),
            ("run", ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint64)),
        ):
            each = getattr(self._code, function)
            each.restype, each.argtypes = result, arguments
        self._lock = threading.RLock()  # C++ runs without Python's lock
        self._bench: int | None = self._code.create(base, memory, latency, outstanding)
        if self._bench is None:
            raise MemoryError(f"memory: got {memory} bytes, which this machine does not give")
        self._bytes = (ctypes.c_uint8 * memory).from_address(self._code.memory(self._bench))

    @property
    def cycles(self) -> int:
        """Cycles since power-up."""
        return int(self._call("cycles"))

    @property
    def bytes_moved(self) -> tuple[int, int]:
        """Bytes that the engine has read from the memory, whole words of the bus, and bytes that it has written."""
        return int(self._call("bytes_read")), int(self._call("bytes_written"))

    def read(self, address: int) -> int:
        value = ctypes.c_uint32()
        self._check(self._call("read_register", address, ctypes.byref(value), _ANSWER), address)
        return value.value

    def write(self, address: int, value: int) -> None:
        self._check(self._call("write_register", address, value, _ANSWER), address)

    def read_memory(self, address: int, length: int) -> bytes:
        begin = address - self.memory.base
        with self._lock:
            self._open()
            return bytes(memoryview(self._bytes)[begin : begin + length])

    def write_memory(self, address: int, content: bytes | memoryview) -> None:
        begin = address - self.memory.base
        with self._lock:
            self._open()
            memoryview(self._bytes).cast("B")[begin : begin + len(content)] = content

    def wait(self, seconds: float) -> None:
        self._call("run", _SLICE)
        self._check(0, 0)
        time.sleep(_TURN)

    def close(self) -> None:
        with self._lock:
            if self._bench is not None:
                del self._bytes
                self._code.destroy(self._bench)
                self._bench = None

    def __del__(self) -> None:
        if getattr(self, "_bench", None) is not None:
            self.close()

    def _open(self) -> int:
        if self._bench is None:
            raise closed(self.name)
        return self._bench

    def _call(self, function: str, *arguments: Any) -> Any:
        with self._lock:
            return getattr(self._code, function)(self._open(), *arguments)

    def _check(self, response: int, address: int) -> None:
        fault = self._call("fault")
        if fault is not None:
            raise TransportError(f"the engine broke a rule of AXI4: {fault.decode()}")
        if response < 0:
            raise TransportError(f"register {address:#x}: no answer in {_ANSWER} cycles")
        if response:
            raise TransportError(f"register {address:#x}: the bus answered with error {response}")


def _library(engine: Any) -> Path:
    """Return the compiled bench of an engine."""
    ports = {"__".join(map(str, path)): member for path, member, _ in engine.signature.flatten(engine)}
    widths = {name: Shape.cast(member.shape).width for name, member in ports.items()}
    netlist = rtlil.convert(engine, name="top", emit_src=False)
    sizes = f"#define WORD_BYTES {widths['m_axi_wdata'] // 8}\n#define ADDRESS_BITS {widths['m_axi_araddr']}\n"
    source = kept_translation(netlist, cache_folder()) + sizes + _BENCH.read_text(encoding="utf-8")
    return library(source, cache_folder(), headers(), OPTIONS)
