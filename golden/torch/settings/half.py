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
from golden.torch.guarding.unscaled import watch_steps
from golden.torch.operators import registered as operators
from golden.torch.operators.draws import branched
from golden.torch.operators.format_text import text_of
from golden.torch.settings.scopes import scopes

__all__ = [
    "HalfType",
    "current_half",
    "enable_mixed_precision",
    "expected_half",
    "get_floating_point_dtype",
    "get_floating_point_dtype_str",
    "get_half_dtype",
    "get_half_dtype_str",
    "half_named",
    "is_cbfloat16_tensor",
    "mixed_precision",
    "set_half_dtype",
    "wants_mixed_precision",
]


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


class _Process:
    """The defaults of the process; a precision context overrides them in its thread."""

    half = _FLOAT16
    mixed_precision = False
    initialized: HalfType | None = None  # that of the model initialised last


def half_named(
    value: str | torch.dtype | FloatFormat | HalfType,
    proxy: torch.dtype | None = None,
    *,
    inner: str | torch.dtype | FloatFormat | None = None,
    argument: str = "value",
) -> HalfType:
    """Return the half type of a name or dtype; the parameters and errors are those of `set_half_dtype`."""
    if isinstance(value, HalfType):
        return value
    if not isinstance(value, str | torch.dtype | FloatFormat):
        raise TypeError(
            f"{argument}: got {value!r}, must be a name or a torch dtype, such as 'cbfloat16', or a FloatFormat"
        )
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


def set_half_dtype(
    value: str | torch.dtype | FloatFormat,
    proxy: torch.dtype | None = None,
    *,
    inner: str | torch.dtype | FloatFormat | None = None,
) -> torch.dtype:
    """Set the 16-bit type of the process, and ask for mixed precision.

    It turns nothing on by itself: products are exact in a `golden.torch.precision`, in a model that went through
    `golden.torch.amp.initialize` or `golden.torch.compile`, and in the `Trainer`. A gradient scaler refuses the loss of
    a model that ran outside of them.

    Parameters
    ----------
    value : str, torch.dtype or FloatFormat
        ``"float16"``, ``"bfloat16"``, ``"cbfloat16"``, ``"cb16"``, ``torch.float16``, ``torch.bfloat16`` or any format
        of 16 bits. What PyTorch has no dtype for is carried by float32. A format of 8 bits and fewer, such as
        ``"float8_e4m3fn"``, is that of the factors of products alone.
    proxy : torch.dtype, optional
        What carries cbfloat16: ``torch.float32`` (unless given), which holds every value, or ``torch.float16``, which
        makes values beyond 65504 infinite and drops fraction bits below 2^-14.
    inner : str, torch.dtype or FloatFormat, optional
        With factors of 8 bits and fewer: the 16-bit format of sums and results, ``"cbfloat16"`` unless given.

    Returns
    -------
    torch.dtype
        The dtype to use in the model: ``torch.float16``, ``torch.bfloat16`` or the proxy.

    Raises
    ------
    TypeError
        If `value` is neither a string, nor a dtype, nor a format.
    ValueError
        If there is no such half type, or the proxy does not fit it.
    """
    _Process.half = half_named(value, proxy, inner=inner)
    _Process.mixed_precision = True
    _Process.initialized = None
    if _Process.half.format == CBFLOAT16:
        watch_steps()
    return _Process.half.dtype


def current_half() -> HalfType:
    """Return the half type in force: that of a level map, of the innermost precision context, else of the process."""
    half = scopes.precisions[-1].half if scopes.precisions else _Process.half
    if scopes.mapped:
        for scope in reversed(scopes.pols):
            if scope.half is not None:
                return scope.half.rounded_by(half.rounding).summed_by(half.accumulator)
    return half


def expected_half() -> HalfType:
    """Return the half type that a loss will have as far as one can know: in force, else of the initialised model."""
    known = scopes.precisions or _Process.mixed_precision
    return current_half() if known else _Process.initialized or current_half()


def get_half_dtype() -> torch.dtype:
    """Return the torch dtype that carries the half type in force; for cbfloat16 that is its proxy."""
    return current_half().dtype


def get_half_dtype_str() -> str:
    """Return the name of the half type in force: ``float16``, ``bfloat16`` or ``cbfloat16``."""
    return current_half().name


def is_cbfloat16_tensor(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor holds cbfloat16: the half type in force is cbfloat16, and the tensor one of its proxy.

    The float32 proxy is also the dtype of fp32 tensors; with it, a tensor counts if every element is a value of
    cbfloat16 (a NaN counts as one). It reads the whole tensor then.
    """
    half = current_half()
    if half.format != CBFLOAT16 or tensor.dtype != half.dtype:
        return False
    if not half.is_lossless_proxy:
        return True
    rounded = operators.rounded(tensor.detach(), half.text, torch.float32)
    return bool(((tensor == rounded) | tensor.isnan()).all())


def mixed_precision() -> bool:
    """Tell whether mixed precision is on here, so that products of PyTorch's functions run exactly."""
    return bool(scopes.precisions) and scopes.precisions[-1].enabled


def wants_mixed_precision() -> bool:
    """Tell whether mixed precision is on here, or, outside of precision contexts, asked for by `set_half_dtype`."""
    return scopes.precisions[-1].enabled if scopes.precisions else _Process.mixed_precision


def enable_mixed_precision(enable: bool = True) -> bool:
    """Ask for mixed precision in this process, as `set_half_dtype` does, or no longer; returns what is asked for.

    Where it is, `GradScaler.scale` demands exact products, and `get_floating_point_dtype` gives the half dtype.

    Raises
    ------
    TypeError
        If `enable` is not a bool.
    """
    if not isinstance(enable, bool):
        raise TypeError(f"enable: got {enable!r}, must be True or False")
    _Process.mixed_precision = enable
    return enable


def get_floating_point_dtype(default: torch.dtype = torch.float32) -> torch.dtype:
    """Return the dtype of the half type if mixed precision is on or asked for, else `default`."""
    return get_half_dtype() if wants_mixed_precision() else default


def get_floating_point_dtype_str(default: str = "float32") -> str:
    """Return the name of the half type if mixed precision is on or asked for, else `default`."""
    return get_half_dtype_str() if wants_mixed_precision() else default
