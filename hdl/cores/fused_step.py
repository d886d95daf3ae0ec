"""One fused step: the order of its cores, and its combinational form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from amaranth import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.bundle import Bundle
from hdl.cores.far import add_far, align_by_groups, align_within, compare_exponents, exponent_difference
from hdl.cores.multiplier import Multiplier
from hdl.cores.near import count_leading_digits, first_shift, near_difference, second_shift
from hdl.cores.operand import (
    classify_flushed,
    inspect_flushed,
    inspect_operand,
    normalise_operand,
    places_left,
    split_code,
)
from hdl.cores.outcome import align_result, decide_class, finish, pack_result
from hdl.cores.product import combine_operands, normalise_product, product_bias
from hdl.cores.result import result_layout
from hdl.cores.round_step import join_paths, normalise_sum, round_sum
from hdl.cores.specials import is_special_field
from hdl.cores.step_formats import StepFormats
from hdl.cores.swamping import watch_addends, watch_distance
from hdl.cores.words import choose, named, select_width

__all__ = ["FusedStep", "Pipe", "add_product", "code_of", "multiply_operands"]


class Pipe(Protocol):
    """The pipeline around a step: register ranks, or none."""

    @property
    def format(self) -> Any:
        """Index of the operand format of the step at this point."""

    @property
    def accumulator_format(self) -> Any:
        """Index of the accumulator format of the step."""

    @property
    def controls(self) -> Any:
        """Rounding mode and random number of the step: the fields of `StepFormats.controls`, if there are any."""

    def after(self, step: str, bundle: Bundle) -> Bundle:
        """Return the results of a step: in the same cycle, or one cycle later."""


def multiply_operands(
    m: Module, formats: StepFormats, pipe: Pipe, multiplier: Multiplier, a: Bundle, b: Bundle
) -> Bundle:
    """Multiply two operands as `split_code` returns them, exactly.

    ::

        split code | inspect | normalise | multiply |
                issue     unpack     operands    product       the names of the ranks

    Returns
    -------
    Bundle
        The result of `combine_operands`, and ``significand``.
    """
    bias = product_bias(m, formats, pipe.format, pipe.accumulator_format)
    # A single bias is a constant, which needs no register.
    chosen = {"bias": bias} if len(formats.operands) * len(formats.accumulators) > 1 else {}
    split = pipe.after("issue", Bundle(a=a, b=b, **chosen))
    if formats.flushes:
        are_numbers = named(m, "are_numbers", split.a.is_normal & split.b.is_normal)
        a, b = (
            inspect_flushed(formats.operands, pipe.format, each, mask)
            for each, mask in ((split.a, are_numbers), (split.b, C(1)))
        )
    else:
        a, b = (inspect_operand(m, formats.operands, pipe.format, each) for each in (split.a, split.b))
        # Half of the place within a group: the other half is found behind the rank, which has more time.
        a, b = (each.but(within=each.within[1]) for each in (a, b))
    biased = Signal(signed(formats.product_exponent_width), name="biased_exponent")
    m.d.comb += biased.eq(a.exponent + (split.bias if chosen else bias))
    inspected = pipe.after("unpack", Bundle(a=a.but(exponent=biased), b=b))
    if formats.flushes:
        a, b = classify_flushed(inspected.a), classify_flushed(inspected.b)
    else:
        a, b = (
            normalise_operand(m, each.but(within=Cat(named(m, "odd", places_left(each.significand)[0]), each.within)))
            for each in (inspected.a, inspected.b)
        )
    # The multiplier contains the ranks around it.
    m.d.comb += [multiplier.a.eq(a.significand), multiplier.b.eq(b.significand)]
    del a.significand, b.significand
    operands = pipe.after("operands", Bundle(a=a, b=b))
    product = pipe.after("product", combine_operands(m, formats, operands.a, operands.b))
    return product.but(significand=multiplier.o)


def add_product(
    m: Module,
    formats: StepFormats,
    pipe: Pipe,
    product: Bundle,
    read: Callable[[], Bundle],
    read_class: Callable[[], Bundle],
    *,
    kind: str = "generic",
    watches: bool = False,
    may_be_subnormal: bool = False,
) -> Bundle:
    """Add a product to the accumulator on two parallel paths, and round.

    ::

                 read    |   compare   |      shift      |        align        |       add       |
        far:   exponents | sort, align | align by groups | add                 |        -        | normalise | round
        near:      -     | subtract    | count digits    | shift left by 16, 8 | shift left by 4 |

    Parameters
    ----------
    product : Bundle
        The result of `multiply_operands`.
    read : function
        Returns the accumulator at rank ``read``: ``sign``, ``exponent`` and ``significand``. The exponent of a
        subnormal is 1; where these are flushed, that of a zero is 0.
    read_class : function
        Returns its class at rank ``align``, where it is first needed: ``is_infinite``, ``is_nan``, ``invalid``.
    kind : str
        One of `hdl.cores.multiplier.MULTIPLIERS`.
    watches : bool
        Whether to watch for a lost product.
    may_be_subnormal : bool
        Whether a product with the smallest exponent may have no leading one, as a subnormal accumulator has none.

    Returns
    -------
    Bundle
        The result of `round_sum`, ``outcome``, and ``is_special``, whether that overrides the number; with `watches`
        also ``watched``, from `hdl.cores.swamping.watch_addends`.
    """
    accumulator = read()
    difference = exponent_difference(m, product, accumulator)
    step = pipe.after(
        "read",
        Bundle(
            product=normalise_product(m, product),
            accumulator=accumulator,
            difference=difference,
            subtract=product.sign ^ accumulator.sign,
        ),
    )

    product, accumulator, difference = step.product, step.accumulator, step.difference
    compared = compare_exponents(difference)
    lower = compared.product_is_lower
    is_upper = lower | ~difference.any() if may_be_subnormal else lower
    watched = {}
    if watches:
        index = pipe.accumulator_format
        watched["watched"] = watch_addends(formats, index, product, accumulator, compared, step.subtract)
    step = pipe.after(
        "compare",
        Bundle(
            far=align_within(m, formats, product, accumulator, compared),
            near=near_difference(m, formats, product, accumulator, difference[:2], kind),
            is_apart=compared.distance[1] | (lower & compared.distance[0]),
            # The product's may be one or two less: `is_less`, and on the near path `is_above`, too.
            exponent=Mux(lower, accumulator.exponent, product.exponent)[: formats.exponent_width],
            is_less=~lower & product.is_below_2,
            is_above=~lower & difference[0],
            # Only a subnormal, or a zero, that is the upper addend leads to a sum without a leading one up there.
            at_smallest=C(0, 1) if formats.flushes else is_upper & (accumulator.exponent == 1),
            upper_sign=Mux(lower, accumulator.sign, product.sign),
            product=product.without("significand", "exponent", "is_below_2"),
            accumulator=Bundle(sign=accumulator.sign, lowest=accumulator.exponent[:2]),
            subtract=step.subtract,
            **watched,
        ),
    )

    if watches:
        watched["watched"] = watch_distance(formats, pipe.accumulator_format, step.watched)
    # One place above, level, or one place below. The last gate is behind the rank, which has more time.
    is_near = named(m, "is_near", step.subtract & ~Cat(step.is_apart, step.far.groups).any())
    near = count_leading_digits(m, step.near)
    step = pipe.after(
        "shift",
        Bundle(
            is_near=is_near,
            near=near,
            far=align_by_groups(m, step.far).but(subtract=step.subtract, add=~step.subtract),
            **{name: getattr(step, name) for name in ("exponent", "is_less", "is_above", "at_smallest", "upper_sign")},
            product=step.product,
            accumulator=step.accumulator,
            **watched,
        ),
    )

    is_near, at_smallest = step.is_near, step.at_smallest
    step = pipe.after(
        "align",
        Bundle(
            near=first_shift(m, step.near, is_near).but(lowest=step.accumulator.lowest),
            far=Bundle(
                is_near=is_near,
                # As on the near path, the reset of its register clears the unused word, without a LUT.
                sum=named(m, "far_cleared", Mux(is_near, 0, add_far(m, step.far, kind))),
                subtract=step.far.subtract & ~is_near,
                exponent=step.exponent,
                less=(step.is_less + (is_near & step.is_above))[:2],
                within=Mux(is_near, 0, Cat(at_smallest, ~at_smallest)),
                sign=Mux(is_near, step.product.sign, step.upper_sign),
            ),
            product=step.product,
            accumulator=read_class().but(sign=step.accumulator.sign),
            **_watched(step),
        ),
    )

    controls = pipe.controls if formats.controls.size else None
    total = join_paths(m, formats, pipe.accumulator_format, step.near, second_shift(m, step.near), step.far, controls)
    outcome = decide_class(step.product, step.accumulator)
    step = pipe.after("add", Bundle(total=total, outcome=outcome, **_watched(step)))
    controls = pipe.controls if formats.controls.size else None
    normal = normalise_sum(m, formats, pipe.accumulator_format, step.total, controls)
    step = pipe.after("normalise", Bundle(normal=normal, outcome=step.outcome, **_watched(step)))
    controls = pipe.controls if formats.controls.size else None
    rounded = round_sum(m, formats, pipe.accumulator_format, step.normal, controls)
    # From here on, the sign also serves an infinity.
    sign = Mux(step.outcome.is_infinite, step.outcome.infinite_sign, rounded.sign)
    is_special = named(m, "is_special", step.outcome.is_infinite | step.outcome.is_nan)
    return rounded.but(sign=sign, is_special=is_special, outcome=step.outcome, **_watched(step))


def _watched(step: Bundle) -> dict[str, Bundle]:
    """Return the step's ``watched`` bundle, if it has one, for the next step."""
    return {"watched": step.watched} if "watched" in vars(step) else {}


