"""The expressions on words against plain Python: every word and every distance, at widths of every kind."""

import itertools

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

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
