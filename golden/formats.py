"""Floating-point formats: four numbers each and which codes are special (NUMERICS sections 1, 8 and 13).

Every other constant is derived from these. Only the format knows which of its codes are special.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import Any

from golden.exact import Class
from golden.nearest import did_you_mean

__all__ = [
    "ALIASES",
    "BF16",
    "CB16",
    "CBFLOAT16",
    "CONVERSIONS",
    "DLFLOAT16",
    "FLOAT4_E2M1FN",
    "FLOAT6_E2M3FN",
    "FLOAT6_E3M2FN",
    "FLOAT8_E4M3FN",
    "FLOAT8_E4M3FNUZ",
    "FLOAT8_E5M2",
    "FLOAT8_E5M2FNUZ",
    "FORMATS",
    "FP16",
    "FP32",
    "HALF_FORMATS",
    "NARROW_FORMATS",
    "NEIGHBOUR_FORMATS",
    "SIXTEEN_BIT_FORMATS",
    "SPECIALS",
    "WIDE_FORMATS",
    "FloatFormat",
    "as_format",
    "format_named",
]

#: Which codes are no numbers: as in IEEE 754; one NaN of either sign and no infinity; one NaN in the place of -0 and no
#: infinity; none; one code of either sign that is infinity and NaN in one.
SPECIALS = ("ieee", "fn", "fnuz", "finite", "merged")


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: 1 sign bit, an exponent field and a fraction.

    The all-zeros exponent field encodes zero and subnormals, unless `subnormals` says otherwise. `specials` says which
    codes are infinities and NaNs:

    ==========  ===================================  ==================================================
    `specials`  infinities                           NaNs
    ==========  ===================================  ==================================================
    ``ieee``    exponent field all ones, fraction 0  exponent field all ones, any other fraction
    ``fn``      none                                 all ones below the sign
    ``fnuz``    none                                 the sign bit alone: there is no -0
    ``finite``  none                                 none
    ``merged``  all ones below the sign              the same code: infinity and NaN in one
    ==========  ===================================  ==================================================

    A NaN of an ``ieee`` format is quiet if its top fraction bit is 1 and signals if it is 0. The code of a ``merged``
    format signals. Any other NaN is quiet.

    Parameters
    ----------
    name : str
        Lower-case name; it appears in errors, tables and generated Verilog.
    exponent_bits : int
        Width of the exponent field in bits, 2 to 8.
    fraction_bits : int
        Width of the stored fraction in bits, 1 to 23.
    bias : int, optional
        What is subtracted from the exponent field; ``2**(exponent_bits - 1) - 1`` unless given, one more for ``fnuz``.
    specials : str
        ``"ieee"`` (the default), ``"fn"``, ``"fnuz"``, ``"finite"`` or ``"merged"``.
    subnormals : bool
        Whether the format has subnormals; it does unless told otherwise. Without them, a code whose exponent field is
        0 is the zero of its sign, and results below the smallest normal number become zeros (NUMERICS section 13).
    normal_zero_field : bool
        Only without subnormals: exponent field 0 holds normal numbers, too, of exponent ``-bias``. The zero is then the
        single code of each sign whose other bits are clear.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is out of range, or float32 does not hold every value of the format.

    Examples
    --------
    >>> CB16.width, CB16.emax, hex(CB16.nan)
    (16, 20, '0x7f00')
    >>> FloatFormat("float8_e4m3", 4, 3).max_finite
    119
    >>> FloatFormat("float8_e4m3fn", 4, 3, specials="fn").max_finite
    126
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int = field(default=None)  # type: ignore[assignment]  # None only between the call and __post_init__
    specials: str = "ieee"
    subnormals: bool = True
    normal_zero_field: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name: got {self.name!r}, must be a non-empty string")
        for argument, low, high in (("exponent_bits", 2, 8), ("fraction_bits", 1, 23)):
            given = getattr(self, argument)
            if not isinstance(given, int) or isinstance(given, bool):
                raise TypeError(f"{argument}: got {given!r}, must be an int from {low} to {high}")
            if not low <= given <= high:
                raise ValueError(f"{argument}: got {given}, must be from {low} to {high}")
        if not isinstance(self.specials, str):
            raise TypeError(f"specials: got {self.specials!r}, must be one of {', '.join(SPECIALS)}")
        if self.specials not in SPECIALS:
            raise ValueError(f"specials: got {self.specials!r}, must be one of {', '.join(SPECIALS)}")
        for argument in ("subnormals", "normal_zero_field"):
            if not isinstance(getattr(self, argument), bool):
                raise TypeError(f"{argument}: got {getattr(self, argument)!r}, must be True or False")
        if self.normal_zero_field and self.subnormals:
            raise ValueError(
                "normal_zero_field: got True, must be False in a format with subnormals, which have exponent field 0; "
                "give subnormals=False as well"
            )
        if not self.subnormals and self.specials == "fnuz":
            raise ValueError("subnormals: got False, must be True with specials 'fnuz', which have no -0")
        if self.bias is None:
            object.__setattr__(self, "bias", 2 ** (self.exponent_bits - 1) - (self.specials != "fnuz"))
        elif not isinstance(self.bias, int) or isinstance(self.bias, bool):
            raise TypeError(f"bias: got {self.bias!r}, must be an int or None")
        if self.emax > 127 or self.emin - self.fraction_bits < -149:
            raise ValueError(
                f"bias: got {self.bias}, which puts the values of {self.name} from 2^{self.emin - self.fraction_bits} "
                f"to 2^{self.emax}; float32 must hold every value (2^-149 to 2^127), choose another bias"
            )

    def __str__(self) -> str:
        return self.name

    @cached_property
    def width(self) -> int:
        """Bits of a code."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def precision(self) -> int:
        """Bits of the significand, the leading bit included."""
        return self.fraction_bits + 1

    @property
    def exponent_field_max(self) -> int:
        """The all-ones exponent field; only an ``ieee`` format keeps it for infinity and NaN."""
        return 2**self.exponent_bits - 1

    @property
    def emax(self) -> int:
        """Exponent (power of two) of the largest finite value."""
        return self.max_finite_field - self.bias

    @property
    def emin(self) -> int:
        """Exponent (power of two) of the smallest normal value."""
        return (not self.normal_zero_field) - self.bias

    @cached_property
    def sign_mask(self) -> int:
        """The sign bit alone: the code of -0, or of the NaN of a ``fnuz`` format."""
        return 1 << (self.width - 1)

    @cached_property
    def has_inf(self) -> bool:
        """Whether the format has infinities that are no NaNs."""
        return self.specials == "ieee"

    @property
    def is_ieee(self) -> bool:
        """Whether every code means what it does in IEEE 754: infinities, NaNs of their own, subnormals."""
        return self.has_inf and self.subnormals

    @property
    def has_merged(self) -> bool:
        """Whether one code of each sign, all ones below it, is infinity and NaN in one."""
        return self.specials == "merged"

    @property
    def has_nan(self) -> bool:
        """Whether the format has a NaN."""
        return self.specials != "finite"

    @property
    def has_negative_zero(self) -> bool:
        """Whether zero has a sign."""
        return self.specials != "fnuz"

    @property
    def inf(self) -> int:
        """Code of +infinity.

        Raises
        ------
        ValueError
            If the format has none.
        """
        if not self.has_inf:
            raise ValueError(f"{self.name} has no infinity (specials {self.specials!r}); ask has_inf first")
        return self.exponent_field_max << self.fraction_bits

    @property
    def nan(self) -> int:
        """Code of the canonical NaN: sign 0, top fraction bit 1, the others 0, where there is a choice.

        Raises
        ------
        ValueError
            If the format has none.
        """
        match self.specials:
            case "ieee":
                return self.inf | 1 << (self.fraction_bits - 1)
            case "fn" | "merged":
                return self.sign_mask - 1
            case "fnuz":
                return self.sign_mask
        raise ValueError(f"{self.name} has no NaN (specials {self.specials!r}); ask has_nan first")

    @cached_property
    def max_finite(self) -> int:
        """Code of the largest finite value."""
        match self.specials:
            case "ieee":
                return self.inf - 1
            case "fn" | "merged":
                return self.nan - 1
        return self.sign_mask - 1

    def overflow(self, sign: int) -> int:
        """Return the code of a result beyond the range: infinity, else NaN, else the largest finite value.

        Parameters
        ----------
        sign : int
            0 or 1; a NaN is the canonical one for either, but keeps the sign where it is an infinity, too.
        """
        if self.has_inf:
            return self.inf | sign * self.sign_mask
        if self.has_merged:
            return self.nan | sign * self.sign_mask
        return self.nan if self.has_nan else self.max_finite | sign * self.sign_mask

    def is_nan(self, code: Any) -> Any:
        """Tell whether a code, or which of an unsigned array of codes, is a NaN."""
        match self.specials:
            case "ieee":
                return (code & (self.sign_mask - 1)) > self.inf
            case "fn" | "merged":
                return (code & (self.sign_mask - 1)) == self.nan
            case "fnuz":
                return code == self.nan
        return code < 0  # none is

    def is_signalling(self, code: Any) -> Any:
        """Tell whether a code, or which of an unsigned array of codes, is a signalling NaN."""
        if self.has_merged:
            return self.is_nan(code)
        if self.specials != "ieee":
            return code < 0  # none is
        magnitude = code & (self.sign_mask - 1)
        return (magnitude > self.inf) & (magnitude < self.nan)

    def is_inf(self, code: Any) -> Any:
        """Tell whether a code, or which of an unsigned array of codes, is an infinity (and no NaN)."""
        return (code & (self.sign_mask - 1)) == self.inf if self.has_inf else code < 0  # none is

    def is_finite(self, code: Any) -> Any:
        """Tell whether a code, or which of an unsigned array of codes, is a number."""
        if self.specials == "fnuz":
            return code != self.nan
        return (code & (self.sign_mask - 1)) <= self.max_finite

    def classify(self, code: int) -> Class:
        """Return the class of a code."""
        if self.is_finite(code):
            return Class.FINITE
        if self.is_inf(code):
            return Class.INFINITE
        return Class.SIGNALLING_NAN if self.is_signalling(code) else Class.QUIET_NAN

    @property
    def max_finite_field(self) -> int:
        """Exponent field of the largest finite value."""
        return self.max_finite >> self.fraction_bits

    @property
    def min_normal(self) -> int:
        """Code of the smallest positive normal value."""
        return 1 if self.normal_zero_field else 1 << self.fraction_bits

    @property
    def smallest_normal(self) -> float:
        """The smallest positive normal value: a power of two, unless exponent field 0 holds normal numbers."""
        return 2.0**self.emin * (1 + self.normal_zero_field * 2.0**-self.fraction_bits)

    @property
    def min_subnormal(self) -> int:
        """Code of the smallest positive value; a normal one where the format has no subnormals."""
        return 1 if self.subnormals else self.min_normal

    @property
    def has_one(self) -> bool:
        """Whether 1.0 is a normal value of the format; a bias can put it out of range."""
        return self.emin <= 0 <= self.emax

    @property
    def one(self) -> int:
        """Code of 1.0 (a format whose bias leaves 1.0 out of its normal range has none).

        Raises
        ------
        ValueError
            If 1.0 is not a normal value of the format.
        """
        if not self.has_one:
            raise ValueError(f"{self.name} with bias {self.bias} has no normal code for 1.0")
        return self.bias << self.fraction_bits

    def holds(self, other: FloatFormat) -> bool:
        """Tell whether every finite value of `other` is a value of this format (a conversion is then exact)."""
        if not self.subnormals:
            least = 2.0 ** (other.emin - other.fraction_bits) if other.subnormals else other.smallest_normal
            if least < self.smallest_normal:
                return False
        return (
            self.precision >= other.precision
            and self._largest >= other._largest
            and self.emin - self.fraction_bits <= other.emin - other.fraction_bits
        )

    @property
    def _largest(self) -> tuple[int, int]:
        """The largest finite value, to be compared with another format's: exponent, and fraction in 2**-23."""
        fraction = self.max_finite & (1 << self.fraction_bits) - 1
        return self.emax, fraction << (23 - self.fraction_bits)


