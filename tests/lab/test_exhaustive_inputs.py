"""Inputs of the exhaustive and sampled checks of netlists: each once, or operands that meet every case."""

import ctypes
import itertools

import numpy as np
import pytest

from golden import CBFLOAT16, FP16, FP32, Flag, FloatFormat, Rounding, decode, multiply_accumulate
from hdl.cores.step_formats import StepFormats
from lab.exhaustive import converters, modes, steps
from lab.exhaustive.converters import converter_checks
from lab.exhaustive.modes import ROUNDS, mode_checks
from lab.exhaustive.operands import biased_operands, drawn_operands
from lab.exhaustive.rounding import count_alike, round_float32
from lab.exhaustive.steps import MODES, tiny_rounded_checks
from sim.stimulus.coverage import classes, rounding_cases

_WORDS = ctypes.POINTER(ctypes.POINTER(ctypes.c_uint32))
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, _WORDS, _WORDS)
#: The length of one comparison in the compiled loop, and pieces of it: an end in the middle of the third.
SPAN, START = 4099, 0x3F801000


class Netlist:
    """A netlist that converts correctly, except for one code and its flags; it keeps its inputs."""

    def __init__(self, at: int = 0, code: int = 0, flags: int = 0) -> None:
        self.given: list[int] = []
        self.unit, self.function = None, _RUN(self._run)
        self._at, self._code, self._flags = at, code, flags

    def _run(self, unit: None, count: int, inputs: _WORDS, outputs: _WORDS) -> None:
        given = inputs[0][:count]
        self.given += given
        codes, flags = round_float32(given[0], given[-1] + 1, CBFLOAT16)
        for place, each in enumerate(given):
            changes = each == self._at
            outputs[0][place] = int(codes[place]) ^ self._code * changes
            outputs[1][place] = int(flags[place]) ^ self._flags * changes


def test_compiled_loop_gives_a_netlist_every_input_of_a_range_once():
    netlist = Netlist()
    assert count_alike(START, START + SPAN, CBFLOAT16, netlist) == SPAN
    assert netlist.given == list(range(START, START + SPAN))


@pytest.mark.parametrize("place", [0, 1, 2047, 2048, 4095, 4096, SPAN - 1])
@pytest.mark.parametrize(("code", "flags"), [(1 << bit, 0) for bit in (0, 15)] + [(0, 1 << bit) for bit in range(5)])
def test_compiled_loop_tells_one_wrong_bit_of_one_input(place, code, flags):
    netlist = Netlist(START + place, code, flags)
    assert count_alike(START, START + SPAN, CBFLOAT16, netlist) == SPAN - 1


@pytest.mark.parametrize("pair", [(FP32, CBFLOAT16), (FP16, CBFLOAT16), (CBFLOAT16, FP32)], ids=str)
@pytest.mark.parametrize("wrong", ["bits", "flags"])
def test_converter_with_one_wrong_input_fails_its_check(monkeypatch, pair, wrong):
    (check,) = converter_checks([pair])
    start = START if pair[0] == FP32 else 0x3000

    def given(self, i__payload):
        assert i__payload.tolist() == list(range(start, start + 64))
        zeros = np.zeros(64, np.uint32)
        outputs = {"o__payload.bits": right["bits"].astype(np.uint32), "o__payload.flags": zeros + right["flags"]}
        outputs[f"o__payload.{wrong}"][63] ^= 1
        return outputs

    right = {}
    monkeypatch.setattr(
        converters._Converter, "netlist", type("Netlist", (), {"__call__": given, "function": 0})(), False
    )
    monkeypatch.setattr(converters, "count_alike", lambda start, stop, *_: stop - start - 1)
    judged = converters._Converter._compare

    def keep(self, start, stop, codes, flags):
        right.update(bits=codes, flags=flags)
        return judged(self, start, stop, codes, flags)

    monkeypatch.setattr(converters._Converter, "_compare", keep)
    found = check.compare(start, start + 64)
    assert (found.count, found.wrong) == (64, 1)


def test_modes_give_every_code_in_every_round_and_other_random_numbers_in_each(monkeypatch):
    (check,) = mode_checks((CBFLOAT16, FP32))
    seen = []

    class Nothing:
        def __call__(self, code, rounding, random):
            seen.append((code, rounding, random))
            zeros = np.zeros(len(code), np.uint32)
            return {f"to_float32.{name}": zeros for name in ("bits", "flags", "error")}

    monkeypatch.setattr(modes, "Sliced", lambda *given, **tied: Nothing())
    check.prepare()
    found = [check.compare(*piece) for piece in check.ranges()]
    assert [each.count for each in found] == [1 << 16] * len(ROUNDS)
    assert [each.wrong > 60000 for each in found] == [True] * len(ROUNDS)
    for mode, (code, rounding, random) in zip(ROUNDS, seen, strict=True):
        assert (np.unique(code).size, set(rounding.tolist())) == (1 << 16, {mode})
        assert np.bitwise_or.reduce(random) == np.uint32(0xFFFF)
        assert np.bitwise_and.reduce(random) == np.uint32(0)
    assert len({random.tobytes() for *_, random in seen}) == len(ROUNDS)


