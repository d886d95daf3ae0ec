"""The specifications that the RTL is proven against give golden's result for an operand, and no other result."""

import itertools

import pytest

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, reference
from lab.proofs import by_interval, by_theory
from lab.proofs.engines import bitwuzla_api, cvc5_api
from lab.proofs.terms import bits, equal, refute

#: bitwuzla knows few formats, so cvc5 tries the specification that is written in the formats of the results.
SPECIFICATIONS = [
    pytest.param(by_theory, cvc5_api.decide, id="by_theory"),
    pytest.param(by_interval, bitwuzla_api.decide, id="by_interval"),
]
PAIRS = [(FP32, CBFLOAT16), (FP32, CB16), (BF16, FP16), (CB16, CBFLOAT16), (CBFLOAT16, FP32), (FP16, CB16)]
MODES = [(CBFLOAT16, CBFLOAT16), (CB16, CB16), (BF16, FP32), (CB16, FP32), (FP16, FP16)]


def boundaries(fmt):
    """Return zero, subnormals, ones, halves of an ulp, the ends of the range, infinities and NaNs, of both signs."""
    top = 1 << fmt.fraction_bits - 1
    small = [0, 1, top, fmt.min_normal - 1, fmt.min_normal, fmt.min_normal + 1]
    large = [fmt.bias << fmt.fraction_bits, fmt.max_finite - 1, fmt.max_finite, fmt.inf, fmt.inf + 1, fmt.nan]
    middle = [fmt.bias << fmt.fraction_bits | fraction for fraction in (1, top, top + 1, 2 * top - 1)]
    return [code | sign for code in small + middle + large for sign in (0, fmt.sign_mask)]


def destination_edges(source, destination):
    """Return codes of the source around where the destination overflows, becomes subnormal and vanishes."""
    powers = (destination.emax + 1, destination.emin, destination.emin - destination.fraction_bits - 1)
    fields = [power + source.bias for power in powers if 0 < power + source.bias < source.exponent_field_max]
    return [(field << source.fraction_bits) + step for field in fields for step in (-1, 0, 1)]


def assert_only(decide, text, wanted, flags, width, operands):
    result = f"{equal('out', bits(wanted, width))} {equal('flags', bits(flags, 5))}"
    assert decide(f"{text}(assert correct)\n(assert (and {result}))\n")[0] == "sat", operands
    assert decide(f"{text}(assert correct)\n{refute(f'(and {result})')}")[0] == "unsat", operands


@pytest.mark.turns
@pytest.mark.parametrize(("module", "decide"), SPECIFICATIONS)
@pytest.mark.parametrize(("source", "destination"), PAIRS, ids=str)
def test_specification_of_a_conversion_allows_goldens_result_and_no_other(module, decide, source, destination):
    for code in [*boundaries(source), *destination_edges(source, destination)]:
        text = f"(declare-const out (_ BitVec {destination.width}))\n(declare-const flags (_ BitVec 5))\n"
        text += f"(define-fun code_ () (_ BitVec {source.width}) {bits(code, source.width)})\n"
        text += module.conversion("code_", source, destination, "out", "flags")
        wanted, flags = reference.convert(code, source, destination)
        assert_only(decide, text, wanted, int(flags), destination.width, hex(code))


def steps(operand, accumulator):
    """Return operands of a step: sums that cancel, lie half way, overflow, are tiny, and special ones."""
    one, top = operand.bias << operand.fraction_bits, operand.sign_mask
    one_there = accumulator.bias << accumulator.fraction_bits
    small, large = operand.min_normal, operand.max_finite
    yield from [(one, one, one_there | accumulator.sign_mask), (one + 1, one + 1, one_there), (one + 1, one + 1, 1)]
    yield from [(small, one, 0), (small - 1, one + 1, accumulator.min_normal), (small, small, accumulator.sign_mask)]
    yield from [(large, large, 0), (large, one, accumulator.max_finite), (large, large | top, accumulator.inf)]
    yield from [
        (0, operand.inf, accumulator.nan),
        (0 | top, one, accumulator.sign_mask),
        (0, one, accumulator.sign_mask),
    ]
    edges = [0, 1, one + 1, operand.inf | top, operand.nan, operand.inf + 1]
    those = [accumulator.sign_mask, 1, one_there + 1, accumulator.inf, accumulator.inf + 1]
    yield from itertools.product(edges[1:4], edges[2:], those)


@pytest.mark.turns
@pytest.mark.parametrize(("module", "decide"), SPECIFICATIONS)
@pytest.mark.parametrize(("operand", "accumulator"), MODES, ids=str)
def test_specification_of_a_step_allows_goldens_result_and_no_other(module, decide, operand, accumulator):
    for a, b, acc in steps(operand, accumulator):
        text = f"(declare-const out (_ BitVec {accumulator.width}))\n(declare-const flags (_ BitVec 5))\n"
        for name, code, fmt in (("a_", a, operand), ("b_", b, operand), ("acc_", acc, accumulator)):
            text += f"(define-fun {name} () (_ BitVec {fmt.width}) {bits(code, fmt.width)})\n"
        text += module.fused_step("a_", "b_", "acc_", operand, accumulator, "out", "flags")
        wanted, flags = reference.multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator)
        assert_only(decide, text, wanted, int(flags), accumulator.width, tuple(map(hex, (a, b, acc))))
