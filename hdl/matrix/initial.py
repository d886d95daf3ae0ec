"""Initial values of a tile: from codes of the outer format to what a lane takes in place of its accumulator."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data

from hdl.cores.bundle import Bundle
from hdl.cores.operand import split_code
from hdl.cores.specials import is_special_field
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, named
from hdl.mac.operation import operation_layout
from hdl.matrix.parameters import MatrixParameters
from hdl.matrix.ports import initial_fields

__all__ = ["array_operation_layout", "either_of", "one_as_code", "split_initial"]


def array_operation_layout(parameters: MatrixParameters) -> data.StructLayout:
    """Return the layout of an operation of all lanes: `operation_layout` and `initial_fields`."""
    return data.StructLayout({**operation_layout(parameters).members, **initial_fields(parameters)})


def one_as_code(formats: StepFormats, index: Value) -> Bundle:
    """Return 1.0 as `hdl.cores.operand.split_code` gives it: the first factor of an operation that loads."""
    width = max(fmt.exponent_bits for fmt in formats.operands)
    return Bundle(
        sign=C(0, 1),
        field=choose(index, [C(fmt.bias, width) for fmt in formats.operands]),
        fraction=C(0, formats.operand_precision - 1),
        is_normal=C(1, 1),
    )


def split_initial(m: Module, formats: StepFormats, index: Value, code: Value) -> tuple[Bundle, Bundle]:
    """Split an initial value into a number and a factor: number + 1.0 * factor is that value, exactly.

    ::

        finite      number: the value      factor: a zero of its sign, so that +0 and -0 stay in every rounding mode
        special     number: anything       factor: infinity, NaN, signalling NaN

    A lane thereby needs no path for the class of an initial value, and a signalling NaN raises its flag.

    Parameters
    ----------
    m : Module
    formats : StepFormats
    index : Value
        Which of the accumulators' formats the code has.
    code : Value

    Returns
    -------
    number : Bundle
        The fields of `hdl.mac.lane.number_layout`. Where subnormals are flushed, they are zeros without ``was_normal``.
    factor : Bundle
        As `hdl.cores.operand.split_code` gives it.
    """
    split = split_code(m, formats.accumulators, index, code)
    is_special = named(
        m, "initial_is_special", choose(index, [is_special_field(fmt, split.field) for fmt in formats.accumulators])
    )
    width = max(fmt.exponent_bits for fmt in formats.operands)
    number = Bundle(fraction=split.fraction, field=split.field, was_normal=split.is_normal, sign=split.sign)
    is_quiet, is_signalling = is_special & split.fraction[-1], is_special & split.fraction[:-1].any()
    # Of the two, the quiet bit decides.
    low = formats.operand_precision - 3
    fraction = Cat(C(0, low), is_signalling, is_quiet)
    factor = Bundle(sign=split.sign, field=is_special.replicate(width), fraction=fraction, is_normal=is_special)
    return number, factor


def either_of(loads: Value, factor: Bundle, code: Bundle) -> Bundle:
    """Return the factor of an operation that loads, or the operand of a product."""
    return Bundle(**{name: Mux(loads, getattr(factor, name), value) for name, value in vars(code).items()})
