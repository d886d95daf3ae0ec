"""The parameters of an array of multiply-accumulate lanes, checked when it is constructed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding
from hdl.definitions import PowerOfTwo, Roundings, Switch, Whole
from hdl.mac.parameters import MacParameters

__all__ = ["GROUP", "PROMOTION_DELAY", "MatrixParameters", "PartialSums"]

#: Rows and columns of a group of lanes, which shares copies of its operands and its control.
GROUP = 4

#: Cycles from a partial sum at the end of a chain to its total: three ranks of the operand, one of the product, those
#: behind the steps from `read` to `pack`.
PROMOTION_DELAY = 12

_MOST = 64  # far more than any device holds
_LEAST_PLACES = 16  # a queue of fewer words is no smaller
_MOST_SHARING = 12  # lanes of a promotion unit, which takes a cycle for each: beats of the shortest usual chunk
_MOST_ROWS = 32  # of a promotion unit that serves a single column: beats of the longest usual chunk

#: The register ranks from the issue of an operation on. `arrive` is the way from the control to the operands. Behind
#: `normal` an operand is a normalised significand, behind `copies` each group of lanes has its own, behind `round` lies
#: a result, and behind `pack` its code.
_RANKS = (
    "arrive",
    "unpack",
    "normal",
    "copies",
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


@dataclass(frozen=True, kw_only=True)
class MatrixParameters(MacParameters):
    """Parameters of `hdl.MatrixMac`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    rows: Annotated[int, Whole("rows of lanes", 1, _MOST)] = 4
    columns: Annotated[int, Whole("columns of lanes", 1, _MOST)] = 4
    registers: Annotated[
        int,
        PowerOfTwo(
            "tiles: accumulators of each lane, of any level",
            2,
            note="`accumulate_latency` of them in rotation keep the pipeline full.",
        ),
    ] = 8
    roundings: Annotated[
        Sequence[Rounding | str],
        Roundings(
            "rounding modes",
            note="All but stochastic. A single one is fixed; of several, each beat names its own in ``rounding``.",
            is_rare=True,
        ),
    ] = (Rounding.NEAREST_EVEN,)
    initial: Annotated[
        bool,
        Switch(
            "initial values",
            note="They add the fields ``initial``, ``loads`` and ``row`` to a beat.",
            is_rare=True,
        ),
    ] = False
    # Without a definition: an array has no choice of these.
    stages: int = field(init=False, default=len(_RANKS) + 1)
    counters: bool = field(init=False, default=False)
    random_bits: int = field(init=False, default=DEFAULT_RANDOM_BITS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if Rounding.STOCHASTIC in self.roundings:
            raise ValueError(
                "roundings: got stochastic, must be other modes: an array has no random numbers for its lanes; "
                "use hdl.VectorMac"
            )
        if self.initial and any(fmt.precision < 3 for fmt in self.core.operands):
            raise ValueError(
                "initial: got True, must be False with operands of one fraction bit, which have no signalling NaN"
            )

    @property
    def ranks(self) -> tuple[str, ...]:
        """The steps followed by a register rank."""
        return ("input", *_RANKS)

    @property
    def operation_ranks(self) -> tuple[str, ...]:
        """The ranks from the issue of an operation to the code of its result."""
        return _RANKS

    @property
    def has_chains(self) -> bool:
        """Whether products or initial values may go into totals at once, not by promotions."""
        return 0 in self.levels or self.initial

    def position(self, step: str) -> int:
        """Return the number of ranks between an operation's issue and a step."""
        return _RANKS.index(step)

    def behind(self, step: str) -> int:
        """Return the number of ranks between an operation's issue and the end of a step."""
        return _RANKS.index(step) + 1

    @property
    def shares_promotions(self) -> bool:
        """Whether lanes send their partial sums to shared units, which keep the totals.

        A lane needs its totals itself if products or initial values go into them. It promotes to a total of the operand
        format with little more than the logic of a product.
        """
        return 1 in self.levels and not self.has_chains and self.rows <= _MOST_ROWS

    @property
    def lanes(self) -> MatrixParameters:
        """The parameters of the lanes and of their operands."""
        return PartialSums(**self.arguments()) if self.shares_promotions else self

    @property
    def promoted_elsewhere(self) -> bool:
        """Whether these are the parameters of lanes that only have partial sums."""
        return False

    @property
    def sharing_columns(self) -> int:
        """Columns of lanes that share a promotion unit."""
        fitting = [each for each in range(1, self.columns + 1) if self.columns % each == 0]
        return max(each for each in fitting if each == 1 or each * self.rows <= _MOST_SHARING)

    @property
    def latency(self) -> int:
        """Cycles from the last beat of a tile to its first row at level 0, or at any level of shared promotions."""
        # The rank of the beat; queue of tiles and the rank behind it; group, lane and chain; queue of rows.
        ranks = 1 + len(_RANKS) + 2 + 3 + 1 + bool(self.widened)
        # The promotion; the partial sums of a row follow one another; the rank that has collected their totals.
        return ranks + (PROMOTION_DELAY + self.sharing_columns if self.shares_promotions else 0)

    @property
    def accumulate_latency(self) -> int:
        """Cycles until the same tile can take its next beat: from reading the accumulators to having written them."""
        return self.behind("normalise") + 1 - self.position("product")

    @property
    def chunk_delay(self) -> int:
        """Cycles from the issue of a beat until the facts about its chunk are known."""
        return 2

    @property
    def normalises(self) -> bool:
        """Whether a partial sum may be a subnormal of a format that its total has normal numbers for."""
        return 1 in self.levels and not self.formats.flushes

    @property
    def returning_position(self) -> int:
        """Ranks between the issue of the product that ends a chunk and the issue of its promotion."""
        # Its result is there behind `round`, or two ranks later; the promotion takes it in front of `operands`.
        return self.behind("round") + 2 * self.normalises - self.position("operands")

    @property
    def zeros(self) -> tuple[int, int]:
        """Exponents of the factors `a` and `b` if they are zero: any product with them lies below all numbers."""
        greatest = max(fmt.exponent_field_max + 1 for fmt in self.formats.operands)
        bias = max(
            self.formats.product_bias(operand, to) + 1
            for operand in self.formats.operands
            for to in self.formats.accumulators
        )
        # Less two, so that a product of 0 is neither the larger addend nor one at the place of the smallest exponent.
        return -2 - max(greatest + bias, 0), -2 - greatest

    @property
    def places(self) -> int:
        """Depth of the queue of rows: rows of one tile leave while the next ones arrive."""
        return max(_LEAST_PLACES, 1 << (2 * self.rows - 1).bit_length())


class PartialSums(MatrixParameters):
    """Parameters of lanes that only have partial sums, while shared units keep the totals."""

    @property
    def has_chunks(self) -> bool:
        """Whether a lane promotes its partial sums itself."""
        return False

    @property
    def accumulators(self) -> tuple[FloatFormat, ...]:
        """The operand formats."""
        return self._multiplied

    @property
    def normalises(self) -> bool:
        """Whether a lane normalises its partial sums."""
        return False

    @property
    def promoted_elsewhere(self) -> bool:
        """Whether these are the parameters of lanes that only have partial sums."""
        return True
