"""The result of a conversion in any mode, from its number's rounding (NUMERICS sections 8 and 9).

A specification of numbers defines the conditions, and `conclusion` derives ``correct`` from them and the classes.
"""

from __future__ import annotations

from golden.formats import FloatFormat
from golden.rounding import STAYS_FINITE, Rounding
from lab.proofs.terms import (
    bits,
    both,
    define,
    either,
    equal,
    inverse,
    is_infinite,
    is_nan,
    is_signalling,
    sign_bit,
    verdict,
)

__all__ = ["conclusion", "settled"]


def conclusion(
    code: str, source: FloatFormat, destination: FloatFormat, mode: Rounding, overflow: str, out: str, flags: str
) -> str:
    """Return definitions up to ``correct``.

    Already defined: ``is_beyond``, the number rounded with an unbounded exponent is above the largest finite value;
    ``is_rounded``, code and sign equal the number rounded into the range; ``is_exact``, the code's value is the number;
    ``is_tiny``, the number rounded with an unbounded exponent is below the smallest normal one. If the code is not a
    number, they may be anything.
    """
    text = define("is_negative", "Bool", sign_bit(code, source))
    text += define("is_nan", "Bool", is_nan(code, source))
    text += define("is_infinite", "Bool", is_infinite(code, source))
    text += define("is_number", "Bool", inverse(either("is_nan", "is_infinite")))
    loses_nan = both("is_nan", "true" if destination.specials == "finite" else "false")
    text += define("is_invalid", "Bool", either(is_signalling(code, source), loses_nan))
    return text + settled(destination, mode, overflow, out, flags)


def settled(
    destination: FloatFormat, mode: Rounding, overflow: str, out: str, flags: str, *, sign: str = "is_negative"
) -> str:
    """Return definitions up to ``correct`` for an operation that rounds to `destination`, a conversion or a step.

    Already defined, beside the conditions that `conclusion` needs: ``is_nan``, ``is_infinite`` and ``is_number``,
    exactly one of which holds; ``is_invalid``; and the sign, which `sign` names.
    """
    width = destination.width
    largest = [bits(destination.max_finite | at * destination.sign_mask, width) for at in (0, 1)]
    special = [bits(destination.overflow(at), width) for at in (0, 1)]
    infinite, beyond = special, list(special)
    if overflow == "saturate":
        infinite = beyond = largest
    for at, is_kept in enumerate(STAYS_FINITE[mode]):
        if is_kept:
            beyond[at] = largest[at]
    infinity_overflows = overflow == "saturate" or destination.specials == "finite"
    number_overflows = both("is_number", "is_beyond")
    infinite_overflows = both("is_infinite", "true" if infinity_overflows else "false")
    text = define("overflows", "Bool", either(number_overflows, infinite_overflows))
    text += define("is_inexact", "Bool", either("overflows", both("is_number", inverse("is_exact"))))
    text += define("underflows", "Bool", both("is_number", "is_tiny", "is_inexact"))

    def of_sign(codes: list[str]) -> str:
        return f"(ite {sign} {codes[1]} {codes[0]})"

    nan = bits(destination.nan if destination.specials != "finite" else 0, width)
    number = f"(ite is_beyond {equal(out, of_sign(beyond))} is_rounded)"
    correct = f"(ite is_nan {equal(out, nan)} (ite is_infinite {equal(out, of_sign(infinite))} {number}))"
    return text + verdict(correct, flags)
