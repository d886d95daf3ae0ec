"""The exhaustive checks of netlists: their judges, and that a changed gate, a gap or feedback is seen."""

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, Flag, FloatFormat, reference
from golden.formats import CONVERSIONS, SIXTEEN_BIT_FORMATS
from hdl import FloatConverter
from lab.exhaustive import converters, steps
from lab.exhaustive.check import Check, run
from lab.exhaustive.converters import converter_checks
from lab.exhaustive.operands import all_operands, biased_operands
from lab.exhaustive.rounding import codes_from_float32, flags_from_float32, round_float32
from lab.exhaustive.steps import sampled_rounded_checks, sampled_step_checks, tiny_rounded_checks, tiny_step_checks
from tests.lab.netlist_fault import with_a_changed_gate
from tools.sliced import Sliced

pytestmark = pytest.mark.long

NARROW = pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
E3M2 = FloatFormat("e3m2", 3, 2)
PIECE = 1 << 10


def converter(source, destination):
    (check,) = converter_checks([(source, destination)])
    check.prepare()
    return check


def deciding_fractions(fmt):
    """Float32 fractions on and beside zero, all ones, every single bit, and what rounds up to the next binade."""
    bits = [1 << k for k in range(23)]
    carries = [2**23 - bit for bit in bits]
    near = [bit + step for bit in (0, *bits, *carries) for step in (-1, 0, 1)]
    return np.unique(np.array(near) % 2**23).astype(np.uint32)


@NARROW
def test_compiled_rounding_is_the_references_at_what_decides_in_every_exponent_field(fmt):
    fractions = deciding_fractions(fmt)
    raised = set()
    for top in range(512):
        for fraction in fractions[top % 8 :: 8].tolist():
            code = (top << 23) + fraction
            codes, flags = round_float32(code, code + 1, fmt)
            assert (codes[0], flags[0]) == reference.convert(code, FP32, fmt), hex(code)
            raised.add(int(flags[0]))
    assert raised == {0, 1, 3, 5, 16}


@NARROW
def test_compiled_rounding_is_numpys_and_so_are_the_flags(fmt):
    for top in range(512):
        for start in ((top << 23), (top << 23) + 2**22 - 512, (top << 23) + 2**23 - PIECE):
            inputs = np.arange(start, start + PIECE, dtype=np.uint64).astype(np.uint32)
            codes, flags = round_float32(start, start + PIECE, fmt)
            np.testing.assert_array_equal(codes, np.broadcast_to(codes_from_float32(inputs, fmt), codes.shape))
            np.testing.assert_array_equal(flags, flags_from_float32(inputs, fmt))


@pytest.mark.parametrize(
    ("fmt", "code", "flags"),
    [
        # 2^-30 less half an ulp of the binade below is a tie that an unbounded exponent rounds up: not tiny.
        (CBFLOAT16, 0x307FE000, Flag.INEXACT),
        (CBFLOAT16, 0x307FDFFF, Flag.INEXACT | Flag.UNDERFLOW),
        (BF16, 0x007FC000, Flag.INEXACT),
        (BF16, 0x007FBFFF, Flag.INEXACT | Flag.UNDERFLOW),
        # Half an ulp above the largest finite number is a tie to infinity.
        (CBFLOAT16, 0x4F7FE000, Flag.INEXACT | Flag.OVERFLOW),
        (CBFLOAT16, 0x4F7FDFFF, Flag.INEXACT),
        (CBFLOAT16, 0x7FA00000, Flag.INVALID),
    ],
)
def test_flags_at_their_limits_are_those_worked_out_by_hand(fmt, code, flags):
    inputs = np.array([code], np.uint32)
    assert flags_from_float32(inputs, fmt)[0] == round_float32(code, code + 1, fmt)[1][0] == flags
    assert reference.convert(code, FP32, fmt)[1] == flags


