"""The results of arithmetic instructions: a function on raw bits for each name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cuda.ptx.floats import (
    add_64,
    from_double,
    fused_32,
    fused_64_toward_zero,
    fused_halves,
    product_32,
    settled_32,
    settled_64,
)
from tests.cuda.ptx.program import BITS

__all__ = ["Operation", "operation"]

Bits = NDArray[Any]


class Operation:
    """An instruction that only computes.

    Parameters
    ----------
    result : int
        Bits of what it returns.
    sources : sequence of int
        Bits that it takes of each operand.
    compute : Callable
        From the operands, as unsigned integers (a predicate: bool), to the result.
    is_signed : bool
        Whether a wider register takes the result with its sign.
    """

    def __init__(
        self, result: int, sources: tuple[int, ...], compute: Callable[..., Bits], is_signed: bool = False
    ) -> None:
        self.result, self.sources, self.compute, self.is_signed = result, sources, compute, is_signed


_COMPARISONS: dict[str, Callable[[Bits, Bits], Bits]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _is_float(kind: str) -> bool:
    return kind in ("f32", "f64")


def _typed(kind: str, bits: Bits) -> Bits:
    """Return raw bits as numbers of a type."""
    letter = {"b": "u", "u": "u", "s": "i", "f": "f"}[kind[0]]
    return bits.view(f"{letter}{BITS[kind] // 8}")


def _raw(kind: str, numbers: Bits) -> Bits:
    """Return numbers of a type as raw bits."""
    if kind == "f32":
        return settled_32(np.asarray(numbers, np.float32))
    if kind == "f64":
        return settled_64(np.asarray(numbers, np.float64))
    return np.asarray(numbers).view(f"u{BITS[kind] // 8}")


def _on_numbers(kind: str, count: int, compute: Callable[..., Bits]) -> Operation:
    width = BITS[kind]
    return Operation(
        width, (width,) * count, lambda *given: _raw(kind, compute(*(_typed(kind, each) for each in given)))
    )


def _on_bits(kind: str, count: int, compute: Callable[..., Bits]) -> Operation:
    return Operation(BITS[kind], (BITS[kind],) * count, compute)


def _compare(name: tuple[str, ...]) -> Operation:
    how, kind = name[1:]
    width = BITS[kind]
    if how in ("nan", "num"):

        def test(x: Bits, y: Bits) -> Bits:
            either = np.isnan(x) | np.isnan(y)
            return either if how == "nan" else ~either
    elif how.endswith("u") and _is_float(kind):  # true, too, where a number is none
        with_nan = _COMPARISONS[how[:-1]]

        def test(x: Bits, y: Bits) -> Bits:
            return with_nan(x, y) | np.isnan(x) | np.isnan(y)
    elif how == "ne" and _is_float(kind):

        def test(x: Bits, y: Bits) -> Bits:
            return (x != y) & ~np.isnan(x) & ~np.isnan(y)
    else:
        test = _COMPARISONS[how]
    return Operation(1, (width, width), lambda x, y: test(_typed(kind, x), _typed(kind, y)))


def _shift(name: tuple[str, ...]) -> Operation:
    way, kind = name
    width = BITS[kind]

    def left(x: Bits, by: Bits) -> Bits:
        return np.where(by < width, x << np.minimum(by, width - 1).astype(x.dtype), 0).astype(x.dtype)

    def right(x: Bits, by: Bits) -> Bits:
        held = np.minimum(by, width - 1).astype(x.dtype)
        if kind[0] == "s":
            return (_typed(kind, x) >> held.view(f"i{width // 8}")).view(x.dtype)
        return np.where(by < width, x >> held, 0).astype(x.dtype)

    return Operation(width, (width, 32), left if way == "shl" else right)


def _divide(name: tuple[str, ...]) -> Operation:
    what, *rounding, kind = name
    if rounding:
        if (rounding, kind) != (["rn"], "f32"):
            raise NotImplementedError(".".join(name))
        return _on_numbers(kind, 2, np.divide)

    def toward_zero(x: Bits, y: Bits) -> Bits:
        if not np.all(y):
            raise ZeroDivisionError(".".join(name))
        # NumPy rounds a quotient of integers down.
        rest = np.fmod(x, y)
        return rest if what == "rem" else (x - rest) // y

    return _on_numbers(kind, 2, toward_zero)


def _multiply(name: tuple[str, ...]) -> Operation:
    what, how, kind = name
    width = BITS[kind]
    if _is_float(kind):
        if kind == "f32":
            return _on_bits(kind, 2, lambda x, y: product_32(x, y, how))
        if how == "rn":
            return _on_numbers(kind, 2, np.multiply)
        raise NotImplementedError(".".join(name))
    if what == "mad" and how == "lo":
        return _on_bits(kind, 3, lambda x, y, z: x * y + z)
    if what == "mul" and how == "lo":
        return _on_bits(kind, 2, np.multiply)
    if what == "mul" and how == "hi" and kind == "u32":
        return _on_bits(kind, 2, lambda x, y: (x.astype(np.uint64) * y >> np.uint64(32)).astype(np.uint32))
    if what == "mul" and how == "wide" and width == 32:
        twice = np.int64 if kind[0] == "s" else np.uint64
        return Operation(
            64, (32, 32), lambda x, y: (_typed(kind, x).astype(twice) * _typed(kind, y).astype(twice)).view(np.uint64)
        )
    raise NotImplementedError(".".join(name))


def _add(name: tuple[str, ...]) -> Operation:
    what, *rounding, kind = name
    if not _is_float(kind) and not rounding:
        return _on_bits(kind, 2, np.add if what == "add" else np.subtract)
    if rounding != ["rn"]:
        raise NotImplementedError(".".join(name))
    if kind == "f64":
        sign = np.uint64(1 << 63)
        return _on_bits(kind, 2, add_64 if what == "add" else lambda x, y: add_64(x, y ^ sign))
    return _on_numbers(kind, 2, np.add if what == "add" else np.subtract)


def _fuse(name: tuple[str, ...]) -> Operation:
    _, how, kind = name
    if kind == "f32":
        return _on_bits(kind, 3, lambda x, y, z: fused_32(x, y, z, how))
    if (how, kind) == ("rz", "f64"):
        return _on_bits(kind, 3, fused_64_toward_zero)
    if how == "rn" and kind in ("f16x2", "bf16x2"):
        return _on_bits(kind, 3, lambda x, y, z: fused_halves(x, y, z, brain=kind == "bf16x2"))
    raise NotImplementedError(".".join(name))


def _extreme(name: tuple[str, ...]) -> Operation:
    what, kind = name
    if not _is_float(kind):
        return _on_numbers(kind, 2, np.minimum if what == "min" else np.maximum)

    def one_of(x: Bits, y: Bits) -> Bits:  # the one that is a number; -0 is below +0
        smaller = (x < y) | ((x == y) & np.signbit(x))
        chosen = np.where(smaller == (what == "min"), x, y)
        return np.where(np.isnan(x), y, np.where(np.isnan(y), x, chosen))

    return _on_numbers(kind, 2, one_of)


def _convert(name: tuple[str, ...]) -> Operation:
    _, *how, to, source = name
    widths = BITS[to], (BITS[source],)
    if to == source == "f64" and how in (["rmi"], ["rzi"]):
        return _on_numbers("f64", 1, np.floor if how == ["rmi"] else np.trunc)
    if (to, source) == ("f32", "f64") and len(how) == 1:
        return Operation(*widths, lambda x: from_double(x.view(np.float64), how[0]))
    if (to, source, how) == ("f64", "f32", []):
        return Operation(*widths, lambda x: settled_64(x.view(np.float32).astype(np.float64)))
    if _is_float(to) and not _is_float(source) and how == ["rn"]:
        return Operation(*widths, lambda x: _raw(to, _typed(source, x).astype(f"f{BITS[to] // 8}")))
    if not _is_float(to) and not _is_float(source) and not how:
        letter = "i" if source[0] == "s" else "u"
        wide = f"{letter}{BITS[to] // 8}"
        return Operation(
            *widths, lambda x: _typed(source, x).astype(wide).view(f"u{BITS[to] // 8}"), is_signed=to[0] == "s"
        )
    raise NotImplementedError(".".join(name))


def _sign(name: tuple[str, ...]) -> Operation:
    what, kind = name
    if _is_float(kind):
        top = np.array(1 << BITS[kind] - 1, f"u{BITS[kind] // 8}")
        if what == "copysign":  # the sign of the first one
            return _on_bits(kind, 2, lambda sign, x: (x & ~top) | (sign & top))
        return _on_bits(kind, 1, (lambda x: x ^ top) if what == "neg" else (lambda x: x & ~top))
    return _on_numbers(kind, 1, np.negative if what == "neg" else np.abs)


def _select(name: tuple[str, ...]) -> Operation:
    width = BITS[name[1]]
    return Operation(width, (width, width, 1), lambda x, y, first: np.where(first, x, y))


_LOGIC: dict[str, Callable[..., Bits]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_MAKERS: dict[str, Callable[[tuple[str, ...]], Operation]] = {
    **dict.fromkeys(("add", "sub"), _add),
    **dict.fromkeys(("mul", "mad"), _multiply),
    **dict.fromkeys(("div", "rem"), _divide),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("neg", "abs", "copysign"), _sign),
    **dict.fromkeys(_LOGIC, lambda name: _on_bits(name[1], 2, _LOGIC[name[0]])),
    "not": lambda name: _on_bits(name[1], 1, np.logical_not if name[1] == "pred" else np.invert),
    "setp": _compare,
    "selp": _select,
    "fma": _fuse,
    "cvt": _convert,
    "mov": lambda name: _on_bits(name[1], 1, lambda x: x),
    # The windows of the state spaces are parts of the generic addresses themselves.
    "cvta": lambda name: _on_bits(name[-1], 1, lambda x: x),
}


def operation(name: tuple[str, ...]) -> Operation:
    """Return the function of an instruction.

    Raises
    ------
    NotImplementedError
        If the machine does not know it.
    """
    if name[0] not in _MAKERS:
        raise NotImplementedError(".".join(name))
    try:
        return _MAKERS[name[0]](name)
    except (ValueError, KeyError, IndexError) as error:
        raise NotImplementedError(".".join(name)) from error
