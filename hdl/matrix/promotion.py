# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""A promotion unit, which several lanes share: it adds their partial sums to totals, one a cycle, and keeps these."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.cores.bundle import Bundle
from hdl.cores.copies import copied
from hdl.cores.fused_step import add_product
from hdl.cores.operand import split_code
from hdl.cores.outcome import align_result, finish, pack_result
from hdl.cores.result import flags_layout
from hdl.cores.words import choose, named
from hdl.mac.lane import Ranks, class_layout, number_layout, read_number, step_layout, stored_form
from hdl.matrix.operands import Operand, one_as_factor
from hdl.matrix.parameters import PROMOTION_DELAY, MatrixParameters
from hdl.matrix.ports import result_width

__all__ = ["Promotion", "promotion_layout"]

_STEPS = ("read", "compare", "shift", "align", "add", "normalise", "round", "pack")
#: Ranks between a partial sum at the end of a chain and the step ``read``: those of the operand, and ``product``.
_READ = PROMOTION_DELAY - len(_STEPS)
_MOST_IN_LUTS = 64  # totals
_BANK = 16  # words of a memory in LUTs


def promotion_layout(parameters: MatrixParameters) -> data.StructLayout:
    """Return the layout of the order to promote a partial sum.

    ``format``, ``accumulator_format``, and ``rounding`` if there are several modes
        `hdl.mac.lane.step_layout`.
    ``fresh``
        The total starts from +0.
    ``place``
        Which total of the unit: tile, then lane.
    ``writes``
        There is a partial sum.
    """
    lanes = parameters.rows * parameters.sharing_columns
    place = parameters.register_width + (lanes - 1).bit_length()
    return data.StructLayout({**step_layout(parameters.formats).members, "fresh": 1, "place": place, "writes": 1})


