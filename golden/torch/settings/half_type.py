"""The half type: which 16-bit format the matrix products use, and which torch dtype carries its values.

The factors of products may be in a narrower format, of 8 bits and fewer; sums and results are in one of 16 bits then.

PyTorch has no dtype for cbfloat16. Its values travel in a proxy: float32, which holds every one of them, or, on request
as in the original, float16, which does not: beyond 65504 it gives infinity, and below 2^-14 it drops fraction bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from golden import BF16, CB16, CBFLOAT16, FP16, Accumulator, FloatFormat
from golden.formats import NARROW_FORMATS
from golden.nearest import did_you_mean
from golden.reduction import LEVELS, Reduction
from golden.rounding import Randomness, ReductionRounding, Rounding
from golden.torch.settings.draws import branched
from golden.torch.settings.reductions import format_text, line_of, without_random

__all__ = ["HalfType", "Plan", "half_named"]

_NEAREST_EVEN = Rounding.NEAREST_EVEN


@dataclass(frozen=True)
class HalfType:
    """A 16-bit format and the torch dtype in which its values travel."""

    format: FloatFormat
    dtype: torch.dtype
    #: The format as operators take it.
    text: str = field(init=False, repr=False, compare=False)
    #: Modes of the steps of a product, and of its last rounding, and random bits where one is stochastic.
    rounding: Rounding = field(default=_NEAREST_EVEN, repr=False, compare=False)
    out_rounding: Rounding = field(default=_NEAREST_EVEN, repr=False, compare=False)
    random: Randomness | None = field(default=None, repr=False, compare=False)
    #: The format of the factors of its products where it is narrower than that of sums and results.
    operand: FloatFormat | None = None
    #: What sums its products where no level does.
    accumulator: Accumulator | None = None
    #: The half type of its products' gradients where that is another.
    backward: HalfType | None = None
    #: Lines of its products at each level, before the chunk's length and after it; the whole where there are no chunks.
    lines: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    #: It for a product that only adds up: its factors keep their 16 bits, and a level says how they are summed.
    of_sums: HalfType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", format_text(self.format))
        operand, accumulator = self.operand or self.format, self.accumulator
        lines = _lines(self.format, operand, accumulator, self.rounding, self.out_rounding)
        object.__setattr__(self, "lines", lines)
        is_plain = self.operand is None and accumulator is None
        object.__setattr__(self, "of_sums", self if is_plain else replace(self, operand=None, accumulator=None))

    def __setstate__(self, state: dict[str, Any]) -> None:
        given = {each.name: state[each.name] for each in fields(self) if each.init and each.name in state}
        if isinstance(given["rounding"], ReductionRounding):  # of an older pickle
            modes = vars(given["rounding"])
            given |= {name: modes[name] for name in ("rounding", "out_rounding")}
            given["random"] = Randomness(modes["random_bits"], modes["seed"], modes["call"])
        self.__init__(**given)  # type: ignore[misc]  # which makes the rest

    def line(self, level: int, chunk: int | None) -> str:
        """Return what a product of this type computes at a level, as operators take it."""
        # The compiler traces this: parts of text are put together, and nothing is looked up.
        before, after = self.lines[level]
        line = before + ("none" if chunk is None else str(chunk)) + after if after else before
        if self.random is None:
            return line
        return f"{line} random_bits={self.random.random_bits} seed={self.random.seed} call={self.random.call}"

    def rounded_by(self, rounding: Rounding, out_rounding: Rounding, random: Randomness | None = None) -> HalfType:
        """Return it with the modes and random bits of a product."""
        if (rounding, out_rounding, random) == (self.rounding, self.out_rounding, self.random):
            return self
        backward = None if self.backward is None else self.backward.rounded_by(rounding, out_rounding, random)
        return replace(self, rounding=rounding, out_rounding=out_rounding, random=random, backward=backward)

    def drawn(self, random: Randomness) -> HalfType:
        """Return it with other random bits."""
        twin = object.__new__(HalfType)  # in every product, so without the checks of one that is new
        vars(twin).update(vars(self), random=random)
        vars(twin)["backward"] = None if self.backward is None else self.backward.drawn(random)
        vars(twin)["of_sums"] = twin if self.of_sums is self else self.of_sums.drawn(random)
        return twin

    def branched(self, branch: int) -> HalfType:
        """Return it with random bits of its own for a branch of a product, from 1; itself where nothing is random."""
        return self if self.random is None else self.drawn(branched(self.random, branch))

    def summed_by(self, accumulator: Accumulator | None) -> HalfType:
        """Return it with products that the accumulator of another machine sums.

        Raises
        ------
        ValueError
            If that machine has no operands as wide as the factors.
        """
        if accumulator == self.accumulator:
            return self
        if accumulator is not None:
            accumulator.check_operand(self.operand or self.format)
        backward = None if self.backward is None else self.backward.summed_by(accumulator)
        return replace(self, accumulator=accumulator, backward=backward)

    @property
    def of_gradients(self) -> HalfType:
        """It for the gradients of a product."""
        return self if self.backward is None else self.backward

    @property
    def name(self) -> str:
        """``float16``, ``bfloat16``, ``cbfloat16`` or that of another format, which is that of the factors."""
        return (self.operand or self.format).name

    @property
    def is_lossless_proxy(self) -> bool:
        """Whether float32 carries the values, so that the dtype alone does not tell a half tensor."""
        return self.dtype == torch.float32


@lru_cache(maxsize=256)
def _lines(
    fmt: FloatFormat, operand: FloatFormat, accumulator: Accumulator | None, rounding: Rounding, out_rounding: Rounding
) -> tuple[tuple[str, str], ...]:
    """Return the lines of products at each level, in two parts."""
    lines = []
    for level in LEVELS:
        whole = Reduction(accumulator=accumulator)
        if accumulator is None:
            whole = Reduction.for_level(level, operand, chunk=None, inner=fmt)
        whole = replace(whole, operand=operand, out=fmt, rounding=rounding, out_rounding=out_rounding)
        line = without_random(line_of(whole))
        before, chunk, after = line.partition("chunk=none")
        lines.append((line, "") if level == 0 or not chunk else (before + "chunk=", after))
    return tuple(lines)


class Plan(NamedTuple):
    """How a product of tensors and its gradients run: half type, levels of both passes, products in a chunk."""

    half: HalfType
    fwd: int
    bwd: int
    chunk: int | None

    @property
    def line(self) -> str:
        """The forward product as operators take it."""
        return self.half.line(self.fwd, self.chunk)

    @property
    def of_gradients(self) -> Plan:
        """The plan of its gradients: at its backward level, in its backward half type."""
        return Plan(self.half.of_gradients, self.bwd, self.bwd, self.chunk)

    @property
    def of_sums(self) -> Plan:
        """The plan of a product that only adds up, in fp32."""
        return Plan(self.half.of_sums, 0, 0, self.chunk)

    def branch(self, number: int) -> Plan:
        """Return this plan with random bits of its own for a branch of the product."""
        return self if self.half.random is None else self._replace(half=self.half.branched(number))


_FLOAT16, _BFLOAT16 = HalfType(FP16, torch.float16), HalfType(BF16, torch.bfloat16)
_CBFLOAT16 = {proxy: HalfType(CBFLOAT16, proxy) for proxy in (torch.float32, torch.float16)}
_NAMED: dict[object, HalfType] = {
    "float16": _FLOAT16,
    torch.float16: _FLOAT16,
    "bfloat16": _BFLOAT16,
    torch.bfloat16: _BFLOAT16,
    "cbfloat16": _CBFLOAT16[torch.float32],
    "cb16": HalfType(CB16, torch.float32),
}
_NAMED |= {half.format: half for half in _NAMED.values()}
#: Formats of factors by their names and PyTorch's dtypes of these names; 16-bit sums are in this unless told.
_NARROW: dict[object, FloatFormat] = {fmt.name: fmt for fmt in NARROW_FORMATS}
_NARROW |= {getattr(torch, fmt.name): fmt for fmt in NARROW_FORMATS if hasattr(torch, fmt.name)}
_INNER = "cbfloat16"


def half_named(
    value: str | torch.dtype | FloatFormat | HalfType,
    proxy: torch.dtype | None = None,
    *,
    inner: str | torch.dtype | FloatFormat | None = None,
    argument: str = "value",
) -> HalfType:
    """Return the half type of a name or dtype; parameters and errors as of `golden.torch.set_half_dtype`."""
    if isinstance(value, HalfType):
        return value
    if not isinstance(value, str | torch.dtype | FloatFormat):
        raise TypeError(
            f"{argument}: got {value!r}, must be a name or a torch dtype, such as 'cbfloat16', or a FloatFormat"
        )
    if not isinstance(proxy, torch.dtype | None):
        raise TypeError(f"proxy: got {proxy!r}, must be a torch dtype or None")
    narrow = value if isinstance(value, FloatFormat) and value.width <= 8 else _NARROW.get(value)
    if narrow is not None:
        sums = half_named(_INNER if inner is None else inner, proxy, argument="inner")
        if sums.operand is not None:
            raise ValueError(f"inner: got {inner!r}, must be a format of 16 bits, which holds the sums")
        return replace(sums, operand=narrow)
    if inner is not None:
        raise ValueError(f"inner: got {inner!r}, must be None: {argument}={value!r} is that of the sums, too")
    if isinstance(value, FloatFormat) and value.width == 16 and value.has_inf:
        half = _NAMED.get(value) or HalfType(value, torch.float32)
    elif value in _NAMED:
        half = _NAMED[value]
    else:
        names = [each for each in (*_NAMED, *_NARROW) if isinstance(each, str)]
        meant = did_you_mean(value, names) if isinstance(value, str) else ""
        raise ValueError(
            f"{argument}: got {value!r}, must be 'float16', 'bfloat16', 'cbfloat16', 'cb16', torch.float16, "
            f"torch.bfloat16, a FloatFormat of 16 bits with infinities, or a format of 8 bits and fewer, such as "
            f"'float8_e4m3fn'{meant}"
        )
    if proxy is None or (proxy == torch.float32 == half.dtype):
        return half
    if half.dtype != torch.float32:
        raise ValueError(f"proxy: got {proxy} for {half.name}, which is a torch dtype itself, must be None")
    if half.format != CBFLOAT16:
        raise ValueError(f"proxy: got {proxy} for {half.name}, must be torch.float32")
    if proxy not in _CBFLOAT16:
        raise ValueError(f"proxy: got {proxy!r}, must be torch.float32 (lossless) or torch.float16 (less range)")
    return _CBFLOAT16[proxy]
