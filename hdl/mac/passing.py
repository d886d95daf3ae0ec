# amaranth: UnusedElaboratable=no
"""Results that pass by the registers: their accumulator is read before it has been written.

::

    rank             read      behind it
    registers  ------+-> number ---+-> lane        in a unit that reads early
                     |             |
    result of the last rank -------'

`Passing` is about the first way, which a unit with several lanes does without, `passes_behind` about the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Module, Signal, Value

from hdl.cores.copies import copied
from hdl.mac.parameters import MacParameters

__all__ = ["Passing", "passes_behind"]


class Passing:
    """Determine when a lane reads the accumulator that the result behind the last rank is written to.

    Parameters
    ----------
    parameters : MacParameters

    Attributes
    ----------
    passed_by : Signal
        State that proofs refer to, in a unit that reads early: the operation behind the last rank writes the
        accumulator that is read.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        self.passed_by = Signal()

    def while_read(self, m: Module, at: Sequence[Any]) -> Value | None:
        """Return whether the result that is written now is the number that is read from the registers.

        None if it never is.

        Parameters
        ----------
        m : Module
        at : sequence of operation
            As issued and behind each rank.
        """
        position = self.parameters.reading_position
        if self.parameters.reads_early:
            passes = _is_next(at[position - 1], at[-2])
            m.d.comb += self.passed_by.eq(copied(m, "passes", passes, self.parameters.multiplier))
            return self.passed_by
        # Where number and class are read at once, neither is used while it is written.
        if len(at) - 1 - position == self.parameters.accumulate_latency:
            return _is_next(at[position], at[-1])
        return None


def passes_behind(parameters: MacParameters, at: Sequence[Any], ahead: int = 0) -> Value:
    """Return, in a unit that reads early, whether the next result replaces the number that is read now.

    With `ahead`, so many cycles before that; the facts about the reader's chunk must be known already.
    """
    position = parameters.reading_position - ahead
    return _is_next(at[position], at[-2 - ahead]) & ~at[position].fresh


def _is_next(reader: Any, writer: Any) -> Value:
    """Return whether one operation is to write the accumulator that another one reads."""
    return (reader.register == writer.register) & (reader.partial == writer.partial) & writer.writes
