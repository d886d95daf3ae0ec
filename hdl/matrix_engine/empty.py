"""Elements of C as the results of empty reductions, K = 0."""

from __future__ import annotations

from amaranth import Module, Mux, Value

from hdl.cores.bundle import Bundle
from hdl.cores.specials import classify
from hdl.cores.words import choose, named
from hdl.matrix_engine.parameters import EngineParameters

__all__ = ["empty_result"]


def empty_result(m: Module, parameters: EngineParameters, index: Value, code: Value, is_converted: Value) -> Bundle:
    """Return the result of an empty reduction: its initial value, where a NaN keeps all its bits.

    A conversion of the result makes the NaN of its format of every NaN. That is done here, so that the converters,
    which may widen first, see no signalling one.

    Parameters
    ----------
    m : Module
    parameters : EngineParameters
    index : Value
        Which of the accumulators' formats the code has.
    code : Value
    is_converted : Value
        The command converts results, be it to the format that they have.

    Returns
    -------
    Bundle
        ``code``, and ``invalid``: the conversion meets a signalling NaN.
    """
    codes, signals = [], []
    for fmt in parameters.formats.accumulators:
        own = code[: fmt.width]
        its_class = classify(fmt, own)
        if parameters.formats.flushes:
            is_zero = ~own[fmt.fraction_bits : fmt.width - 1].any()
            own = Mux(is_zero, own & fmt.sign_mask, own)
        codes.append(Mux(is_converted & its_class.is_nan, fmt.nan, own))
        signals.append(is_converted & its_class.is_signalling)
    return Bundle(
        code=named(m, "empty_result", choose(index, codes)), invalid=named(m, "is_invalid", choose(index, signals))
    )