FP32 = FloatFormat("float32", 8, 23)
FP16 = FloatFormat("float16", 5, 10)
BF16 = FloatFormat("bfloat16", 8, 7)
CBFLOAT16 = FloatFormat("cbfloat16", 6, 9)
CB16 = FloatFormat("cb16", 6, 9, bias=42)
FLOAT8_E4M3FN = FloatFormat("float8_e4m3fn", 4, 3, specials="fn")
FLOAT8_E5M2 = FloatFormat("float8_e5m2", 5, 2)
FLOAT8_E4M3FNUZ = FloatFormat("float8_e4m3fnuz", 4, 3, specials="fnuz")
FLOAT8_E5M2FNUZ = FloatFormat("float8_e5m2fnuz", 5, 2, specials="fnuz")
FLOAT6_E2M3FN = FloatFormat("float6_e2m3fn", 2, 3, specials="finite")
FLOAT6_E3M2FN = FloatFormat("float6_e3m2fn", 3, 2, specials="finite")
FLOAT4_E2M1FN = FloatFormat("float4_e2m1fn", 2, 1, specials="finite")
DLFLOAT16 = FloatFormat("dlfloat16", 6, 9, specials="merged", subnormals=False, normal_zero_field=True)

#: The named formats of 16 and 32 bits, which results may be accumulated in; units for all of them are released.
WIDE_FORMATS = (FP32, FP16, BF16, CBFLOAT16, CB16)

