"""The parameters of a SIMD multiply-accumulate unit, checked when it is constructed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from hdl.definitions import Even, PowerOfTwo, Stages
from hdl.mac.parameters import DEPTHS, RECOMMENDED_DEPTH, MacParameters

__all__ = ["VectorParameters"]

_MOST_LANES = 1024  # far more than any device holds


@dataclass(frozen=True, kw_only=True)
class VectorParameters(MacParameters):
    """Parameters of `hdl.VectorMac`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    lanes: Annotated[
        int, Even("16-bit multiply-accumulates in a cycle", 2, _MOST_LANES, note="Half of the lanes can do fp32.")
    ] = 4
    registers: Annotated[
        int,
        PowerOfTwo(
            "rows of 16-bit accumulators, one in each lane",
            2,
            note="There must be `accumulate_latency` rows, twice as many with level 1, to keep the pipeline full.",
        ),
    ] = 16
    stages: Annotated[
        int,
        Stages(
            "register ranks ahead of the queue of results",
            DEPTHS[-1],
            str(RECOMMENDED_DEPTH),
        ),
    ] = None  # type: ignore[assignment]  # None only between the call and the check

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = self.accumulate_latency * (2 if self.has_pairs_of_rows else 1)
        least = max(2, 1 << (rows - 1).bit_length())
        if self.registers < least:
            raise ValueError(
                f"registers: got {self.registers}, must be at least {least} with {self.stages} stages: "
                f"{rows} registers in rotation keep the pipeline full; build more registers or fewer stages"
            )

    @property
    def ranks(self) -> tuple[str, ...]:
        """The steps followed by a register rank.

        Behind a rank ``input``, the operands take a cycle more to reach the lanes than the control needs to decide.
        """
        first, *others = super().ranks
        return ("input", "arrive", *others) if first == "input" else (first, *others)

    @property
    def has_pairs_of_rows(self) -> bool:
        """Whether totals may take two rows: an fp32 number for every lane (level 1)."""
        return 1 in self.levels

    @property
    def narrow(self) -> MacParameters:
        """The parameters of a 16-bit lane; its formats have the same indices."""
        return replace(self, levels=(2,))

    def of_lane(self, lane: int) -> MacParameters:
        """Return the parameters of a lane: odd lanes are 16-bit only."""
        return self.narrow if lane % 2 else self

    @property
    def promotion_latency(self) -> int:
        """Cycles from the end of a chunk's last product to the end of its promotion; the second one takes one more."""
        # Through the queue, into the rank behind it, and through the lanes.
        return len(self.operation_ranks) + 3

    @property
    def promotions(self) -> int:
        """Largest number of products of chunks in flight and waiting promotions.

        A power of two. A product is issued while two places are left. So no more than the cycles from the issue of a
        product to the issue of its promotion would cost throughput.
        """
        return 1 << self.promotion_latency.bit_length()

    @property
    def results(self) -> int:
        """Depth of the queue of results: enough if every product in the pipeline, and in its promotion, ends one."""
        return super().results * 2
