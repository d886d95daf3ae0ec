"""The parameters of a multiply-accumulate unit, checked when it is constructed."""

from __future__ import annotations

from dataclasses import dataclass

from golden.formats import CBFLOAT16, FP32, FloatFormat
from golden.reduction import LEVELS
from hdl.cores.step_formats import StepFormats
from hdl.pipeline import check_flags, check_stages

__all__ = ["STEPS", "WORD_WIDTH", "MacParameters"]

#: Bits of a register; an fp32 accumulator takes an even-aligned pair.
WORD_WIDTH = 16

#: The combinational cores of a step, in order. The accumulator is read at the third.
STEPS = ("unpack", "multiply", "compare", "align", "add", "count", "normalise", "round")
_LOOP = STEPS[2:]

#: Behind which cores the register ranks stand, for each number of ranks. The last one holds the result.
_RANKS = {
    1: ("round",),
    2: ("multiply", "round"),
    3: ("multiply", "align", "round"),
    4: ("multiply", "align", "add", "round"),
    5: ("multiply", "align", "add", "normalise", "round"),
    6: ("multiply", "compare", "align", "add", "normalise", "round"),
    7: ("multiply", "compare", "align", "add", "count", "normalise", "round"),
    8: STEPS,
}


@dataclass(frozen=True, kw_only=True)
class MacParameters:
    """Parameters of `hdl.MultiplyAccumulate`.

    Parameters
    ----------
    operands : tuple of FloatFormat
        Operand formats, at most 16 bits wide, chosen at run time by their index.
    levels : tuple of int
        Precision levels, of 0, 1 and 2, chosen at run time.
    registers : int
        Accumulators of 16 bits: a power of two, at least 2. An fp32 accumulator takes two.
    stages : int, optional
        Register ranks, 1 to 8; 8 unless given.
    chunk_bits : int
        Bits of the chunk length, 1 to 32.
    flags : bool
        Whether flags are computed.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    operands: tuple[FloatFormat, ...] = (CBFLOAT16,)
    levels: tuple[int, ...] = LEVELS
    registers: int = 16
    stages: int = None  # type: ignore[assignment]  # None only between the call and __post_init__
    chunk_bits: int = 16
    flags: bool = True

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        check_flags(self.flags)
        settle("operands", self._checked_operands())
        settle("levels", self._checked_levels())
        settle("stages", check_stages(self.stages, max(_RANKS), max(_RANKS)))
        for name in ("registers", "chunk_bits"):
            if not isinstance(getattr(self, name), int) or isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}: got {getattr(self, name)!r}, must be an int")
        if self.registers < 2 or self.registers & (self.registers - 1):
            raise ValueError(f"registers: got {self.registers}, must be a power of two of at least 2")
        if not 1 <= self.chunk_bits <= 32:
            raise ValueError(f"chunk_bits: got {self.chunk_bits}, must be from 1 to 32")

    def _checked_operands(self) -> tuple[FloatFormat, ...]:
        given = self.operands
        if not given:
            raise ValueError("operands: got none, must be at least one FloatFormat")
        for fmt in given:
            if not isinstance(fmt, FloatFormat):
                raise TypeError(f"operands: got {fmt!r}, must be golden.FloatFormats")
            if fmt.width > WORD_WIDTH:
                raise ValueError(f"operands: got {fmt} of {fmt.width} bits, must be at most {WORD_WIDTH} bits wide")
            if not fmt.has_one:
                raise ValueError(f"operands: got {fmt} with bias {fmt.bias}, must hold 1.0: promotions multiply by it")
        if len(set(given)) != len(given):
            raise ValueError(f"operands: got {', '.join(map(str, given))}, must be different formats")
        return given

    def _checked_levels(self) -> tuple[int, ...]:
        given = self.levels
        if any(isinstance(level, bool) or not isinstance(level, int) for level in given):
            raise TypeError(f"levels: got {given}, must be ints, some of {LEVELS}")
        if not given or not set(given) <= set(LEVELS) or len(set(given)) != len(given):
            raise ValueError(f"levels: got {given}, must be some of {LEVELS}, each once")
        return tuple(sorted(given))

    @property
    def has_fp32(self) -> bool:
        """Whether some level accumulates in fp32."""
        return 0 in self.levels or 1 in self.levels

    @property
    def has_chunks(self) -> bool:
        """Whether some level reduces chunks in the operand format."""
        return 1 in self.levels or 2 in self.levels

    @property
    def accumulators(self) -> tuple[FloatFormat, ...]:
        """Accumulator formats: the operand formats at their indices (levels 1 and 2), then fp32 (levels 0 and 1)."""
        return (self.operands if self.has_chunks else ()) + ((FP32,) if self.has_fp32 else ())

    @property
    def formats(self) -> StepFormats:
        """The formats of the fused step."""
        return StepFormats(self.operands, self.accumulators)

    @property
    def register_width(self) -> int:
        """Bits of a register's index."""
        return self.registers.bit_length() - 1

    @property
    def ranks(self) -> tuple[str, ...]:
        """The cores behind which a register rank stands."""
        return _RANKS[self.stages]

    @property
    def latency(self) -> int:
        """Cycles from a product to the result of its step; a promotion takes as many again."""
        return len(self.ranks)

    @property
    def accumulate_latency(self) -> int:
        """Cycles after which the same register takes its next product."""
        return sum(step in _LOOP for step in self.ranks)