@pytest.mark.parametrize("pair", [(FP32, CBFLOAT16), (FP32, BF16)], ids=str)
def test_netlist_from_float32_is_right_around_every_exponent_field(pair):
    check = converter(*pair)
    assert check.total == 2**32
    for top in range(512):
        for start in (top << 23, (top << 23) + 2**22 - PIECE // 2, (top << 23) + 2**23 - PIECE):
            found = check.compare(start, start + PIECE)
            assert (found.count, found.examples) == (PIECE, [])


@pytest.mark.parametrize("pair", [(FP16, FP32), (BF16, CB16), (CBFLOAT16, FP16)], ids=str)
def test_netlist_of_16_bits_is_right_on_every_code(pair):
    outcome = run(converter_checks([pair])[0], 1)
    assert (outcome.count, outcome.examples, outcome.passed) == (2**16, [], True)


@pytest.mark.parametrize("pair", [(BF16, CB16), (CBFLOAT16, FP16), (FP16, FP32)], ids=str)
def test_judge_of_16_bits_is_the_reference(monkeypatch, pair):
    source, destination = pair
    seen = {}

    def keep(self, start, stop, *judged):
        seen.update(enumerate(zip(*judged, strict=True)))

    monkeypatch.setattr(converters._Converter, "_compare", keep)
    converter_checks([pair])[0].compare(0, 2**16)
    for code in [*range(0, 2**16, 61), *range(0x7BF0, 0x7C10), *range(0x7DF0, 0x7F10), *range(0xFF00, 0x10000)]:
        assert seen[code] == reference.convert(code, source, destination), hex(code)


def test_checks_are_of_every_pair_of_formats_and_of_every_operand():
    assert len(CONVERSIONS) == 20
    totals = [check.total for check in converter_checks()]
    assert (totals.count(2**32), totals.count(2**16)) == (4, 16)
    for check in converter_checks():
        assert min(2**23, check.total) % check.piece == 0
    assert [check.total for check in tiny_step_checks()] == [2**18, 2**24, 2**21, 2**28]
    assert [check.total for check in sampled_step_checks()] == [10**8] * 6
    assert [check.total for check in tiny_rounded_checks()] == [2**18] * 7
    assert [check.total for check in sampled_rounded_checks()] == [10**6] * 14


def test_step_of_a_tiny_format_is_checked_on_every_operand(monkeypatch):
    (check,) = tiny_step_checks([(E3M2, E3M2)])
    outcome = run(check, 2)
    assert (outcome.count, outcome.passed) == (2**18, True)
    a, b, acc = (each.astype(int) for each in all_operands(E3M2, E3M2)(0, 2**18))
    assert np.unique(a << 12 | b << 6 | acc).size == 2**18


def test_step_of_a_tiny_format_with_random_numbers_is_checked_and_a_wrong_one_is_seen(monkeypatch):
    *_, check = tiny_rounded_checks(FloatFormat("e2m1", 2, 1))
    assert run(check, 1).passed
    right = golden.multiply_accumulate
    monkeypatch.setattr(
        golden, "multiply_accumulate", lambda *given, random, **options: right(*given, random=random ^ 7, **options)
    )
    assert run(check, 1).wrong > 0


def test_steps_in_a_mode_of_the_shared_core_are_checked_on_a_sample():
    (check,) = sampled_step_checks([(CBFLOAT16, FP32)], sample=10_000)
    outcome = run(check, 2)
    assert (outcome.count, outcome.examples, outcome.passed) == (10_000, [], True)


def test_softfloat_gives_the_references_steps():
    operands = biased_operands(FP16, FP16)(0, 3000)
    codes, flags = steps.fused_steps(operands)
    rows = zip(*(each.tolist() for each in operands), strict=True)
    wanted = [reference.multiply_accumulate(a, b, acc, operand=FP16, accumulator=FP16) for a, b, acc in rows]
    assert list(zip(codes.tolist(), flags.tolist(), strict=True)) == wanted


def test_softfloat_alone_sees_a_fault_that_golden_shares(monkeypatch):
    (check,) = sampled_step_checks([(FP16, FP16)], sample=4096)
    right = steps.fused_steps

    def wrong(operands):
        codes, flags = right(operands)
        codes[7] ^= 1
        flags[9] ^= 2
        return codes, flags

    monkeypatch.setattr(steps, "fused_steps", wrong)
    outcome = run(check, 1)
    assert (outcome.count, outcome.wrong, outcome.passed) == (4096, 2, False)
    assert [example.split(":")[0] for example in outcome.examples] == ["bits by SoftFloat", "flags by SoftFloat"]


@pytest.mark.parametrize("which", [0, 20, 40])
def test_a_changed_gate_of_a_converter_is_seen_with_its_operand(monkeypatch, which):
    with_a_changed_gate(monkeypatch, which)
    check = converter(FP32, CBFLOAT16)
    found = [check.compare(start, start + PIECE) for start in range(0, 2**32, 2**22 + 2**20 + PIECE)]
    assert all(each.count == PIECE for each in found)
    assert sum(each.wrong for each in found) > 0
    example = next(each.examples[0] for each in found if each.wrong)
    assert example.startswith("netlist of float32 to cbfloat16, ")
    assert " gives 0x" in example


@pytest.mark.parametrize("which", [1, 100])
def test_a_changed_gate_of_a_step_is_seen_with_its_operands(monkeypatch, which):
    with_a_changed_gate(monkeypatch, which)
    (check,) = tiny_step_checks([(E3M2, E3M2)])
    outcome = run(check, 1)
    assert outcome.complete
    assert outcome.wrong > 0
    assert not outcome.passed
    assert outcome.examples[0].count("0x") == 5


def test_a_missing_range_fails_the_check():
    check = converter(FP16, BF16)
    halved = Check(check.name, check.total, check.against, lambda start, stop: check.compare(start, stop - 1))
    outcome = run(halved, 1)
    assert (outcome.count, outcome.wrong, outcome.passed) == (2**16 - 1, 0, False)


def test_a_range_of_two_exponent_fields_raises():
    with pytest.raises(ValueError, match="must lie in one exponent field"):
        converter(FP32, FP16).compare(2**23 - 1, 2**23 + 1)


def test_a_pipeline_that_may_stand_still_is_refused():
    with pytest.raises(ValueError, match=r"verilog: got a loop of \d+ gates, must be without feedback"):
        Sliced(FloatConverter(source=FP32, destination=CBFLOAT16), rst=0, i__valid=1)


def test_a_pipeline_whose_reset_is_open_is_refused():
    with pytest.raises(ValueError, match="tie the inputs that are no port of the unit's signature, such as rst"):
        Sliced(FloatConverter(source=FP32, destination=CBFLOAT16), i__valid=1, o__ready=1)


def test_a_converter_that_is_fed_nothing_is_refused(monkeypatch):
    right = converters.Sliced
    monkeypatch.setattr(converters, "Sliced", lambda unit, **tied: right(unit, **tied | {"i__valid": 0}))
    with pytest.raises(RuntimeError, match="must always be ready, its output valid"):
        converter(FP16, BF16)


class Counter(wiring.Component):
    """Feedback: it adds up."""

    def __init__(self):
        super().__init__({"i": In(4), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        total = Signal(4)
        m.d.sync += total.eq(total + self.i)
        m.d.comb += self.o.eq(total)
        return m


def test_a_unit_with_feedback_is_refused():
    with pytest.raises(ValueError, match=r"verilog: got a loop of \d+ gates, must be without feedback"):
        Sliced(Counter(), rst=0)


class Words(wiring.Component):
    """One output bit of every input bit, so that a transposed place shows."""

    def __init__(self):
        super().__init__({"a": In(32), "b": In(7), "o": Out(32), "p": Out(7)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.o.eq(~self.a), self.p.eq(self.b ^ self.a[:7])]
        return m


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5000])
def test_every_bit_of_every_vector_arrives_at_its_place(count):
    unit = Sliced(Words())
    rng = np.random.default_rng(count)
    a, b = rng.integers(0, 2**32, count, np.uint32), rng.integers(0, 2**7, count, np.uint8)
    got = unit(a=a, b=b)
    np.testing.assert_array_equal(got["o"], ~a)
    np.testing.assert_array_equal(got["p"], b ^ a & 0x7F)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"a": np.zeros(3, np.uint32)}, TypeError, "inputs: got a, must be a, b"),
        ({"a": np.zeros(3, int), "b": np.zeros(3, np.uint8)}, TypeError, "a: got an array of int64, must be unsigned"),
        ({"a": np.zeros(3, np.uint32), "b": np.full(3, 128, np.uint8)}, ValueError, "b: got 0x80, must fit in 7 bits"),
        ({"a": np.zeros(3, np.uint32), "b": np.zeros(4, np.uint8)}, ValueError, "must be the same"),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_the_unit_raise(inputs, error, message):
    with pytest.raises(error, match=message):
        Sliced(Words())(**inputs)
