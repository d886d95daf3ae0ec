"""The expressions on exponent fields against plain Python: every word, every constant, at widths of every kind."""

import numpy as np
import pytest
from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl.cores.conversion_words import add_constant, at_least, between, pick, position_of_first

WIDTHS = (2, 3, 4, 5)


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


class Choices(wiring.Component):
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


@pytest.mark.parametrize("width", WIDTHS)
def test_comparison_with_any_constant_is_pythons(width):
    words = np.arange(2**width)
    results = evaluated(Comparisons(width), word=words)
    for number, constant in enumerate(limits(width)):
        np.testing.assert_array_equal(results["least"] >> number & 1, words >= constant)
        for other, first in enumerate(limits(width)):
            wanted = (words >= first) & (words < constant)
            np.testing.assert_array_equal(results[f"between_{other}"] >> number & 1, wanted)


@pytest.mark.parametrize("width", WIDTHS)
def test_sum_with_any_constant_is_pythons_modulo_the_width(width):
    words = np.arange(2**width)
    unit = Sums(width)
    results = evaluated(unit, word=words)
    for number, (constant, into) in enumerate(unit.cases):
        np.testing.assert_array_equal(results[f"sum_{number}"], (words + constant) % 2**into)


def test_position_of_first_counts_the_zeros_and_pick_gives_the_option():
    values = np.arange(8)
    results = evaluated(Choices(), zeros=values, index=values)
    for count in range(8):
        np.testing.assert_array_equal(results[f"position_{count}"], np.minimum(values, count))
    for count in range(1, 9):
        index = values % 2 ** (count - 1).bit_length()
        is_option = index < count
        np.testing.assert_array_equal(results[f"option_{count}"][is_option], 10 + 3 * index[is_option])
