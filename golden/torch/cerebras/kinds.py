"""The kinds of backend that a script may name, and the options that each takes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum, auto

__all__ = ["OPTIONS", "BackendType", "check_names"]


class BackendType(Enum):
    """CPU, GPU or CSX, as a script names it; all three compute the same bits here."""

    CPU = auto()
    GPU = auto()
    CSX = auto()

    @property
    def is_cpu(self) -> bool:
        """Whether it is CPU."""
        return self is BackendType.CPU

    @property
    def is_gpu(self) -> bool:
        """Whether it is GPU."""
        return self is BackendType.GPU

    @property
    def is_csx(self) -> bool:
        """Whether it is CSX."""
        return self is BackendType.CSX

    @staticmethod
    def from_str(backend_type: str) -> BackendType:
        """Return the kind of that name, in upper or lower case; TypeError or ValueError if there is none."""
        if not isinstance(backend_type, str):
            raise TypeError(f"backend_type: got {backend_type!r}, must be 'CPU', 'GPU' or 'CSX'")
        try:
            return BackendType[backend_type.upper()]
        except KeyError:
            raise ValueError(f"backend_type: got {backend_type!r}, must be 'CPU', 'GPU' or 'CSX'") from None


#: Kind -> the options that its backend takes beside `artifact_dir`.
OPTIONS = {
    BackendType.CPU: ("mixed_precision",),
    BackendType.GPU: ("enable_distributed", "main_process_id", "dist_backend", "init_method", "sync_batchnorm"),
    BackendType.CSX: (
        "compile_dir",
        "compile_only",
        "validate_only",
        "cluster_config",
        # of older releases
        "drop_data",
        "log_initialization",
        "max_checkpoints",
        "micro_batch_size",
        "retrace_every_iteration",
        "use_cs_grad_accum",
    ),
}


def check_names(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise TypeError, with the nearest known name, if a name is not among the known ones."""
    known = sorted(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise TypeError(
                f"{name}: {where} has no such parameter, must be one of {', '.join(known)}"
                + (f"; perhaps {near[0]} is meant" if near else "")
            )
