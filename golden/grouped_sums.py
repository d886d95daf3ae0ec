"""Sums of groups, exact within a group: RISC-V's integrated matrix extension, by what an implementer discloses."""

from __future__ import annotations

from dataclasses import dataclass, field

from golden.formats import (
    BF16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    FloatFormat,
    as_format,
)
from golden.machine import UNKNOWN, Machine, Provenance
from golden.rounding import Rounding

__all__ = ["GroupedSums", "riscv_ime"]

#: The roundings of a partial sum, in the words of the extension: to the mode in force, to odd, none.
ROUNDINGS = ("frm", "rto", "xct")
_OPERANDS = (FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, BF16, FP32)
_TOTALS = (FP16, BF16, FP32)
_WIDENING = (1, 2, 4, 8)
#: The tile parameter LAMBDA is at most the root of 65536 / 16.
_MOST_SUB_DOT_PRODUCTS = 64
_REVISION = "integrated-matrix.adoc of riscv/integrated-matrix-extension at 102f354f"


@dataclass(frozen=True)
class GroupedSums(Machine):
    """A machine that adds groups of products exactly, and each group's sum to the total.

    The modes of a product, to nearest even and ties away, toward zero, down and up, are its dynamic mode ``frm``. A
    product has flags. A last group that is not full has products of +0 in the place of those that are missing.

    Parameters
    ----------
    group : int
        Products in a group.
    rnd : str
        What becomes of a group's exact sum before it joins the total: ``"frm"`` rounds it to the format of the total
        in the mode of the product, ``"rto"`` rounds it to odd, ``"xct"`` leaves it exact.
    operand, total : FloatFormat
        Formats of the factors, and of the total and the result.
    provenance : Provenance, optional
        Who says so; it changes no result.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, or not one of those above.
    """

    group: int
    rnd: str
    operand: FloatFormat
    total: FloatFormat
    provenance: Provenance = field(default=UNKNOWN, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.group, int) or isinstance(self.group, bool):
            raise TypeError(f"group: got {self.group!r}, must be an int")
        most = _MOST_SUB_DOT_PRODUCTS * _WIDENING[-1]
        if not 1 <= self.group <= most:
            raise ValueError(f"group: got {self.group}, must be 1 to {most}")
        if not isinstance(self.rnd, str):
            raise TypeError(f"rnd: got {self.rnd!r}, must be one of {', '.join(ROUNDINGS)}")
        if self.rnd not in ROUNDINGS:
            raise ValueError(f"rnd: got {self.rnd!r}, must be one of {', '.join(ROUNDINGS)}")
        for argument in ("operand", "total"):
            given = getattr(self, argument)
            if not isinstance(given, FloatFormat):
                raise TypeError(f"{argument}: got {given!r}, must be a FloatFormat, such as golden.FP16")
        if not self.total.is_ieee:
            raise ValueError(f"total: got {self.total}, must have infinities and subnormals to accumulate in")
        if not isinstance(self.provenance, Provenance):
            raise TypeError(f"provenance: got {self.provenance!r}, must be a Provenance")

    @property
    def outer(self) -> FloatFormat:
        """The format of the total and of the result."""
        return self.total

    @property
    def has_flags(self) -> bool:
        """Whether the flags of a result are known: they are."""
        return True

    @property
    def roundings(self) -> tuple[Rounding, ...]:
        """The modes of the register ``frm``."""
        return tuple(mode for mode in Rounding if mode.value <= Rounding.NEAREST_AWAY.value)

    def check_operand(self, operand: FloatFormat) -> None:
        """Refuse another format than that of the factors.

        Raises
        ------
        ValueError
            If the format is another.
        """
        if operand != self.operand:
            raise ValueError(
                f"operand: got {operand}, must be {self.operand} for the accumulator of {self.provenance.machine}"
            )


