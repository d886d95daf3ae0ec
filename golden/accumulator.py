"""The family of arithmetic to which the accumulators of other machines belong; `golden.presets` holds its members.

A machine takes the products of a dot product block by block. Within a block it forms fused sums: terms are aligned at
the largest exponent, cut at some bit below it, added exactly and rounded once. A fused multiply-add is a fused sum of
two terms that are not cut. A tree of adders is a list of stages of such sums. A tensor core is a single fused sum, in
which the running total is a term like the products.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any

from golden.formats import FP16, FP32, FloatFormat
from golden.machine import UNKNOWN, Machine, Provenance
from golden.rounding import Rounding, as_rounding

__all__ = ["OPERAND_BITS", "Accumulator", "FusedSum", "Provenance"]

#: Widths of operands for which an accumulator is made; each takes those of fewer bits, down to the next width.
OPERAND_BITS = (8, 16, 19)

_CUTS = (Rounding.TOWARD_ZERO, Rounding.DOWN, Rounding.TO_ODD)
_ROUNDINGS = (Rounding.NEAREST_EVEN, Rounding.TOWARD_ZERO, Rounding.TO_ODD)
_FLUSHES = ("none", "signed", "positive")
_MOST_PRODUCTS = 64


@dataclass(frozen=True, init=False)
class FusedSum:
    """One sum: its terms are aligned and cut, added exactly, and the sum is rounded once.

    A product is aligned by the sum of its factors' exponents, a value that was rounded before by its own exponent.
    Subnormal values and zeros have the format's smallest exponent, unless an `Accumulator` says otherwise.

    Parameters
    ----------
    terms : int
        How many are added. In the join of an `Accumulator` the running total is one of them.
    fraction_bits : int or None
        The bits that a term keeps below the bit of the largest exponent; None: terms are not cut, and there are at most
        two of them unless `chain`.
    cut : Rounding or str
        How a term loses its other bits: ``toward_zero``, ``down`` or ``to_odd``.
    rounding : Rounding, str or None
        How the sum is rounded: ``nearest_even``, ``toward_zero`` or ``to_odd``. None: the sum stays as it is, with the
        exponent at which it was aligned, and only terms that are cut allow it. A negative sum that rounding toward zero
        loses is +0; so is one of cut terms that any rounding to float16 loses.
    result : FloatFormat
        What the sum is rounded to: float32, a format of its exponents with fewer fraction bits, or float16.
    chain : bool
        The terms are added one after the other, from +0 or, in a join, from the total; each sum is rounded.
    interleaved : bool
        A stage with n sums gives sum i the terms i, i + n, i + 2n, ...; otherwise it takes neighbours.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, or not one of those above.
    """

    terms: int
    fraction_bits: int | None
    cut: Rounding
    rounding: Rounding | None
    result: FloatFormat
    chain: bool
    interleaved: bool

    def __init__(
        self,
        terms: int,
        fraction_bits: int | None = None,
        cut: Rounding | str = Rounding.TOWARD_ZERO,
        rounding: Rounding | str | None = Rounding.NEAREST_EVEN,
        result: FloatFormat = FP32,
        chain: bool = False,
        interleaved: bool = False,
    ) -> None:
        # Names of modes are accepted, and a sum has the modes themselves: one type for both would be wrong for one.
        given = {
            "terms": terms,
            "fraction_bits": fraction_bits,
            "cut": as_rounding(cut, "cut"),
            "rounding": None if rounding is None else as_rounding(rounding, "rounding"),
            "result": result,
            "chain": chain,
            "interleaved": interleaved,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        _check_count(self.terms, "terms", 1, _MOST_PRODUCTS + 1)
        if not isinstance(self.chain, bool):
            raise TypeError(f"chain: got {self.chain!r}, must be True or False")
        if self.fraction_bits is not None:
            _check_count(self.fraction_bits, "fraction_bits", 1, 40)
            if self.chain:
                raise ValueError("chain: got True with fraction_bits, a chain does not cut its terms")
        elif not self.chain and self.terms > 2:
            raise ValueError(f"terms: got {self.terms} that are not cut, must be 1 or 2, or a chain")
        elif self.rounding is None:
            raise ValueError("rounding: got None, must be given where terms are not cut")
        if self.cut not in _CUTS:
            raise ValueError(f"cut: got {self.cut}, must be {', '.join(each.name.lower() for each in _CUTS)}")
        if self.rounding is not None and self.rounding not in _ROUNDINGS:
            names = ", ".join(each.name.lower() for each in _ROUNDINGS)
            raise ValueError(f"rounding: got {self.rounding}, must be {names} or None")
        fmt = self.result
        if not isinstance(fmt, FloatFormat):
            raise TypeError(f"result: got {fmt!r}, must be a FloatFormat, such as golden.FP32")
        if fmt == FP16:
            return
        if (fmt.exponent_bits, fmt.bias) != (FP32.exponent_bits, FP32.bias) or fmt.fraction_bits > FP32.fraction_bits:
            raise ValueError(
                f"result: got {fmt}, must be float16, or have the exponents of float32 and at most its fraction bits"
            )
        if self.rounding is Rounding.NEAREST_EVEN and fmt != FP32:
            raise ValueError(f"result: got {fmt}, must be float32 or float16 to round to nearest even")

    @property
    def loses_sign(self) -> bool:
        """Whether a negative sum that rounding loses is +0."""
        is_cut_to_half = self.result == FP16 and self.fraction_bits is not None
        return self.rounding is Rounding.TOWARD_ZERO or is_cut_to_half


@dataclass(frozen=True)
class Accumulator(Machine):
    """How a machine accumulates a dot product in float32 or float16.

    The products of a block, in order, go through `stages`; `join` adds the last sums to the total. A block that is not
    full is filled with products of +0. A result beyond the largest finite value is infinite in every rounding.

    The total is in float16 if `join` rounds to it, else in float32; `outer` names the format. It is that of initial
    values and results, too.

    Parameters
    ----------
    operand_bits : int
        Width of the operands: 8, 16 or 19. (`golden.dot` takes every format of up to 8, of 9 to 16, or of 17 to 19
        bits; TF32 is ``FloatFormat("tf32", 8, 10)``.)
    block : int
        Products in a block, at most 64.
    stages : tuple of FusedSum
        The first sums products, each later one the results of the one before.
    join : FusedSum
        Adds what the last stage leaves to the total. It alone may round to float16, and then without `flush` and
        `promote_every`.
    order : tuple of int
        The order in which the products of a block are taken; () is as they come.
    total_fraction_bits : int or None
        Where the join cuts the total, if not where it cuts the other terms.
    total_reach : int or None
        A total whose exponent is more than this below the largest of its join counts as 0; None: no such limit.
    zero_exponent : int or None
        Exponent of a factor that is 0, -1000 to 256; None: a product that is 0 takes no part in the alignment.
    zero_total_exponent : int
        Exponent of a total that is 0, -1000 to 256, where the join aligns its terms.
    products_overflow : bool
        A finite product of 2**128 and more is infinite, unless the block or the total has an infinity or a NaN.
    flush : str
        ``"none"``. ``"signed"``: subnormal operands and totals count as zeros of their sign; so do results that would
        be below the smallest normal value if they were rounded with an unbounded exponent. ``"positive"``: subnormal
        operands and totals, and zeros among them, count as +0; results that are subnormal, as zeros of their sign.
    depth : int or None
        Products of an instruction, a multiple of `block`: the total is flushed where one begins, as it does anew after
        each promotion. None: at every block.
    promote_every : int or None
        After this many products, a multiple of `block`, the total joins an outer float32 sum, rounded to nearest even,
        and starts from +0 again; None: never.
    nan : int
        Code of a result that is a NaN, in the format of the total.
    without_flags : bool
        The machine raises no flags: those of a product are 0. Otherwise they are not modelled, and refused.
    provenance : Provenance, optional
        Who says so; it changes no result.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, or the counts of terms do not fit together.
    """

    operand_bits: int
    block: int
    join: FusedSum
    provenance: Provenance = field(default=UNKNOWN, repr=False, compare=False)
    stages: tuple[FusedSum, ...] = ()
    order: tuple[int, ...] = ()
    total_fraction_bits: int | None = None
    total_reach: int | None = None
    zero_exponent: int | None = None
    zero_total_exponent: int = FP32.emin
    products_overflow: bool = False
    flush: str = "none"
    depth: int | None = None
    promote_every: int | None = None
    nan: int = FP32.nan
    without_flags: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        if self.operand_bits not in OPERAND_BITS:
            raise ValueError(
                f"operand_bits: got {self.operand_bits}, must be one of {', '.join(map(str, OPERAND_BITS))}"
            )
        _check_count(self.block, "block", 1, _MOST_PRODUCTS)
        left = self.block
        for stage in self.stages:
            if left % stage.terms:
                raise ValueError(f"stages: got sums of {stage.terms} terms, must divide the {left} terms before them")
            left //= stage.terms
        if self.join.terms != left + 1:
            raise ValueError(f"join: got {self.join.terms} terms, must be {left + 1}: {left} sums, and the total")
        if self.join.rounding is None:
            raise ValueError("join: got rounding None, must round the total")
        if self.order and sorted(self.order) != list(range(self.block)):
            raise ValueError(f"order: got {self.order}, must be () or the numbers 0 to {self.block - 1} in some order")
        if self.flush not in _FLUSHES:
            raise ValueError(f"flush: got {self.flush!r}, must be {', '.join(_FLUSHES)}")
        for argument in ("depth", "promote_every"):
            given = getattr(self, argument)
            if given is not None:
                _check_count(given, argument, 1, 2**31)
                if given % self.block:
                    raise ValueError(f"{argument}: got {given}, must be a multiple of block {self.block}")
        self._check_total()

    def _check_total(self) -> None:
        """Refuse what only goes with a total in float32."""
        for stage in self.stages:
            if stage.result == FP16:
                raise ValueError(
                    "stages: got a sum rounded to float16, must have the exponents of float32; join may be"
                )
        if self.outer == FP16:
            for argument, without in (("flush", "none"), ("promote_every", None)):
                given = getattr(self, argument)
                if given != without:
                    raise ValueError(f"{argument}: got {given!r}, must be {without!r} with a total in float16")
        if self.nan >> self.outer.width or not self.outer.is_nan(self.nan):
            raise ValueError(f"nan: got {self.nan:#x}, must be a NaN of {self.outer}")

    def _check_types(self) -> None:
        """Name the argument that is of another type than it must be."""
        kinds: dict[str, tuple[type, ...]] = {
            "operand_bits": (int,),
            "join": (FusedSum,),
            "provenance": (Provenance,),
            "stages": (tuple,),
            "order": (tuple,),
            "total_fraction_bits": (int, NoneType),
            "total_reach": (int, NoneType),
            "zero_exponent": (int, NoneType),
            "zero_total_exponent": (int,),
            "products_overflow": (bool,),
            "flush": (str,),
            "without_flags": (bool,),
            "nan": (int,),
        }
        for argument, kind in kinds.items():
            given = getattr(self, argument)
            if not isinstance(given, kind) or (isinstance(given, bool) and bool not in kind):
                names = " or ".join("None" if each is NoneType else each.__name__ for each in kind)
                raise TypeError(f"{argument}: got {given!r}, must be {names}")
        for argument, item in (("stages", FusedSum), ("order", int)):
            given = getattr(self, argument)
            if not all(isinstance(each, item) for each in given):
                raise TypeError(f"{argument}: got {given!r}, must be a tuple of {item.__name__}")
        for argument, least, most in (
            ("total_fraction_bits", 1, 40),
            ("total_reach", 1, 40),
            ("zero_exponent", -1000, 256),
            ("zero_total_exponent", -1000, 256),
            ("nan", 0, 2**32 - 1),
        ):
            if getattr(self, argument) is not None:
                _check_count(getattr(self, argument), argument, least, most)

    def __hash__(self) -> int:
        known = vars(self).get("_hash")
        if known is None:  # of many parts, and asked for in every call
            parts = (getattr(self, each.name) for each in fields(self) if each.compare)
            known = vars(self)["_hash"] = hash(tuple(parts))
        return int(known)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}  # it differs between processes

    @property
    def outer(self) -> FloatFormat:
        """The format of the total and of the result: float32 or float16."""
        return FP16 if self.join.result == FP16 else FP32

    @property
    def has_flags(self) -> bool:
        """Whether the flags of a result are known: a machine that raises none has none."""
        return self.without_flags

    def check_operand(self, operand: FloatFormat) -> None:
        """Refuse operands of another width, for which the machine has another rule or none.

        Raises
        ------
        ValueError
            If the operand's width is not that of the machine's operands.
        """
        highest = self.operand_bits
        lowest = 1 + max((bits for bits in OPERAND_BITS if bits < highest), default=0)
        if not lowest <= operand.width <= highest:
            names = ", ".join(self.provenance.formats)
            machine = self.provenance.machine + (f" ({names})" if names else "")
            raise ValueError(
                f"operand: got {operand} of {operand.width} bits, must have {lowest} to {highest} bits for the "
                f"accumulator of {machine}; golden.accumulators names those for other widths"
            )


def _check_count(given: object, argument: str, least: int, most: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{argument}: got {given!r}, must be an int")
    if not least <= given <= most:
        raise ValueError(f"{argument}: got {given}, must be {least} to {most}")
