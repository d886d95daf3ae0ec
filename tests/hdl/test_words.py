"""The expressions on words and on exponent fields against plain Python: every word, at widths of every kind."""

import itertools

import numpy as np
import pytest
from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl.cores.conversion_words import add_constant, at_least, between, pick, position_of_first
from hdl.cores.words import choose, named, select_width, shift_left
from tools.compiled import Compiled

# 1, powers of two, their neighbours, and what lies between
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 11, 12)
DISTANCE_WIDTHS = (1, 2, 4, 5)


class Shifts(wiring.Component):
    """The shifter at every width, for every width of the distance."""

    def __init__(self):
        outputs = {f"left_{width}_{bits}": Out(width) for width, bits in itertools.product(WIDTHS, DISTANCE_WIDTHS)}
        super().__init__({"word": In(max(WIDTHS)), "distance": In(max(DISTANCE_WIDTHS)), **outputs})

    def elaborate(self, platform):
        m = Module()
        for width, bits in itertools.product(WIDTHS, DISTANCE_WIDTHS):
            word, distance = self.word[:width], self.distance[:bits]
            m.d.comb += getattr(self, f"left_{width}_{bits}").eq(shift_left(m, word, distance))
        return m


class Choices(wiring.Component):
    """One of 1 to 9 options."""

    def __init__(self):
        super().__init__({"index": In(4), **{f"o_{count}": Out(8) for count in range(1, 10)}})

    def elaborate(self, platform):
        m = Module()
        for count in range(1, 10):
            index = self.index[: select_width(count)]
            m.d.comb += getattr(self, f"o_{count}").eq(choose(index, [10 + 3 * option for option in range(count)]))
        return m


@pytest.fixture(scope="module")
def shifts():
    words, distances = np.meshgrid(np.arange(1 << max(WIDTHS)), np.arange(1 << max(DISTANCE_WIDTHS)))
    words, distances = words.ravel(), distances.ravel()
    return words, distances, Compiled(Shifts())(word=words, distance=distances)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bits", DISTANCE_WIDTHS)
def test_shift_left_of_every_word_drops_what_leaves_the_width(shifts, width, bits):
    words, distances, results = shifts
    word, distance = words % 2**width, distances % 2**bits
    np.testing.assert_array_equal(results[f"left_{width}_{bits}"], (word << distance) % 2**width)


@pytest.fixture(scope="module")
def choices():
    return Compiled(Choices())(index=np.arange(16))


@pytest.mark.parametrize("count", range(1, 10))
def test_choose_of_any_index_gives_its_option_and_the_last_one_beyond(choices, count):
    least = min(bits for bits in range(5) if 2**bits >= count)
    assert select_width(count) == least
    wanted = [10 + 3 * min(index % 2**least, count - 1) for index in range(16)]
    np.testing.assert_array_equal(choices[f"o_{count}"], wanted)


@pytest.mark.parametrize(("constant", "width"), [(0, 1), (1, 1), (5, 3)])
def test_named_takes_a_constant_for_a_row_of_a_table_that_does_not_depend_on_the_mode(constant, width):
    m = Module()
    signal = named(m, "constant", constant)
    assert (signal.name, len(signal)) == ("constant", width)


FIELD_WIDTHS = (2, 3, 4, 5)


def limits(width):
    """Constants from below a word's range to above it."""
    return range(-2, 2**width + 3)


class Comparisons(wiring.Component):
    """`at_least` and `between` with every constant: one output bit for each."""

    def __init__(self, width):
        count = len(limits(width))
        super().__init__(
            {"word": In(width), "least": Out(count), **{f"between_{number}": Out(count) for number in range(count)}}
        )

    def elaborate(self, platform):
        m = Module()
        constants = limits(len(self.word))
        m.d.comb += self.least.eq(Cat(at_least(self.word, least) for least in constants))
        for number, first in enumerate(constants):
            found = [between(self.word, first, end) for end in constants]
            assert all(len(bit) == 1 for bit in found)
            m.d.comb += getattr(self, f"between_{number}").eq(Cat(found))
        return m


class Sums(wiring.Component):
    """`add_constant` of every constant, into narrower and wider words."""

    def __init__(self, width):
        self.cases = [(constant, into) for into in (2, 3, 5, 6) for constant in range(-(2**into), 2**into)]
        super().__init__({"word": In(width), **{f"sum_{number}": Out(8) for number in range(len(self.cases))}})

    def elaborate(self, platform):
        m = Module()
        for number, (constant, into) in enumerate(self.cases):
            total = add_constant(self.word, constant, into)
            assert len(total) == into
            m.d.comb += getattr(self, f"sum_{number}").eq(total)
        return m


class FieldChoices(wiring.Component):
    """`position_of_first` of 0 to 7 bits, and `pick` of 1 to 8 options."""

    def __init__(self):
        outputs = {f"position_{count}": Out(4) for count in range(8)} | {
            f"option_{count}": Out(8) for count in range(1, 9)
        }
        super().__init__({"zeros": In(3), "index": In(3), **outputs})

    def elaborate(self, platform):
        m = Module()
        reached = [self.zeros <= place for place in range(7)]
        for count in range(8):
            position = position_of_first(m, f"first_of_{count}", reached[:count])
            m.d.comb += getattr(self, f"position_{count}").eq(position)
        for count in range(1, 9):
            index = self.index[: (count - 1).bit_length()]
            m.d.comb += getattr(self, f"option_{count}").eq(pick(index, [10 + 3 * option for option in range(count)]))
        return m


def evaluated(component, **inputs):
    """The words of every output, for some words of every input.

    In Amaranth's simulator: a few words through thousands of expressions, which a C++ compiler takes half a minute for.
    """
    outputs = [name for name, member in component.signature.members.items() if member.flow is Out]
    results = {name: [] for name in outputs}

    async def testbench(ctx):
        for words in zip(*inputs.values(), strict=True):
            for name, word in zip(inputs, words, strict=True):
                ctx.set(getattr(component, name), int(word))
            for name in outputs:
                results[name].append(ctx.get(getattr(component, name)))

    simulator = Simulator(component)
    simulator.add_testbench(testbench)
    simulator.run()
    return {name: np.array(words) for name, words in results.items()}


@pytest.mark.parametrize("width", FIELD_WIDTHS)
def test_comparison_with_any_constant_is_pythons(width):
    words = np.arange(2**width)
    results = evaluated(Comparisons(width), word=words)
    for number, constant in enumerate(limits(width)):
        np.testing.assert_array_equal(results["least"] >> number & 1, words >= constant)
        for other, first in enumerate(limits(width)):
            wanted = (words >= first) & (words < constant)
            np.testing.assert_array_equal(results[f"between_{other}"] >> number & 1, wanted)


@pytest.mark.parametrize("width", FIELD_WIDTHS)
def test_sum_with_any_constant_is_pythons_modulo_the_width(width):
    words = np.arange(2**width)
    unit = Sums(width)
    results = evaluated(unit, word=words)
    for number, (constant, into) in enumerate(unit.cases):
        np.testing.assert_array_equal(results[f"sum_{number}"], (words + constant) % 2**into)


def test_position_of_first_counts_the_zeros_and_pick_gives_the_option():
    values = np.arange(8)
    results = evaluated(FieldChoices(), zeros=values, index=values)
    for count in range(8):
        np.testing.assert_array_equal(results[f"position_{count}"], np.minimum(values, count))
    for count in range(1, 9):
        index = values % 2 ** (count - 1).bit_length()
        is_option = index < count
        np.testing.assert_array_equal(results[f"option_{count}"][is_option], 10 + 3 * index[is_option])
