"""The parameters of a multiply-accumulate unit, checked when it is constructed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from golden.formats import CBFLOAT16, FP32, FloatFormat
from golden.reduction import LEVELS, Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, SUBNORMALS, Rounding
from hdl.cores.multiplier import MULTIPLIERS
from hdl.cores.step_formats import StepFormats
from hdl.definitions import (
    Choice,
    Formats,
    Levels,
    PowerOfTwo,
    RandomBits,
    Roundings,
    Stages,
    Subnormals,
    Switch,
    Whole,
)
from hdl.mac.inner import OPERAND, Inner
from hdl.parameters import Parameters

__all__ = ["DEPTHS", "RECOMMENDED_DEPTH", "STEPS", "WORD_WIDTH", "MacParameters"]

#: Bits of a register; an fp32 accumulator takes an even-aligned pair.
WORD_WIDTH = 16

#: Possible positions of register ranks: behind the beat, on the way from the control to several lanes, behind the
#: selection of a beat over a promotion, and behind the steps of `hdl.cores.fused_step`. The accumulator is read at
#: ``read``, and the result is behind ``round``. ``pack`` lies between the result and its code in the queue.
STEPS = (
    "input",
    "arrive",
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
_LOOP = STEPS[STEPS.index("read") : STEPS.index("round") + 1]

#: The positions used, for each number of ranks.
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
    11: tuple(step for step in STEPS if step not in ("arrive", "issue", "pack")),
    12: tuple(step for step in STEPS if step not in ("arrive", "pack")),
    13: tuple(step for step in STEPS if step != "arrive"),
}
#: Every depth. Units, proofs and tests of every depth are made from this.
DEPTHS = tuple(_RANKS)
for _stages, (_depth, _ranks) in enumerate(_RANKS.items(), start=1):
    if not _stages == _depth == len(set(_ranks) & set(STEPS)):
        raise ValueError(f"_RANKS: got {_ranks} for {_depth}, must be {_stages} of {', '.join(STEPS)} for {_stages}")

#: The depth with the highest clock frequency.
RECOMMENDED_DEPTH = 13


@dataclass(frozen=True, kw_only=True)
class MacParameters(Parameters):
    """Parameters of `hdl.MultiplyAccumulate`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    operands: Annotated[
        Sequence[FloatFormat], Formats("operand formats", WORD_WIDTH, note="A product chooses one by its index.")
    ] = (CBFLOAT16,)
    inner: Annotated[
        FloatFormat | Literal["operand"] | None,
        Inner(
            "format that operands are widened to",
            WORD_WIDTH,
            note="Levels 1 and 2 reduce in it where they say the operand format. Widening is exact and takes a cycle.",
            is_rare=True,
        ),
    ] = None
    levels: Annotated[Sequence[int], Levels("precision levels", note="A product chooses one.")] = LEVELS
    registers: Annotated[
        int, PowerOfTwo("16-bit accumulators", 2, note="fp32 (levels 0 and 1) takes an even-aligned pair.")
    ] = 16
    stages: Annotated[
        int,
        Stages(
            "register ranks ahead of the queue of results",
            DEPTHS[-1],
            str(RECOMMENDED_DEPTH),
        ),
    ] = None  # type: ignore[assignment]  # None only between the call and the check
    chunk_bits: Annotated[int, Whole("bits of the chunk length", 1, 32)] = 16
    flags: Annotated[bool, Switch("exception flags", note="Without them the output has no field ``flags``.")] = True
    counters: Annotated[
        bool,
        Switch(
            "counters of steps, flags and lost addends",
            note="They add the output ``counts`` and the input ``clear_counts``.",
            is_rare=True,
        ),
    ] = False
    multiplier: Annotated[
        str,
        Choice(
            "multiplier, any target's or the primitive of an FPGA's family with its registers",
            MULTIPLIERS,
            note="With the ECP5's, additions and copies of registers are primitives, too.",
        ),
    ] = "generic"
    roundings: Annotated[
        Sequence[Rounding | str],
        Roundings(
            "rounding modes",
            note="A single one is fixed; of several, each product names its own in the field ``rounding``.",
            is_rare=True,
        ),
    ] = (Rounding.NEAREST_EVEN,)
    random_bits: RandomBits = DEFAULT_RANDOM_BITS
    subnormals: Subnormals = SUBNORMALS[0]

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.formats  # raises an error for an unsupported format
        inner = self.widened
        if self.formats.flushes and inner is not None:
            for fmt in self.operands:
                if fmt.emin < inner.emin:
                    raise ValueError(
                        f"inner: got {inner} for {fmt} with subnormals 'flush', must have a smallest normal number "
                        f"of at most 2^{fmt.emin}: a normal operand would become a subnormal, and a zero"
                    )

    @property
    def recommended_stages(self) -> int:
        """The default depth, which gives the highest clock frequency."""
        return RECOMMENDED_DEPTH

    @property
    def widened(self) -> FloatFormat | None:
        """The format that operands are widened to; None if a step takes them unchanged."""
        return self.inner if isinstance(self.inner, FloatFormat) else None

    @property
    def core(self) -> Self:
        """The parameters behind the widening of operands, with the inner format as the only operand format."""
        return replace(self, operands=(self.widened,), inner=OPERAND) if self.widened else self

    @property
    def code_width(self) -> int:
        """Bits of the widest operand at the input."""
        return max(fmt.width for fmt in self.operands)

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
        """Accumulator formats: the operand formats with their indices (levels 1 and 2), then fp32 (levels 0 and 1)."""
        return (*(self._multiplied if self.has_chunks else ()), *((FP32,) if self.has_fp32 else ()))

    @property
    def _multiplied(self) -> tuple[FloatFormat, ...]:
        """The formats of the step's operands."""
        return (self.widened,) if self.widened else tuple(self.operands)

    @property
    def formats(self) -> StepFormats:
        """The formats of the fused step."""
        modes: tuple[Rounding, ...] = self.roundings  # type: ignore[assignment]  # checked
        return StepFormats(self._multiplied, self.accumulators, modes, self.random_bits, self.subnormals == "flush")

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """What the unit computes, by level and operand format; a chunk of 32 and, of several modes, to nearest even."""
        mode: Any = self.roundings[0] if len(self.roundings) == 1 else Rounding.NEAREST_EVEN
        return tuple(
            replace(
                Reduction.for_level(level, fmt, inner=self.widened),
                operand=fmt,
                rounding=mode,
                subnormals=self.subnormals,
            )
            for level in self.levels
            for fmt in self.operands
        )

    @property
    def register_width(self) -> int:
        """Bits of a register's index."""
        return self.registers.bit_length() - 1

    @property
    def ranks(self) -> tuple[str, ...]:
        """The steps followed by a register rank."""
        return _RANKS[self.stages]

    @property
    def has_input_rank(self) -> bool:
        """Whether a register holds the beat before its issue."""
        return "input" in self.ranks

    @property
    def operation_ranks(self) -> tuple[str, ...]:
        """The ranks from the issue of an operation to its result."""
        return tuple(step for step in self.ranks if step not in ("input", "pack"))

    @property
    def operand_delay(self) -> int:
        """Cycles from the issue of an operation until its operands leave the control."""
        return int("arrive" in self.ranks)

    @property
    def lane_ranks(self) -> tuple[str, ...]:
        """The ranks from the operands of an operation to its result."""
        return self.operation_ranks[self.operand_delay :]

    def position(self, step: str) -> int:
        """Return the number of ranks between an operation's issue and a step."""
        return sum(STEPS.index(rank) < STEPS.index(step) for rank in self.operation_ranks)

    @property
    def latency(self) -> int:
        """Cycles from a product to the result of its step in the queue; a promotion takes `stages` more at most."""
        return len(self.ranks) + 1 + bool(self.widened)

    @property
    def accumulate_latency(self) -> int:
        """Cycles until the same register can take its next product.

        The ranks from reading to writing the accumulator. Its class is written one cycle later, which costs a cycle
        unless it is also read later.
        """
        is_read_later = self.position("align") > self.position("read")
        return sum(step in _LOOP for step in self.ranks) + (not is_read_later)

    @property
    def reads_early(self) -> bool:
        """Whether the registers are read one rank ahead of ``read``; results that are not written yet pass by.

        The memory then has a whole cycle. The read address is known that early if chunks are counted in two cycles.
        """
        return "read" in self.ranks and "product" in self.ranks and self.position("product") >= 2

    @property
    def reading_position(self) -> int:
        """Number of ranks between an operation's issue and the reading of its accumulator from the registers."""
        return self.position("product" if self.reads_early else "read")

    @property
    def chunk_delay(self) -> int:
        """Cycles from the issue of a product until the facts about its chunk are known."""
        return 2 if self.reading_position >= 2 and self.accumulate_latency >= 3 else 0

    @property
    def results(self) -> int:
        """Depth of the queue of results: enough for one result in every cycle.

        A product is issued while two places are left, and takes one until the cycle after its result has left:
        `stages` + 3 places.
        """
        return 1 << (self.stages + 2).bit_length()
