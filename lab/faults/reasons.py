"""Why faults survive: what is known of those that neither the regression nor a proof tells."""

from __future__ import annotations

from fnmatch import fnmatchcase

from lab.faults.fault import Fault

__all__ = ["REASONS", "reason_of"]

#: File, kind and words of faults, ``*`` for anything; and what there is to say of them. The first that fits counts.
REASONS: tuple[tuple[str, str, str, str], ...] = (
    ("pipeline.py", "reset", "*", "the resets in the stimulus of this unit miss it; those of other converters tell it"),
    (
        "pipeline.py",
        "constant",
        "shifted.*",
        "not decided: no register has differed in simulation, no proof has been asked",
    ),
)


def reason_of(fault: Fault) -> str:
    """Return what is known of a fault that survives, or nothing."""
    return next(
        (
            reason
            for file, kind, words, reason in REASONS
            if fnmatchcase(fault.file, file) and fnmatchcase(fault.kind, kind) and fnmatchcase(fault.what, words)
        ),
        "",
    )