def code_of(m: Module, formats: StepFormats, pipe: Pipe, code: Value) -> tuple[Bundle, Bundle]:
    """Split an accumulator's code into number and class for `add_product`."""
    index = pipe.accumulator_format
    split = split_code(m, formats.accumulators, index, code)
    is_ones = choose(index, [is_special_field(fmt, split.field) for fmt in formats.accumulators])
    has_fraction = split.fraction.any()
    fraction, lowest = split.fraction, split.field[0] | ~split.is_normal
    if formats.flushes:
        fraction, lowest = split.fraction & split.is_normal.replicate(len(split.fraction)), split.field[0]
    number = Bundle(
        sign=split.sign,
        exponent=Cat(lowest, split.field[1:]),
        significand=Cat(fraction, split.is_normal),
    )
    return number, Bundle(
        is_infinite=is_ones & ~has_fraction,
        is_nan=is_ones & has_fraction,
        invalid=is_ones & has_fraction & ~split.fraction[-1],
    )


class FusedStep(wiring.Component):
    """``round(a * b + acc)``, one rounding. Combinational.

    Parameters
    ----------
    formats : StepFormats
    with_flags : bool
        Whether flags are computed; they are 0 otherwise.
    with_swamped : bool
        Whether to report a lost product.

    Ports
    -----
    a, b : unsigned(formats.operand_width), in
        Codes, in the low bits.
    acc : unsigned(formats.accumulator_width), in
    format, accumulator_format : unsigned, in
        Indices into `formats.operands` and `formats.accumulators`.
    rounding, random : in
        The fields of `formats.controls`, if there are any.
    o : result_layout(formats.accumulator_width), out
    swamped : out
        The result has the value of the finite accumulator, and the product is finite and not zero (NUMERICS
        section 11); absent without `with_swamped`.
    """

    def __init__(self, formats: StepFormats, *, with_flags: bool = True, with_swamped: bool = False) -> None:
        self.formats, self.with_flags, self.with_swamped = formats, with_flags, with_swamped
        super().__init__(
            {
                "a": In(formats.operand_width),
                "b": In(formats.operand_width),
                "acc": In(formats.accumulator_width),
                "format": In(select_width(len(formats.operands))),
                "accumulator_format": In(select_width(len(formats.accumulators))),
                **{name: In(field.shape) for name, field in formats.controls},
                "o": Out(result_layout(formats.accumulator_width)),
                **({"swamped": Out(1)} if with_swamped else {}),
            }
        )

    @property
    def controls(self) -> FusedStep:
        """The ports ``rounding`` and ``random``."""
        return self

    def after(self, step: str, bundle: Bundle) -> Bundle:
        """Continue in the same cycle; name every value."""
        return bundle.named(self._m)

    def elaborate(self, platform: object) -> Module:
        self._m = m = Module()
        formats = self.formats
        m.submodules.multiplier = multiplier = Multiplier(formats.operand_precision)
        ordinary = {"is_infinite": C(0, 1), "is_nan": C(0, 1)}
        a, b = (split_code(m, formats.operands, self.format, code).but(**ordinary) for code in (self.a, self.b))
        number, its_class = code_of(m, formats, self, self.acc)
        product = multiply_operands(m, formats, self, multiplier, a, b)
        rounded = add_product(m, formats, self, product, lambda: number, lambda: its_class, watches=self.with_swamped)
        index = self.accumulator_format
        finished = finish(m, formats, index, rounded, with_flags=self.with_flags)
        m.d.comb += [
            self.o.bits.eq(pack_result(formats, index, align_result(formats, index, rounded), finished)),
            self.o.flags.eq(finished.flags),
        ]
        if self.with_swamped:
            m.d.comb += self.swamped.eq(finished.swamped)
        return m
