"""The decision table and the overflow rule of the datapaths against the reference, as constants and as gates."""

import itertools
from fractions import Fraction

import pytest
from amaranth import Const, Module, Signal, Value
from amaranth.sim import Simulator

from golden import CBFLOAT16, FloatFormat, Rounding, reference
from golden.formats import WIDE_FORMATS
from golden.reference import Class
from hdl import MultiplyAccumulate, VectorMac
from hdl.cores.rounding import (
    DECISIONS,
    STAYS_FINITE,
    increment,
    increment_of_negative,
    of_chosen,
    stays_finite,
    too_large,
)
from hdl.cores.step_formats import StepFormats

MODES = pytest.mark.parametrize("mode", DECISIONS, ids=str)
BITS = list(itertools.product((0, 1), repeat=4))


def rounded(quarters, sign, mode):
    """Round a magnitude, given in quarters of an ulp, to ulps, as the reference does."""
    number = Fraction((-1) ** sign * quarters, 4) / 2**9  # between 1 and 2, where an ulp is 2^-9
    return abs(reference.quantize(number, CBFLOAT16, rounding=mode).as_fraction()) * 2**9


def test_every_mode_has_an_overflow_rule_and_without_random_bits_a_decision():
    assert list(DECISIONS) == [mode for mode in Rounding if mode is not Rounding.STOCHASTIC]
    assert list(STAYS_FINITE) == list(Rounding)


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_stays_finite_of_either_sign_is_what_the_reference_does(mode):
    random = {"random": 0} if mode is Rounding.STOCHASTIC else {}
    for sign in (0, 1):
        value = reference.Value(Class.FINITE, sign, 1, 300)
        code, _ = reference.round_value(value, CBFLOAT16, rounding=mode, **random)
        assert stays_finite(mode, sign) == CBFLOAT16.is_finite(code)
        shown = stays_finite(mode, Const(sign, 1))
        assert (evaluated(shown) if isinstance(shown, Value) else shown) == stays_finite(mode, sign)


def test_bit_of_the_chosen_mode_is_none_if_no_mode_is_chosen():
    up, down = Signal(), Signal()
    found = of_chosen({Rounding.UP: up, Rounding.DOWN: down}, lambda mode: int(mode is Rounding.DOWN))
    assert found is down
    assert of_chosen({Rounding.UP: 1}, lambda mode: up) is up
    assert of_chosen({}, lambda mode: 1) == 0


@MODES
def test_increment_of_every_case_is_the_references(mode):
    for round_bit, sticky, lowest, sign in BITS:
        kept = 2**9 + lowest
        got = kept + increment(mode, round_bit=round_bit, sticky=sticky, lowest=lowest, sign=sign)
        assert got == rounded(4 * kept + 2 * round_bit + sticky, sign, mode)


@MODES
def test_increment_of_a_negative_word_makes_the_references_magnitude(mode):
    for quarters, sign in itertools.product(range(2**11, 2**11 + 16), (0, 1)):
        kept, rest = divmod(-quarters, 4)  # two's complement: kept is negative, rest is not
        round_bit, sticky = divmod(rest, 2)
        options = {"sticky": sticky, "lowest": ~kept & 1, "sign": sign}
        got = ~kept + increment_of_negative(mode, inverted_round_bit=1 - round_bit, **options)
        assert got == rounded(quarters, sign, mode)


@pytest.mark.parametrize("function", [increment, increment_of_negative], ids=lambda function: function.__name__)
@MODES
def test_gates_of_every_case_are_the_constants(function, mode):
    first = "round_bit" if function is increment else "inverted_round_bit"
    names = (first, "sticky", "lowest", "sign")
    inputs = {name: Signal(name=name) for name in names}
    out, m = Signal(), Module()
    m.d.comb += out.eq(function(mode, **inputs))
    wrong = []

    async def bench(ctx):
        for case in BITS:
            for name, bit in zip(names, case, strict=True):
                ctx.set(inputs[name], bit)
            if ctx.get(out) != function(mode, **dict(zip(names, case, strict=True))):
                wrong.append(case)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert wrong == []


@MODES
@pytest.mark.parametrize("fmt", WIDE_FORMATS, ids=str)
def test_too_large_is_what_the_reference_gives(fmt, mode):
    for sign in (0, 1):
        value = reference.Value(Class.FINITE, sign, 1, 300)
        wanted, _ = reference.round_value(value, fmt, rounding=mode)
        assert too_large(fmt, mode, sign) | sign * fmt.sign_mask == wanted
        shown = too_large(fmt, mode, Const(sign, 1))
        if isinstance(shown, Value):
            shown = evaluated(shown)
        assert shown | sign * fmt.sign_mask == wanted


def evaluated(value):
    """Return the value of an expression of constants."""
    out, m, seen = Signal(len(value)), Module(), []
    m.d.comb += out.eq(value)

    async def bench(ctx):
        seen.append(ctx.get(out))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return seen[0]


def test_units_refuse_a_format_that_cannot_be_accumulated_and_say_what_to_do():
    fn = FloatFormat("e4m3_fn", 4, 3, specials="fn")
    message = r": got e4m3_fn \(specials 'fn'\), must have specials 'ieee'; operands of other formats are widened to a"
    for argument, build in (
        ("operands", lambda: MultiplyAccumulate(operands=(CBFLOAT16, fn), inner="operand")),
        ("operands", lambda: VectorMac(operands=(fn,), inner="operand")),
        ("operands", lambda: StepFormats((fn,), (CBFLOAT16,))),
        ("accumulators", lambda: StepFormats((CBFLOAT16,), (fn,))),
    ):
        with pytest.raises(ValueError, match=f"^{argument}{message}"):
            build()
