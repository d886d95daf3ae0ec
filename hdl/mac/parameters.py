"""The parameters of a multiply-accumulate unit, checked when it is constructed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from golden.formats import CBFLOAT16, FP32, FloatFormat
from golden.reduction import LEVELS
from hdl.cores.multiplier import MULTIPLIERS
from hdl.cores.step_formats import StepFormats
from hdl.pipeline import check_flags, check_stages

__all__ = ["STEPS", "WORD_WIDTH", "MacParameters", "as_tuple"]

#: Bits of a register; an fp32 accumulator takes an even-aligned pair.
WORD_WIDTH = 16

#: Where register ranks may stand: behind the beat, behind its choice against a promotion, and behind the steps of
#: `hdl.cores.fused_step`. The accumulator is read at ``read``, the result stands behind ``round``. ``pack`` stands
#: between it and its code in the queue.
STEPS = (
    "input",
    "issue",
    "unpack",
    "operands",
    "product",
    "read",
    "compare",
    "shift",
    "align",
    "add",
    "normalise",
    "round",
    "pack",
)
_LOOP = STEPS[5:12]

#: Which ranks there are, for each number of ranks.
_RANKS = {
    1: ("round",),
    2: ("product", "round"),
    3: ("product", "align", "round"),
    4: ("product", "shift", "add", "round"),
    5: ("unpack", "product", "shift", "add", "round"),
    6: ("unpack", "product", "compare", "align", "add", "round"),
    7: ("unpack", "product", "read", "shift", "align", "add", "round"),
    8: ("unpack", "operands", "product", "compare", "align", "add", "normalise", "round"),
    9: ("input", "unpack", "operands", "product", "compare", "align", "add", "normalise", "round"),
    10: ("input", "unpack", "operands", "product", "read", "compare", "align", "add", "normalise", "round"),
    11: tuple(step for step in STEPS if step not in ("issue", "pack")),
    12: STEPS[:12],
    13: STEPS,
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
        Register ranks ahead of the queue of results, 1 to 13; unless given, 11 for one operand format and 13 for more.
    chunk_bits : int
        Bits of the chunk length, 1 to 32.
    flags : bool
        Whether flags are computed.
    multiplier : str
        One of `hdl.cores.multiplier.MULTIPLIERS`.

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
    multiplier: str = "generic"

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        check_flags(self.flags)
        settle("operands", self._checked_operands())
        settle("levels", self._checked_levels())
        settle("stages", check_stages(self.stages, max(_RANKS), 11 if len(self.operands) == 1 else 13))
        if not isinstance(self.multiplier, str) or self.multiplier not in MULTIPLIERS:
            raise ValueError(f"multiplier: got {self.multiplier!r}, must be one of {', '.join(MULTIPLIERS)}")
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
        """The steps behind which a register rank stands."""
        return _RANKS[self.stages]

    @property
    def has_input_rank(self) -> bool:
        """Whether a beat is held before it is issued."""
        return "input" in self.ranks

    @property
    def operation_ranks(self) -> tuple[str, ...]:
        """The ranks behind the issue of an operation, up to its result."""
        return tuple(step for step in self.ranks if step not in ("input", "pack"))

    def position(self, step: str) -> int:
        """Return how many ranks behind its issue an operation is when it comes to a step."""
        return sum(STEPS.index(rank) < STEPS.index(step) for rank in self.operation_ranks)

    @property
    def latency(self) -> int:
        """Cycles from a product to the result of its step in the queue; a promotion takes `stages` more at most."""
        return self.stages + 1

    @property
    def accumulate_latency(self) -> int:
        """Cycles after which the same register takes its next product.

        The ranks from reading to writing the accumulator; its class is written one cycle later, which costs a cycle
        unless it is read later, too.
        """
        is_read_later = self.position("align") > self.position("read")
        return sum(step in _LOOP for step in self.ranks) + (not is_read_later)

    @property
    def reads_early(self) -> bool:
        """Whether the registers are read one rank ahead of ``read``, and a result that is just being written passed by.

        The memory then has a cycle of its own. What is to be read is known that early if chunks are counted in two.
        """
        return "read" in self.ranks and "product" in self.ranks and self.position("product") >= 2

    @property
    def reading_position(self) -> int:
        """How many ranks behind its issue an operation is when its accumulator is read from the registers."""
        return self.position("product" if self.reads_early else "read")

    @property
    def chunk_delay(self) -> int:
        """Cycles from the issue of a product until it is known whether it starts or ends a chunk."""
        return 2 if self.reading_position >= 2 and self.accumulate_latency >= 3 else 0

    @property
    def results(self) -> int:
        """Results that the queue holds: enough for one in every cycle.

        A place is taken from the issue of the product until two cycles after the result has left: `stages` + 3 cycles.
        """
        return 1 << (self.stages + 2).bit_length()


def as_tuple(name: str, given: Any, kind: type) -> tuple[Any, ...]:
    """Accept one thing or several."""
    if isinstance(given, kind):
        return (given,)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{name}: got {given!r}, must be a sequence of {kind.__name__}")
    return tuple(given)