#: The named formats of 8 bits and fewer, by the names of ml_dtypes and PyTorch.
NARROW_FORMATS = (
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2FNUZ,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT4_E2M1FN,
)

#: Formats of other machines that are neither accumulated in nor of 8 bits and fewer (NUMERICS section 13).
NEIGHBOUR_FORMATS = (DLFLOAT16,)

#: The named formats. A new format is one line above and its name in one of the three lists.
FORMATS = (*WIDE_FORMATS, *NARROW_FORMATS, *NEIGHBOUR_FORMATS)

#: The 16-bit formats that a model is trained in, in the order of their index in a unit that has them all.
HALF_FORMATS = (CBFLOAT16, FP16, BF16)

#: The named formats of 16 bits that results may be accumulated in.
SIXTEEN_BIT_FORMATS = tuple(fmt for fmt in WIDE_FORMATS if fmt.width == 16)

#: Source and destination of every released converter.
CONVERSIONS = tuple(permutations(WIDE_FORMATS, 2))

#: Other names of the formats.
ALIASES = {"fp32": FP32, "fp16": FP16, "bf16": BF16}


def format_named(name: str) -> FloatFormat:
    """Return the format of that name or alias.

    Parameters
    ----------
    name : str
        The name of one of `FORMATS`, such as ``cbfloat16``, or one of `ALIASES`, such as ``fp32``.

    Raises
    ------
    TypeError
        If `name` is not a string.
    ValueError
        If there is no such format; the message lists the names.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: got {name!r}, must be a string")
    by_name = {fmt.name: fmt for fmt in FORMATS} | ALIASES
    if name not in by_name:
        raise ValueError(f"name: got {name!r}, must be one of {', '.join(by_name)}{did_you_mean(name, by_name)}")
    return by_name[name]


def as_format(fmt: FloatFormat | str, argument: str) -> FloatFormat:
    """Accept a format or its name; the error names the argument and the allowed values."""
    if isinstance(fmt, FloatFormat):
        return fmt
    if not isinstance(fmt, str):
        raise TypeError(f"{argument}: got {fmt!r}, must be a FloatFormat or the name of one")
    try:
        return format_named(fmt)
    except ValueError:
        names = [known.name for known in FORMATS]
        meant = did_you_mean(fmt, [*names, *ALIASES])
        raise ValueError(
            f"{argument}: got {fmt!r}, must be a FloatFormat or one of {', '.join(names)}{meant}"
        ) from None
