"""Errors of the engine as exceptions."""

from __future__ import annotations

from hdl.matrix_engine.registers import EngineError

__all__ = ["CommandFailed", "EngineStuck"]

_CAUSES = {
    EngineError.FORMAT: "operand, out: the engine was not built for this format",
    EngineError.LEVEL: "level: the engine was not built for this level",
    EngineError.ROUNDING: "rounding: the engine was not built for this mode",
    EngineError.CHUNK: "chunk: the length has more bits than the engine takes",
    EngineError.SIZE: "a, b: a size has more bits than the engine takes",
    EngineError.INITIAL: "initial: the engine takes none",
    EngineError.ALIGNMENT: "an address or a stride is no multiple of its element size",
    EngineError.STRIDE: "rows or matrices of a batch overlap each other",
    EngineError.RANGE: "a matrix ends beyond the engine's addresses",
    EngineError.OVERLAP: "the result overlaps an operand",
    EngineError.READ: "the bus answered a read with an error: is the memory where the driver was told?",
    EngineError.WRITE: "the bus answered a write with an error: is the memory where the driver was told?",
    EngineError.ABORTED: "it was aborted",
}


class CommandFailed(RuntimeError):
    """The engine refused a product, or ended it early.

    Attributes
    ----------
    error : EngineError
        The code that the engine gave.
    """

    def __init__(self, error: int) -> None:
        known = error in set(EngineError)
        self.error: EngineError | int = EngineError(error) if known else error
        cause = _CAUSES.get(EngineError(error), "") if known else "a code that this driver does not know"
        name = EngineError(error).name if known else "unknown"
        super().__init__(f"the engine ended the product with error {error} ({name}): {cause}")


class EngineStuck(RuntimeError):
    """The engine makes no progress."""
