"""One cocotb test: what is driven, when, and what must come back. Made before the simulation, read inside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.fields import Words, from_limbs, to_limbs

__all__ = ["Scenario"]

_ALWAYS = np.ones(1, np.bool_)


@dataclass
class Scenario:
    """Stimulus and expectations of one test.

    Parameters
    ----------
    name : str
    payloads : array of words
        What is driven, in this order.
    answers : array of words
        What must come back. Those of one queue (`Port.queue_of`) must come in this order.
    case : array of int
        For every answer, which row of `details` explains it.
    offers, takes : arrays of bool
        Whether the driver offers, and the monitor takes, in a cycle; repeated for as long as the test runs.
    chunks : array of int, optional
        Chunk length that goes with every payload.
    cycles : int
        Cycles from the first accepted payload to the last one, both counted; 0 if they do not matter.
    details : dict of arrays
        What a failure line needs to explain a case.
    coverage : dict of str to int
        How often each bin was met by these cases.
    """

    name: str
    payloads: Words
    answers: Words
    case: NDArray[Any]
    offers: NDArray[np.bool_] = field(default_factory=lambda: _ALWAYS)
    takes: NDArray[np.bool_] = field(default_factory=lambda: _ALWAYS)
    chunks: NDArray[Any] | None = None
    cycles: int = 0
    details: dict[str, NDArray[Any]] = field(default_factory=dict)
    coverage: dict[str, int] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write everything but the coverage into the folder."""
        arrays: dict[str, Any] = {
            "payloads": to_limbs(self.payloads),
            "answers": to_limbs(self.answers),
            "case": self.case,
            "offers": self.offers,
            "takes": self.takes,
            "cycles": np.asarray(self.cycles),
        }
        if self.chunks is not None:
            arrays["chunks"] = self.chunks
        details: dict[str, Any] = {f"detail_{key}": value for key, value in self.details.items()}
        np.savez(folder / f"{self.name}.npz", **arrays, **details)

    @classmethod
    def load(cls, folder: Path, name: str) -> Scenario:
        """Read what `save` wrote."""
        with np.load(folder / f"{name}.npz") as file:
            arrays = {key: file[key] for key in file.files}
        arrays |= {key: from_limbs(arrays[key]) for key in ("payloads", "answers")}
        details = {key.removeprefix("detail_"): arrays.pop(key) for key in list(arrays) if key.startswith("detail_")}
        return cls(name=name, details=details, **arrays | {"cycles": int(arrays["cycles"])})
