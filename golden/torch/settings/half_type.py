"""The half type: which 16-bit format the matrix products use, and which torch dtype carries its values.

The factors of products may be in a narrower format, of 8 bits and fewer; sums and results are in one of 16 bits then.

PyTorch has no dtype for cbfloat16. Its values travel in a proxy: float32, which holds every one of them, or, on request
as in the original, float16, which does not: beyond 65504 it gives infinity, and below 2^-14 it drops fraction bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from golden import BF16, CB16, CBFLOAT16, FP16, Accumulator, FloatFormat
from golden.formats import NARROW_FORMATS
from golden.nearest import did_you_mean
from golden.rounding import NEAREST, ReductionRounding
from golden.torch.settings.draws import branched
from golden.torch.settings.format_text import text_of

__all__ = ["HalfType", "half_named"]


@dataclass(frozen=True)
class HalfType:
    """A 16-bit format and the torch dtype in which its values travel."""

    format: FloatFormat
    dtype: torch.dtype
    #: The format as operators take it.
    text: str = field(init=False, repr=False, compare=False)
    #: How a product of it is rounded; operators have it from the text.
    rounding: ReductionRounding = field(default=NEAREST, repr=False, compare=False)
    #: The format of the factors of its products where it is narrower than that of sums and results.
    operand: FloatFormat | None = None
    #: What sums its products where no level does.
    accumulator: Accumulator | None = None
    #: The half type of its products' gradients where that is another.
    backward: HalfType | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", text_of(self.format, self.rounding, self.operand, self.accumulator))

    def rounded_by(self, rounding: ReductionRounding) -> HalfType:
        """Return it with the modes of a product."""
        if rounding == self.rounding:
            return self
        backward = None if self.backward is None else self.backward.rounded_by(rounding)
        return replace(self, rounding=rounding, backward=backward)

    def branched(self, branch: int) -> HalfType:
        """Return it for a product that belongs to that of this one, from 1; itself where nothing is random."""
        return self.rounded_by(branched(self.rounding, branch)) if self.rounding.is_random else self

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
    def of_sums(self) -> HalfType:
        """It for a product that only adds up: its factors keep their 16 bits, and a level says how they are summed."""
        if self.operand is None and self.accumulator is None:
            return self
        return replace(self, operand=None, accumulator=None)

    @property
    def name(self) -> str:
        """``float16``, ``bfloat16``, ``cbfloat16`` or that of another format, which is that of the factors."""
        return (self.operand or self.format).name

    @property
    def is_lossless_proxy(self) -> bool:
        """Whether float32 carries the values, so that the dtype alone does not tell a half tensor."""
        return self.dtype == torch.float32


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
