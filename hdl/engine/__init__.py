"""One driver for the matrix engine: on a board behind a serial line or a memory map, or simulated."""

from hdl.engine.device import CommandFailed, EngineStuck
from hdl.engine.engine import Engine
from hdl.engine.transport import Region, Transport, TransportError

__all__ = ["CommandFailed", "Engine", "EngineStuck", "Region", "Transport", "TransportError"]
