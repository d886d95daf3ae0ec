"""Reductions: the chunks and formats of a long sum, and the precision levels that name them (NUMERICS section 5)."""

from __future__ import annotations

from dataclasses import dataclass

from golden.formats import CBFLOAT16, FP32, FloatFormat

__all__ = ["DEFAULT_CHUNK", "LEVELS", "Reduction", "default_inner"]

#: The precision optimization levels.
LEVELS = (0, 1, 2)

#: Products in a chunk unless told otherwise (NUMERICS section 5).
DEFAULT_CHUNK = 32

# The kernels count products in 64 bits.
_LONGEST_CHUNK = 2**63 - 1


def default_inner(operand: FloatFormat) -> FloatFormat:
    """Return the inner format of an operand format unless one is given: its own, or cbfloat16 for 8 bits and fewer."""
    return CBFLOAT16 if operand.width <= 8 else operand


def _by_its_name(given: object) -> str:
    return f"; golden.format_named({given!r}) returns one by its name" if isinstance(given, str) else ""


@dataclass(frozen=True)
class Reduction:
    """A reduction: products are summed in `inner` within a chunk, chunks are summed in `outer`.

    Parameters
    ----------
    inner : FloatFormat
        Accumulator within a chunk; every chunk starts from +0.
    chunk : int or None
        Consecutive products in a chunk, at least 1; None means one chunk of any length.
    outer : FloatFormat
        Accumulator across chunks, and the format of the result.

    Raises
    ------
    TypeError
        If `inner` or `outer` is not a format, or `chunk` not an int.
    ValueError
        If `chunk` is below 1 or beyond 64 bits, `inner` or `outer` has no infinity, or `inner` has no 1.0, by which a
        partial sum is multiplied to join the total.
    """

    inner: FloatFormat
    chunk: int | None
    outer: FloatFormat

    def __post_init__(self) -> None:
        for argument in ("inner", "outer"):
            given = getattr(self, argument)
            if not isinstance(given, FloatFormat):
                raise TypeError(f"{argument}: got {given!r}, must be a FloatFormat{_by_its_name(given)}")
            if not given.has_inf:
                raise ValueError(
                    f"{argument}: got {given} (specials {given.specials!r}), must have specials 'ieee' to accumulate in"
                )
        if self.chunk is not None:
            if not isinstance(self.chunk, int) or isinstance(self.chunk, bool):
                raise TypeError(f"chunk: got {self.chunk!r}, must be an int of at least 1, or None for one chunk")
            if self.chunk < 1:
                raise ValueError(f"chunk: got {self.chunk}, must be at least 1, or None for one chunk of any length")
            if self.chunk > _LONGEST_CHUNK:
                raise ValueError("chunk: got an int beyond 2**63 - 1, must be at most that, or None for one chunk")

        if not self.inner.has_one:
            raise ValueError(f"inner: got {self.inner} with bias {self.inner.bias}, must have 1.0 as a normal value")

    @property
    def is_chain(self) -> bool:
        """Whether the total is itself the chain of fp32 steps, started from the initial value (level 0)."""
        return self.inner == self.outer == FP32 and self.chunk is None

    @classmethod
    def for_level(
        cls,
        level: int,
        operand: FloatFormat,
        *,
        chunk: int | None = DEFAULT_CHUNK,
        inner: FloatFormat | None = None,
    ) -> Reduction:
        """Return the reduction that a precision optimization level stands for.

        Parameters
        ----------
        level : int
            0: one chain of fp32 steps (`chunk` and `inner` have no part in it). 1: the inner format within a chunk,
            fp32 across chunks. 2: the inner format everywhere.
        operand : FloatFormat
            Format of the factors.
        chunk : int or None
            Products in a chunk, 32 unless given.
        inner : FloatFormat, optional
            The inner format: that of the operands unless given, cbfloat16 for operands of 8 bits and fewer.

        Raises
        ------
        TypeError
            If `operand` or `inner` is not a format, or `chunk` or `level` not an int.
        ValueError
            If `level` is not 0, 1 or 2, `chunk` is below 1, or the inner format has no infinity or no 1.0.

        Examples
        --------
        >>> from golden import BF16, FLOAT8_E4M3FN
        >>> plan = Reduction.for_level(1, FLOAT8_E4M3FN)
        >>> str(plan.inner), str(plan.outer)
        ('cbfloat16', 'float32')
        >>> str(Reduction.for_level(2, FLOAT8_E4M3FN, inner=BF16).outer)
        'bfloat16'
        """
        if not isinstance(level, int) or isinstance(level, bool):
            raise TypeError(f"level: got {level!r}, must be 0, 1 or 2")
        if level not in LEVELS:
            raise ValueError(
                f"level: got {level}, must be 0 (fp32), 1 (16 bits in a chunk, fp32 across) or 2 (16 bits)"
            )
        if not isinstance(operand, FloatFormat):
            raise TypeError(f"operand: got {operand!r}, must be a FloatFormat{_by_its_name(operand)}")
        if inner is None:
            inner = default_inner(operand)
        if level == 0:
            cls(FP32, chunk, FP32)  # for what it says of an unfit `chunk`
            return cls(FP32, None, FP32)
        return cls(inner, chunk, inner if level == 2 else FP32)
