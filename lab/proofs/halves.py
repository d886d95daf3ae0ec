"""The two halves of a fused step as components: up to the product, and from it on.

A step is cut at its product: before the cut it has three numbers, two of which are multiplied; after it, two.
The proof of the second half assumes only properties that the proof of the first half shows.
"""

from __future__ import annotations

from typing import Any

from amaranth import C, Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.bundle import Bundle
from hdl.cores.fused_step import add_product, code_of, multiply_operands
from hdl.cores.multiplier import Multiplier
from hdl.cores.operand import split_code
from hdl.cores.outcome import align_result, finish, pack_result
from hdl.cores.result import result_layout
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import select_width
from lab.proofs.cut import HANDED_ON

__all__ = ["FirstHalf", "SecondHalf"]


def _choices(formats: StepFormats) -> dict[str, Any]:
    return {
        "format": In(select_width(len(formats.operands))),
        "accumulator_format": In(select_width(len(formats.accumulators))),
    }


class FirstHalf(wiring.Component):
    """From the codes of two operands to their product.

    Parameters
    ----------
    formats : StepFormats

    Ports
    -----
    a, b, format, accumulator_format : in
        As of `hdl.cores.fused_step.FusedStep`.
    a_significand, a_exponent, b_significand, b_exponent : out
        The numbers that are multiplied, and added.
    significand, exponent, sign, is_infinite, is_nan, invalid : out
        The result of `multiply_operands`.
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        width, exponent = formats.operand_precision, signed(formats.product_exponent_width)
        super().__init__(
            {
                **{name: In(formats.operand_width) for name in ("a", "b")},
                **_choices(formats),
                **{f"{name}_significand": Out(width) for name in ("a", "b")},
                **{f"{name}_exponent": Out(exponent) for name in ("a", "b")},
                "significand": Out(formats.product_width),
                "exponent": Out(exponent),
                **{name: Out(1) for name in ("sign", "is_infinite", "is_nan", "invalid")},
            }
        )

    def after(self, step: str, bundle: Bundle) -> Bundle:
        """Go on in the same cycle, and keep the normalised operands."""
        if step == "operands":
            self._operands = bundle
        return bundle.named(self._m)

    def elaborate(self, platform: object) -> Module:
        self._m = m = Module()
        formats = self.formats
        m.submodules.multiplier = multiplier = Multiplier(formats.operand_precision)
        ordinary = {"is_infinite": C(0, 1), "is_nan": C(0, 1)}
        a, b = (split_code(m, formats.operands, self.format, code).but(**ordinary) for code in (self.a, self.b))
        product = multiply_operands(m, formats, self, multiplier, a, b)
        m.d.comb += [getattr(self, name).eq(value) for name, value in vars(product).items()]
        for name in ("a", "b"):
            m.d.comb += [
                getattr(self, f"{name}_significand").eq(getattr(multiplier, name)),
                getattr(self, f"{name}_exponent").eq(getattr(self._operands, name).exponent),
            ]
        return m


class SecondHalf(wiring.Component):
    """From a product and an accumulator to the result.

    Parameters
    ----------
    formats : StepFormats

    Ports
    -----
    significand, exponent, sign, is_infinite, is_nan, invalid : in
        The outputs of `FirstHalf`.
    acc, format, accumulator_format : in
    rounding, random : in
        The fields of `formats.controls`, as far as it has any.
    o : result_layout(formats.accumulator_width), out
    swamped : out
        As of `hdl.cores.fused_step.FusedStep`; absent unless asked for.
    """

    def __init__(self, formats: StepFormats, *, with_swamped: bool = False) -> None:
        self.formats, self.with_swamped = formats, with_swamped
        super().__init__(
            {
                "significand": In(formats.product_width),
                "exponent": In(signed(formats.product_exponent_width)),
                **{name: In(1) for name in ("sign", "is_infinite", "is_nan", "invalid")},
                "acc": In(formats.accumulator_width),
                **_choices(formats),
                **{name: In(field.shape) for name, field in formats.controls},
                "o": Out(result_layout(formats.accumulator_width)),
                **({"swamped": Out(1)} if with_swamped else {}),
            }
        )

    @property
    def controls(self) -> SecondHalf:
        """The ports ``rounding`` and ``random``."""
        return self

    def after(self, step: str, bundle: Bundle) -> Bundle:
        """Go on in the same cycle."""
        return bundle.named(self._m)

    def elaborate(self, platform: object) -> Module:
        self._m = m = Module()
        formats, index = self.formats, self.accumulator_format
        number, its_class = code_of(m, formats, self, self.acc)
        product = Bundle(**{name: getattr(self, name) for name in HANDED_ON})
        rounded = add_product(m, formats, self, product, lambda: number, lambda: its_class, watches=self.with_swamped)
        finished = finish(m, formats, index, rounded)
        m.d.comb += [
            self.o.bits.eq(pack_result(formats, index, align_result(formats, index, rounded), finished)),
            self.o.flags.eq(finished.flags),
        ]
        if self.with_swamped:
            m.d.comb += self.swamped.eq(finished.swamped)
        return m
