"""The two streams of a unit as the testbench sees them: field layouts and queues of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.fields import Fields

__all__ = ["ALWAYS_LAST", "Port"]

#: The field of answers that each form a packet: always 1.
ALWAYS_LAST = "always_last"


@dataclass(frozen=True)
class Port:
    """Layouts of inputs and outputs.

    Parameters
    ----------
    request, answer : Fields
    chunk_bits : int
        Bits of the port ``chunk``; 0 without one.
    counters : str
        Access to the counters: ``ports`` (these are ``counts`` and ``clear_counts``), ``bus``, or empty for none.
    axi_stream : mapping of str to int
        The signals that carry payloads behind AXI4-Stream ports, lowest bits first, and their bits: ``s_axis_...`` the
        request, ``m_axis_...`` the answer. Empty for the streams ``i`` and ``o``.
    """

    request: Fields
    answer: Fields
    chunk_bits: int = 0
    counters: str = ""
    axi_stream: Mapping[str, int] = field(default_factory=dict)

    def queue_of(self, answers: ArrayLike) -> NDArray[Any]:
        """Return the queue in which each answer must keep its place.

        Results of one register keep their order; results of different registers may overtake each other. A refused
        product waits for nothing, so refusals may overtake results and have separate queues.
        """
        is_refusal = (self.answer.get(answers, "error") != 0).astype(np.int64)
        return self.answer.get(answers, "register").astype(np.int64) * 2 + is_refusal

    def as_dict(self) -> dict[str, Any]:
        """Return the input of `from_dict`, for JSON."""
        return asdict(self) | {"request": self.request.widths, "answer": self.answer.widths}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Port:
        """Return the port that `as_dict` described."""
        return cls(**given | {name: Fields(given[name]) for name in ("request", "answer")})
