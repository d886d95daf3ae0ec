"""Why some faults survive both the regression and the proofs."""

from __future__ import annotations

from fnmatch import fnmatchcase

from lab.netlists.fault import Fault

__all__ = ["REASONS", "reason_of"]

_NO_OPERATION = "data of a place that holds no operation after a reset: nothing reads it"

#: Unit, file, kind and words of faults, where ``*`` matches anything; and the reason. The first matching row counts.
REASONS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "*",
        "pipeline.py",
        "reset",
        "*",
        "the resets in the stimulus of this unit miss it; those of other converters tell it",
    ),
    (
        "*",
        "mac/issue.py",
        "operand",
        "leaving: held_valid instead of *",
        "slower only: a product behind a refused one of its register waits as if that had been issued",
    ),
    (
        "*",
        "vector/promotions.py",
        "condition",
        "* without in_flight_*.writes",
        "slower only: a promotion also waits for an empty place of the pipeline that once was one of its row",
    ),
    (
        "vector_mac*",
        "mac/control.py",
        "condition",
        "entry.part is always the choice of a true condition",
        "equivalent: an operation that was refused is a product, and only promotions are the second of two",
    ),
    (
        "vector_mac*",
        "mac/decode.py",
        "operand",
        "*: held_valid instead of decoded.wide_total",
        "equivalent: only level 1 needs an even register there, and its totals are wide",
    ),
    (
        "mac_cbfloat16",
        "mac/chunks.py",
        "operand",
        "is_one: length_now instead of chunk",
        "equivalent as the port is used: a product is issued a cycle after it was taken at the earliest, and the chunk "
        "length of a reduction stands from its first beat on",
    ),
    (
        "vector_mac*",
        "cores/words.py",
        "constant",
        "$188, bit 0, is always 1",
        "equivalent: a mask of low bits that the register file of this unit has cleared for all narrower totals",
    ),
    (
        "*",
        "mac/promotions.py",
        "reset",
        "*",
        "slower only: a product of level 0 waits after a reset for operations that are not there",
    ),
    (
        "*",
        "mac/promotions.py",
        "operand",
        "other_issued: others_in_flight instead of *",
        "slower only: it was 1 before any other operation was issued, and stays so for longer",
    ),
    (
        "*",
        "mac/promotions.py",
        "operand",
        "$3: others_in_flight instead of $2",
        "equivalent: a promotion has set others_in_flight in the cycle before it is the newest operation",
    ),
    (
        "*",
        "mac/promotions.py",
        "off by one",
        "*: 1 -> 2",
        "equivalent as the proofs of the control say: a product of level 0 waits for a cycle more than it has to",
    ),
    (
        "vector_mac*",
        "cores/operand.py",
        "delay",
        "$239 one cycle late",
        "equivalent: the second factor's class never overrides what its code says, so this signal is constant",
    ),
    ("*", "mac/flags.py", "reset", "*", _NO_OPERATION),
    ("vector_mac*", "cores/copies.py", "reset", "at_*.format[[]3:0] *", _NO_OPERATION),
    ("vector_mac*", "vector/group.py", "reset", "packed_*", _NO_OPERATION),
    ("*", "mac/chunks.py", "reset", "a register *", _NO_OPERATION),
    ("*", "mac/operands.py", "reset", "held.*", _NO_OPERATION),
    ("vector_mac*", "cores/copies.py", "reset", "at_4.accumulator_format[[]6:0] *", _NO_OPERATION),
    (
        "vector_mac",
        "mac/operation.py",
        "reset",
        "at__9.register[[]19:0] is reset to another value, bit 19",
        "no result depends on it: after a reset, it writes a register in which no reduction has begun, and it does so "
        "before any product of the next reduction writes",
    ),
    # The name of the first field stands for a whole rank: bits 0 to 3 are the register, the others are not data.
    ("*", "mac/operation.py", "reset", "*.register* bit [0-3]", _NO_OPERATION),
    ("*", "mac/results.py", "reset", "behind_pack.*", _NO_OPERATION),
    ("*", "mac/issue.py", "reset", "held.*", _NO_OPERATION),
)


def reason_of(fault: Fault, unit: str) -> str:
    """Return the known reason why a fault survives in a unit, or nothing."""
    return next(
        (
            reason
            for units, file, kind, words, reason in REASONS
            if fnmatchcase(unit, units)
            and fnmatchcase(fault.file, file)
            and fnmatchcase(fault.kind, kind)
            and fnmatchcase(fault.what, words)
        ),
        "",
    )
