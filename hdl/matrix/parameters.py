"""The parameters of an array of multiply-accumulate lanes, checked when it is constructed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from golden.rounding import DEFAULT_RANDOM_BITS, Rounding
from hdl.definitions import PowerOfTwo, Roundings, Whole
from hdl.mac.parameters import MacParameters

__all__ = ["MatrixParameters"]

#: Far more than any device holds.
_MOST = 64


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
    # Without a definition: an array has no choice of these.
    stages: int = field(init=False, default=11)
    counters: bool = field(init=False, default=False)
    random_bits: int = field(init=False, default=DEFAULT_RANDOM_BITS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if Rounding.STOCHASTIC in self.roundings:
            raise ValueError(
                "roundings: got stochastic, must be other modes: an array has no random numbers for its lanes; "
                "use hdl.VectorMac"
            )

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return self.rows * self.columns
