"""The half type: which 16-bit format the matrix products use, and which torch dtype carries its values.

The factors of products may be in a narrower format, of 8 bits and fewer; sums and results are in one of 16 bits then.

PyTorch has no dtype for cbfloat16. Its values travel in a proxy: float32, which holds every value, or on request
float16, as in the original. float16 gives infinity beyond 65504, and drops fraction bits below 2^-14.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch

from golden import BF16, CB16, CBFLOAT16, FP16, FloatFormat
from golden.formats import NARROW_FORMATS
from golden.lines import format_text
from golden.nearest import did_you_mean

__all__ = ["HalfType", "half_named"]


@dataclass(frozen=True)
class HalfType:
    """A 16-bit format and the torch dtype in which its values travel."""

    format: FloatFormat
    dtype: torch.dtype
    #: The format of the factors of its products where it is narrower than that of sums and results.
    operand: FloatFormat | None = None
    #: The half type of its products' gradients where that is another.
    backward: HalfType | None = None
    #: The formats of factors and of results as operators take them.
    factors: str = field(init=False, repr=False, compare=False)
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        vars(self).update(factors=format_text(self.operand or self.format), text=format_text(self.format))

    def __setstate__(self, state: dict[str, Any]) -> None:  # an older one has other parts, too
        given = {each.name: state[each.name] for each in fields(self) if each.init and each.name in state}
        self.__init__(**given)  # type: ignore[misc]  # which makes the rest

    @property
    def of_gradients(self) -> HalfType:
        """The half type for the gradients of a product."""
        return self if self.backward is None else self.backward

    @property
    def name(self) -> str:
        """Name of the factors' format: ``float16``, ``bfloat16``, ``cbfloat16`` or another."""
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
        raise ValueError(f"inner: got {inner!r}, must be None: {argument}={value!r} is also the format of the sums")
    if isinstance(value, FloatFormat) and value.width == 16 and value.is_ieee:
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