def riscv_ime(*, G: int, psm: int, rnd: str, operand: FloatFormat | str, accumulator: FloatFormat | str) -> GroupedSums:
    """Return the accumulator of an implementation of RISC-V's integrated matrix extension (the Zvvm family).

    An implementer discloses (`G`, `psm`, `rnd`) for each width of the accumulator, widening and tile. With ``psm=0``,
    results and flags are then determined. The mode of a product, ``rounding=``, is the machine's ``frm``.

    Parameters
    ----------
    G : int
        Sub-dot-products in a group: a power of two, 1 to 64. A sub-dot-product has as many products as operands fit
        into the width of the accumulator: the widening factor, 1, 2, 4 or 8.
    psm : int
        0: the sum of a group is exact. 1 is refused: its algorithm is what the implementer publishes as code.
    rnd : str
        The rounding of a group's sum before it joins the total: ``"frm"`` (the mode of the product), ``"rto"`` (to
        odd) or ``"xct"`` (none).
    operand : FloatFormat or str
        float4_e2m1fn, float8_e4m3fn, float8_e5m2, float16, bfloat16 or float32.
    accumulator : FloatFormat or str
        float16, bfloat16 or float32: the format of the total and of the result.

    Returns
    -------
    GroupedSums
        For ``reduction=`` of `golden.matmul` and of `golden.dot`, which also returns the flags.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, not one of those above, or `psm` is 1.

    Notes
    -----
    The source is the text of the extension and its code in SAIL (``fp_gemm`` and ``fp_group_sum``), revision 102f354f.
    Defined here, since the text leaves it open: the exact sum of a group that is zero is +0; round-to-odd beyond the
    largest finite value gives that value, as in ``vfncvt.rod``. Mixed operand formats, accumulators of 8 and 64 bits,
    and block scales are not modelled.

    Examples
    --------
    >>> import golden
    >>> rule = golden.accumulators.riscv_ime(G=2, psm=0, rnd="xct", operand="float16", accumulator="float32")
    >>> one = golden.encode([1.0, 2.0**-13, 2.0**-12, 1.0], "float16")
    >>> code, flags = golden.dot(one, one, reduction=rule, operand="float16", return_flags=True)
    >>> hex(code), golden.Flag(int(flags))
    ('0x40000000', <Flag.INEXACT: 1>)
    """
    if not isinstance(G, int) or isinstance(G, bool):
        raise TypeError(f"G: got {G!r}, must be an int, a power of two")
    if not 1 <= G <= _MOST_SUB_DOT_PRODUCTS or G & (G - 1):
        raise ValueError(f"G: got {G}, must be a power of two from 1 to {_MOST_SUB_DOT_PRODUCTS}")
    if not isinstance(psm, int) or isinstance(psm, bool):
        raise TypeError(f"psm: got {psm!r}, must be 0")
    if psm != 0:
        raise ValueError(
            f"psm: got {psm}, must be 0: with 1 the algorithm is what the implementer publishes, and (G, psm, rnd) do "
            "not determine a result; a golden.Accumulator may describe it"
        )
    factors, total = as_format(operand, "operand"), as_format(accumulator, "accumulator")
    for argument, given, known in (("operand", factors, _OPERANDS), ("accumulator", total, _TOTALS)):
        if given not in known:
            raise ValueError(f"{argument}: got {given}, must be one of {', '.join(map(str, known))}")
    widening, rest = divmod(total.width, factors.width)
    if rest or widening not in _WIDENING:
        raise ValueError(
            f"operand: got {factors} with the accumulator {total}, must be 1, 2, 4 or 8 times narrower than it"
        )
    about = Provenance(
        machine=f"RISC-V with the integrated matrix extension, G={G}, psm=0, rnd={rnd}",
        instructions={1: "vfmmacc.vv", 2: "vfwmmacc.vv", 4: "vfqmmacc.vv", 8: "vf8wmmacc.vv"}[widening],
        formats=(str(factors),),
        source=_REVISION,
        documented="groups of exact sums, their rounding, the accumulation in the dynamic mode, flags, the default NaN",
        reverse_engineered="nothing",
        unknown="the sign of a group's exact zero, here +0; to odd beyond the largest value, here that value",
    )
    return GroupedSums(G * widening, rnd, factors, total, about)