class Promotion(wiring.Component):
    """Compute ``round(partial * 1.0 + total)``, one step a cycle.

    ::

        partial sum -> split | inspect | normalise | * 1.0 | add_product -> round | pack -> total's code
                                                       ^                      |
        place ------------------------> memory of totals ---------------------'

    A total is read one cycle after its order, and may be read from 13 cycles after it: the same total must not come
    again for 11 cycles.

    Parameters
    ----------
    parameters : MatrixParameters

    Ports
    -----
    order : promotion_layout, in
    partial : unsigned, in
        The partial sum of the order, as it comes from a chain: a code of the operand format, then its flags.
    total : unsigned, out
        The total, `PROMOTION_DELAY` cycles later: a code of the outer format in the low bits, then all its flags.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        self.parameters, formats = parameters, parameters.formats
        self._number, self._class = number_layout(formats), class_layout(with_flags=parameters.flags)
        order = promotion_layout(parameters)
        super().__init__(
            {
                "order": In(order),
                "partial": In(result_width(parameters.lanes)),
                "total": Out(result_width(parameters)),
            }
        )
        depth = 1 << order["place"].width
        # No total is read in the cycle in which it is written; else Yosys would add logic for its old value.
        attrs: dict[str, Any] = {"no_rw_check": 1}
        # Few totals are faster in LUTs: a block of memory gives its word late in the cycle.
        if depth <= _MOST_IN_LUTS:
            attrs, depth = attrs | {"ram_style": "distributed"}, min(depth, _BANK)
        width, banks = self._number.size + self._class.size, (1 << order["place"].width) // depth
        self.totals = [Memory(shape=width, depth=depth, init=[], attrs=attrs) for _ in range(banks)]
        self.writing = [bank.write_port() for bank in self.totals]
        self.reading = [bank.read_port() for bank in self.totals]
        self.operand = Operand(parameters, is_second=False)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, formats = self.parameters, self.parameters.formats
        m.submodules.operand = self.operand
        for number, bank in enumerate(self.totals):
            m.submodules[f"totals_{number}"] = bank
        # All units get the same orders. They are far apart on a device, so each unit has its own registers.
        at: list[Any] = [self.order, copied(m, "order_1", self.order, parameters.multiplier, resets=True)]
        writes = at[1].writes
        for place in range(2, PROMOTION_DELAY + 1):
            at.append(Signal(self.order.shape(), name=f"order_{place}", reset_less=True))
            # Only this bit is reset: a total must not be written after a reset.
            before, writes = writes, Signal(name=f"writes_{place}")
            m.d.sync += [at[-1].eq(at[-2]), writes.eq(before)]
        pipe = Ranks(m, _STEPS, at[_READ:])
        word = self._read(m, at)
        number, its_class = data.View(self._number, word[: self._number.size]), self._class_of(m, word)
        rounded = add_product(
            m,
            formats,
            pipe,
            self._product(m, at),
            lambda: read_number(formats, number, pipe.accumulator_format),
            lambda: Bundle(is_infinite=its_class.is_infinite, is_nan=its_class.is_nan, invalid=C(0, 1)),
        )
        rounded = pipe.after("round", rounded)
        index = pipe.accumulator_format
        finished = finish(m, formats, index, rounded, with_flags=parameters.flags)
        flags = self._flags(m, its_class, finished)
        self._write(m, at[-1].place, writes, Cat(stored_form(rounded), finished.is_infinite, finished.is_nan, flags))
        result = pipe.after(
            "pack", Bundle(number=align_result(formats, index, rounded), its_class=finished, index=index, flags=flags)
        )
        m.d.comb += self.total.eq(
            Cat(pack_result(formats, result.index, result.number, result.its_class), result.flags)
        )
        return m

    def _product(self, m: Module, at: list[Any]) -> Bundle:
        """Return the partial sum times 1.0, as `hdl.cores.fused_step.multiply_operands` does."""
        formats, operand, order = self.parameters.formats, self.operand, self.order
        code = self.partial[: formats.operand_width]
        split = split_code(m, formats.operands, order.format, code).registered(m, "arrive")
        m.d.comb += [
            *(Value.cast(operand.i[name]).eq(value) for name, value in vars(split).items()),
            operand.format.eq(order.format),
            operand.accumulator_format.eq(order.accumulator_format),
        ]
        one = one_as_factor(m, formats, at[_READ - 2].format, at[_READ - 2].accumulator_format)
        # Most of its bits are constant, and all units would share their registers.
        its_exponent = copied(m, "registered_one", one.exponent, self.parameters.multiplier)
        exponent, factor = Signal(its_exponent.shape(), name="exponent_sum"), operand.o
        m.d.comb += exponent.eq(factor.exponent + its_exponent)
        product = Bundle(
            sign=factor.sign,
            exponent=exponent,
            is_infinite=factor.is_infinite,
            is_nan=factor.is_nan,
            significand=factor.significand,
        ).registered(m, "product")
        below = formats.operand_precision - 1
        return product.but(invalid=C(0, 1), significand=Cat(C(0, below), product.significand, C(0, 1)))

    def _read(self, m: Module, at: list[Any]) -> Signal:
        """Return the total and its class for the order at the step ``read``.

        ::

            place -> bank of totals | choose a bank | zero if fresh |
                               the bank's         given           word    registers
        """
        width = self._number.size + self._class.size
        given, word = Signal(width, name="given", reset_less=True), Signal(width, name="word", reset_less=True)
        chosen = at[_READ - 2].place[len(self.reading[0].addr) :]
        m.d.comb += [bank.addr.eq(at[_READ - 3].place) for bank in self.reading]
        m.d.sync += [given.eq(choose(chosen, [bank.data for bank in self.reading])), word.eq(given)]
        with m.If(at[_READ - 1].fresh):
            m.d.sync += word.eq(0)
        return word

    def _class_of(self, m: Module, word: Signal) -> Any:
        """Return the class of a total for the order at the step ``align``."""
        its_class: Value = word[self._number.size :]
        for place in range(_STEPS.index("align")):
            later = Signal(len(its_class), name=f"class_{place}", reset_less=True)
            m.d.sync += later.eq(its_class)
            its_class = later
        return data.View(self._class, its_class)

    def _flags(self, m: Module, its_class: Any, finished: Bundle) -> Value:
        """Return all flags of the total behind the rank ``round``."""
        if not self.parameters.flags:
            return C(0, 0)
        carried: Value = self.partial[self.parameters.formats.operand_width :]
        for place in range(_READ + _STEPS.index("round") + 1):
            if place == _READ + _STEPS.index("align"):
                carried = carried | its_class.flags.as_value()
            later = Signal(flags_layout().size, name=f"flags_{place}", reset_less=True)
            m.d.sync += later.eq(carried)
            carried = later
        return named(m, "all_flags", carried | finished.flags.as_value())

    def _write(self, m: Module, place: Value, writes: Value, word: Value) -> None:
        """Write a total one cycle after it is known."""
        written = Signal(len(word), name="written", reset_less=True)
        m.d.sync += written.eq(word)
        for number, bank in enumerate(self.writing):
            m.d.comb += [
                bank.addr.eq(place),
                bank.data.eq(written),
                bank.en.eq(writes & (place[len(bank.addr) :] == number)),
            ]