@pytest.mark.parametrize("name", ["bits", "flags", "error"])
@pytest.mark.parametrize("destination", [FP16, FP32], ids=str)
@pytest.mark.parametrize("number", [0, ROUNDS.index(7), len(ROUNDS) - 1])
def test_modes_tell_one_wrong_bit_of_any_destination(monkeypatch, destination, name, number):
    source = modes._Source(CBFLOAT16, [FP16, FP32])

    def netlist(code, rounding, random):
        right = {fmt: source._wanted(code, ROUNDS[number], random, fmt) for fmt in source.destinations}
        ports = {f"to_{fmt}.{part}": np.array(each) for fmt, parts in right.items() for part, each in parts.items()}
        ports[f"to_{destination}.{name}"][1234] ^= 1
        return ports

    source.netlist = netlist
    found = source.compare(number << 16, (number + 1) << 16)
    assert (found.count, found.wrong) == (1 << 16, 1)


@pytest.mark.parametrize("name", ["o.bits", "o.flags"])
@pytest.mark.parametrize("mode", [None, Rounding.UP, Rounding.STOCHASTIC], ids=str)
def test_step_tells_one_wrong_bit_of_code_or_flags(name, mode):
    formats, given = StepFormats((CBFLOAT16,), (CBFLOAT16, FP32), tuple(Rounding)), biased_operands(CBFLOAT16, FP32)
    step = steps._Step(CBFLOAT16, FP32, formats, given, *([mode] if mode else []))

    def netlist(a, b, acc, random=None):
        options = {"operand": CBFLOAT16, "accumulator": FP32, "rounding": mode or Rounding.NEAREST_EVEN}
        options |= {} if random is None else {"random": random, "random_bits": formats.random_bits}
        codes, flags = multiply_accumulate(a, b, acc, return_flags=True, **options)
        ports = {"o.bits": np.array(codes), "o.flags": np.array(flags)}
        ports[name][77] ^= 1
        return ports

    step.netlist = netlist
    found = step.compare(0, 500)
    assert (found.count, found.wrong) == (500, 1)


def test_sampled_operands_of_two_pieces_are_others_and_those_of_one_are_repeated():
    operands = biased_operands(CBFLOAT16, FP32)
    first, second, again = (np.stack(operands(start, start + 500)) for start in (0, 1 << 16, 0))
    assert (first == again).all()
    assert (first == second).mean() < 0.1


def test_random_numbers_of_two_pieces_are_others_and_each_is_drawn(monkeypatch):
    *_, check = tiny_rounded_checks(FloatFormat("e2m1", 2, 1))
    check.prepare()
    given, right = [], steps.golden.multiply_accumulate

    def spy(*operands, random, **options):
        given.append(random)
        return right(*operands, random=random, **options)

    monkeypatch.setattr(steps.golden, "multiply_accumulate", spy)
    for start in (0, 2048):
        assert check.compare(start, start + 2048).wrong == 0
    assert not (given[0] == given[1]).all()
    assert {*given[0].tolist()} == set(range(8))


@pytest.mark.parametrize(("operand", "accumulator"), MODES, ids=str)
def test_drawn_operands_meet_every_class_of_both_signs_every_flag_and_every_way_to_round(operand, accumulator):
    a, b, acc = drawn_operands(operand, accumulator, 60_000, 1)
    kinds = ("zero", "subnormal", "normal", "infinity", "nan", "signalling")
    for codes, fmt in ((a, operand), (b, operand), (acc, accumulator)):
        signs = np.where(codes & np.array(fmt.sign_mask, codes.dtype), "-", "+")
        met = set(zip(signs.tolist(), classes(codes, fmt).tolist(), strict=True))
        assert met >= set(itertools.product("+-", kinds if fmt != FP32 else kinds[1:5])), fmt
    pairs = set(zip(classes(a, operand).tolist(), classes(b, operand).tolist(), strict=True))
    assert pairs == set(itertools.product(kinds, kinds))
    given = {"operand": operand, "accumulator": accumulator}
    result, flags = multiply_accumulate(a, b, acc, return_flags=True, **given)
    possible = Flag.INEXACT | Flag.INVALID
    if 2 * (operand.emin - operand.fraction_bits) < accumulator.emin - accumulator.fraction_bits:
        possible |= Flag.UNDERFLOW
    if 2 * operand.emax >= accumulator.emax:
        possible |= Flag.OVERFLOW
    assert np.bitwise_or.reduce(flags) == possible
    with np.errstate(all="ignore"):
        product = decode(a, operand).astype(float) * decode(b, operand).astype(float)
        addend = decode(acc, accumulator).astype(float)
        total = product + addend
        lost = (product - (total - (total - product))) + (addend - (total - product))
    cases = rounding_cases(total, np.where(np.isfinite(lost), lost, 0.0), result, accumulator)
    assert set(cases.tolist()) >= {"exact", "below_half", "tie", "above_half", "not_finite"}
    cancels = (total == 0) & (product != 0)
    near = (total != 0) & (np.abs(total) < np.abs(product) / 64) & np.isfinite(product)
    assert cancels.sum() > 100
    assert near.sum() > 1000


def test_rounding_modes_that_are_checked_are_all():
    assert {each.value for each in Rounding} <= set(ROUNDS)
