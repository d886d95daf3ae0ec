"""The variants of the kernels: their list, their names, and their macros for the compiler."""

from __future__ import annotations

from golden.cuda.scales import Steps
from golden.rounding import Rounding

__all__ = ["KINDS", "MACHINE", "WITH_NATIVE_BFLOAT16", "defines", "name_of", "oldest_architecture", "variants"]

#: Kinds of steps, in the order of `Kind` in variant.h.
KINDS = ("single", "scaled", "float16", "bfloat16", "generic", "none", "counted")

#: The kernel that follows the accumulators of other machines.
MACHINE = Steps(Rounding.NEAREST_EVEN, "machine", "none")

_IN_EVERY_MODE = (
    ("single", "none"),
    ("single", "single"),
    ("single", "scaled"),
    ("scaled", "single"),
    ("scaled", "scaled"),
    ("generic", "generic"),
    ("counted", "none"),
)
_NATIVE = (("float16", "single"), ("float16", "scaled"), ("bfloat16", "single"), ("bfloat16", "scaled"))
_OLDEST = 75

#: The oldest architecture with native fused steps in bfloat16.
WITH_NATIVE_BFLOAT16 = 80


def variants(architecture: int | None = None) -> list[Steps | None]:
    """Return the variants of an architecture, or of all; None stands for the kernels that every product shares."""
    steps = [Steps(mode, *kinds) for mode in Rounding for kinds in _IN_EVERY_MODE]
    steps += [Steps(Rounding.NEAREST_EVEN, *kinds) for kinds in _NATIVE]
    return [None, MACHINE, *(one for one in steps if architecture is None or oldest_architecture(one) <= architecture)]


def oldest_architecture(variant: Steps | None) -> int:
    """Return the number of the oldest architecture that has the instructions of a variant."""
    return WITH_NATIVE_BFLOAT16 if variant and "bfloat16" in variant else _OLDEST


def name_of(variant: Steps | None) -> str:
    """Return a name such as ``"nearest_even-scaled-single"``: mode, chain, join."""
    return "-".join(map(str, variant)) if variant else "common"


def defines(variant: Steps | None) -> list[str]:
    """Return the macros of kernels.cu that select a variant."""
    if variant is None:
        return ["-DCBFLOAT_COMMON"]
    if variant == MACHINE:
        return ["-DCBFLOAT_MACHINE"]
    numbers = {"MODE": variant.mode.value, "CHAIN": KINDS.index(variant.chain), "JOIN": KINDS.index(variant.join)}
    return [f"-DCBFLOAT_{name}={number}" for name, number in numbers.items()]
