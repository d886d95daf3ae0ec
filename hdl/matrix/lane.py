# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""A lane of an array: one fused step a cycle on factors that are normalised already, and the lane's accumulators."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.cores.bundle import Bundle
from hdl.cores.copies import copied
from hdl.cores.fused_step import add_product
from hdl.cores.multiplier import Multiplier
from hdl.cores.operand import GROUP, inspect_operand
from hdl.cores.outcome import align_result, finish, pack_result
from hdl.cores.result import flags_layout
from hdl.cores.words import named
from hdl.mac.lane import Ranks, class_layout, number_layout, read_number, step_layout, step_of, stored_form, used_bits
from hdl.matrix.operands import factor_layout
from hdl.matrix.parameters import MatrixParameters
from hdl.matrix.ports import result_width

__all__ = ["MatrixLane", "lane_control", "lane_control_layout", "rows_written", "taken_layout"]

_STEPS = ("read", "compare", "shift", "align", "add", "normalise", "round", "pack")


def taken_layout(parameters: MatrixParameters) -> data.StructLayout:
    """Return the layout of the order to move a tile's results into the chains: whether to, and which tile."""
    return data.StructLayout({"takes": 1, "tile": parameters.register_width})


def lane_control_layout(parameters: MatrixParameters) -> data.StructLayout:
    """Return the layout of the control of a lane, one rank ahead of its use.

    ``promotes``
        The first factor is the lane's own partial sum.
    ``read_row``, ``fresh``
        The accumulator to read; it is +0, regardless of the memory.
    ``step``
        `hdl.mac.lane.step_layout`, at the rank ``read``.
    ``class_row``, ``class_fresh``
        The same for the accumulator's class, which is read later.
    ``write_row``, ``writes``
        The accumulator to write, and whether to; its class follows one cycle later.
    ``keeps``
        The result, of the tile in `write_row` two cycles earlier, awaits its way out: a total, or a partial sum that is
        promoted elsewhere.
    ``takes``, ``tile``
        `taken_layout`.
    ``loads``
        The accumulator is not read: its number is the lane's initial value. Only with initial values.
    """
    row = parameters.register_width + parameters.has_chunks
    return data.StructLayout(
        {
            "promotes": 1,
            "read_row": row,
            "fresh": 1,
            "step": step_layout(parameters.formats),
            "class_row": row,
            "class_fresh": 1,
            "write_row": row,
            "writes": 1,
            "keeps": 1,
            **taken_layout(parameters).members,
            **({"loads": 1} if parameters.initial else {}),
        }
    )


def rows_written(parameters: MatrixParameters, at: Any, *, ahead: int) -> list[Value]:
    """Return ``writes`` of `lane_control_layout` for each row of lanes: an operation that loads writes to one row.

    Parameters
    ----------
    parameters : MatrixParameters
    at : array of array_operation
        The operation as issued and behind each rank.
    ahead : int
        Ranks ahead of its use.
    """
    writing = at[parameters.behind("normalise") - ahead]
    return [writing.writes & (~writing.loads | (writing.row == row)) for row in range(parameters.rows)]


def lane_control(parameters: MatrixParameters, at: Any, taken: Any, *, ahead: int) -> dict[str, Value]:
    """Return the fields of `lane_control_layout`, some ranks ahead of their use.

    Parameters
    ----------
    parameters : MatrixParameters
    at : array of operation
        The operation as issued and behind each rank.
    taken : taken_layout
    ahead : int
    """

    def row(operation: Any) -> Value:
        return Cat(operation.register, operation.partial) if parameters.has_chunks else operation.register

    formats, position = parameters.formats, parameters.position
    factor, reading, step, its_class, writing, kept = (
        at[place - ahead]
        for place in (
            position("operands"), position("product"), position("read"), position("align"),
            parameters.behind("normalise"), parameters.behind("pack"),
        )
    )  # fmt: skip
    return {
        "promotes": factor.writes & ~factor.is_product,
        "read_row": row(reading),
        "fresh": reading.fresh,
        "step": Cat(step_of(formats, step).values()),
        "class_row": row(its_class),
        "class_fresh": its_class.fresh,
        "write_row": row(writing),
        "writes": writing.writes,
        "keeps": kept.promote if parameters.promoted_elsewhere else kept.writes & kept.last & ~kept.promote,
        "takes": taken.takes,
        "tile": taken.tile,
        **({"loads": reading.loads} if parameters.initial else {}),
    }


class MatrixLane(wiring.Component):
    """Add one product a cycle to one of the lane's accumulators; keep results until they leave along the column.

    ::

        factors -> multiply -> add_product -> round -> memory of accumulators
           ^                       ^                |     |
           |                       '----------------+-----'
           '---- promotion: partial sum <-----------'---> code -> memory of results -> chain of the column

    Parameters
    ----------
    parameters : MatrixParameters

    Ports
    -----
    a, b : factor_layout, in
        The factors of the operation in front of the rank ``operands``.
    control : lane_control_layout, in
    initial : number_layout, in
        What an operation in front of the rank ``read`` loads. Only with initial values.
    below : unsigned, in
        The result in the chain of the lane below.
    drained : unsigned, out
        The result in the chain: a code, and the flags if there are any.

    Attributes
    ----------
    numbers, classes, kept : Memory
        State that proofs refer to: the accumulators, their classes, the results. A reset does not clear them.
    """

    def __init__(self, parameters: MatrixParameters) -> None:
        self.parameters, formats = parameters, parameters.formats
        factor = factor_layout(formats)
        self._number, self._class = number_layout(formats), class_layout(with_flags=parameters.flags)
        self._result = result_width(parameters)
        super().__init__(
            {
                "a": In(factor),
                "b": In(factor),
                "control": In(lane_control_layout(parameters)),
                **({"initial": In(self._number)} if parameters.initial else {}),
                "below": In(self._result),
                "drained": Out(self._result),
            }
        )
        rows = parameters.registers * (2 if parameters.has_chunks else 1)
        self.numbers = Memory(shape=self._number.size, depth=rows, init=[])
        self.classes = Memory(shape=self._class.size, depth=rows, init=[])
        self.kept = Memory(shape=self._result, depth=parameters.registers, init=[])
        memories = (self.numbers, self.classes, self.kept)
        self._writing = [memory.write_port() for memory in memories]
        self._reading = [memory.read_port(domain="comb") for memory in memories]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters, formats = self.parameters, self.parameters.formats
        m.submodules.numbers, m.submodules.classes, m.submodules.kept = self.numbers, self.classes, self.kept
        own = self.own = copied(m, "own", self.control, parameters.multiplier)
        steps = [own.step]
        for place in range(len(_STEPS)):
            steps.append(Signal(own.step.shape(), name=f"step_{place}", reset_less=True))
            m.d.sync += steps[-1].eq(steps[-2])
        pipe = Ranks(m, _STEPS, steps)

        promoted = Signal(factor_layout(formats), name="promoted")
        places = Signal(GROUP, name="promoted_places")
        product = self._multiply(m, promoted, places)
        number, its_class = self._read(m)
        rounded = add_product(
            m,
            formats,
            pipe,
            product,
            lambda: read_number(formats, number, pipe.accumulator_format),
            lambda: Bundle(is_infinite=its_class.is_infinite, is_nan=its_class.is_nan, invalid=C(0, 1)),
            kind=parameters.multiplier,
            # A partial sum that is not normalised for its promotion.
            may_be_subnormal=parameters.has_chunks and not (parameters.normalises or parameters.promoted_elsewhere),
        )
        self._write(m, rounded)
        rounded = pipe.after("round", rounded)
        index = pipe.accumulator_format
        finished = finish(m, formats, index, rounded, with_flags=parameters.flags)
        flags = self._collect(m, its_class, finished)
        if parameters.has_chunks:
            self._promote(m, pipe.format, rounded, finished, promoted, places)
        result = pipe.after(
            "pack", Bundle(number=align_result(formats, index, rounded), its_class=finished, index=index, flags=flags)
        )
        code = pack_result(formats, result.index, result.number, result.its_class)
        self._keep(m, Cat(code, result.flags))
        return m

    def _multiply(self, m: Module, promoted: Any, places: Signal) -> Bundle:
        """Return the product, whose first factor is the partial sum in a promotion."""
        parameters, formats = self.parameters, self.parameters.formats
        a, b, precision = self.a, self.b, self.parameters.formats.operand_precision
        a = Bundle(**{name: a[name] for name, _ in a.shape()})
        second = b.significand
        if parameters.has_chunks:
            promotes = self.own.promotes
            a = Bundle(
                **{name: named(m, f"a_{name}", Mux(promotes, promoted[name], value)) for name, value in vars(a).items()}
            )
        if parameters.normalises:
            # The last places of normalising a partial sum: 1.0 becomes 1.0, 2.0, 4.0 or 8.0.
            moved = places[1:] & promotes.replicate(GROUP - 1)
            second = Cat(second[:-1], second[-1] & ~moved.any(), moved)
        m.submodules.multiplier = multiplier = Multiplier(
            len(second), input_rank=True, output_rank=True, kind=parameters.multiplier
        )
        m.d.comb += [multiplier.a.eq(a.significand), multiplier.b.eq(second)]
        infinity_times_zero = (a.is_infinite & b.is_zero) | (a.is_zero & b.is_infinite)
        operands = Bundle(
            sign=a.sign ^ b.sign,
            a_exponent=a.exponent,
            b_exponent=b.exponent,
            is_infinite=a.is_infinite | b.is_infinite,
            is_nan=a.is_nan | b.is_nan | infinity_times_zero,
            invalid=a.is_signalling | b.is_signalling | infinity_times_zero,
        ).registered(m, "operands")
        exponent = Signal(factor_layout(formats)["exponent"].shape, name="exponent_sum")
        m.d.comb += exponent.eq(operands.a_exponent + operands.b_exponent)
        product = operands.but(exponent=exponent).without("a_exponent", "b_exponent")
        return product.registered(m, "product").but(significand=multiplier.o[: 2 * precision])

    def _read(self, m: Module) -> tuple[Any, Any]:
        """Return the accumulator for the operation at the rank ``read``, and its class at the rank ``align``."""
        own = self.own
        numbers, classes, _ = self._reading
        number = Signal(self._number, name="number", reset_less=True)
        m.d.comb += [numbers.addr.eq(own.read_row), classes.addr.eq(own.class_row)]
        m.d.sync += number.eq(numbers.data)
        with m.If(own.fresh):
            m.d.sync += number.eq(0)
        if self.parameters.initial:
            with m.If(own.loads):
                m.d.sync += number.eq(self.initial)
        its_class = Signal(self._class, name="number_class")
        m.d.comb += its_class.eq(Mux(own.class_fresh, 0, classes.data))
        return number, its_class

    def _write(self, m: Module, rounded: Bundle) -> None:
        """Write the number while it goes into the rank ``round``; from the next cycle on it can be read."""
        own, numbers = self.own, self._writing[0]
        m.d.comb += [
            numbers.addr.eq(own.write_row),
            numbers.data.eq(stored_form(rounded)),
            numbers.en.eq(own.writes),
        ]

    def _collect(self, m: Module, its_class: Any, finished: Bundle) -> Value:
        """Write the class of the result behind the rank ``round``, with all its flags, and return these."""
        parameters, own = self.parameters, self.own
        flags = C(0, 0)
        if parameters.flags:
            self.promoted_flags = Signal(flags_layout().size)
            carried = self.promoted_flags & own.promotes.replicate(len(self.promoted_flags))
            for place in range(parameters.position("operands"), parameters.behind("round")):
                if place == parameters.position("align"):
                    carried = carried | its_class.flags.as_value()
                behind = Signal(len(carried), name=f"flags_{place + 1}", reset_less=True)
                m.d.sync += behind.eq(carried)
                carried = behind
            flags = named(m, "all_flags", carried | finished.flags.as_value())
            self._flags = flags
        write = self._writing[1]
        self.write_row = Signal.like(own.write_row, name="class_write_row", reset_less=True)
        writes = Signal(name="writes_class", reset_less=True)
        m.d.sync += [self.write_row.eq(own.write_row), writes.eq(own.writes)]
        m.d.comb += [
            write.addr.eq(self.write_row),
            write.data.eq(Cat(finished.is_infinite, finished.is_nan, flags)),
            write.en.eq(writes),
        ]
        return flags

    def _promote(
        self, m: Module, index: Value, rounded: Bundle, finished: Bundle, promoted: Any, places: Signal
    ) -> None:
        """Convert the result of a chunk, whose accumulator has the operand's format, to a first factor.

        ::

            partial sum      [ 0 0 0 0 0 1 x x x x ]    a subnormal, or the total is in fp32:
            significand      [ 0 1 x x x x 0 0 0 0 ]    left by whole groups of four places, here one;
            second factor    [ 0 1 0 0 | 0 0 0 ... ]    the multiplier moves it by the rest, here one
        """
        parameters, formats = self.parameters, self.parameters.formats
        precision = formats.operand_precision
        top = rounded.fraction[max(len(rounded.fraction) - (precision - 1), 0) :]
        fraction = top & used_bits(formats.operands, precision - 1, index)
        is_normal = ~rounded.is_subnormal | rounded.field[0]
        field = rounded.field[: max(fmt.exponent_bits for fmt in formats.operands)]
        its = {"is_infinite": finished.is_infinite, "is_nan": finished.is_nan}
        flags = self._flags if parameters.flags else C(0, 0)
        if parameters.normalises:
            split = Bundle(sign=rounded.sign, field=field, fraction=fraction, is_normal=is_normal, **its)
            found = inspect_operand(m, formats.operands, index, split)
            moved = found.but(is_zero=found.zeros.all(), flags=flags).without("zeros", "is_ones", "is_quiet")
            found = moved.registered(m, "moved")
            exponent = found.exponent - Cat(found.within, found.skipped)
            found = (
                found.but(
                    exponent=named(m, "partial_exponent", Mux(found.is_zero, parameters.zeros[0], exponent)),
                    places=Cat(found.within == place for place in range(GROUP)),
                )
                .without("is_zero", "within", "skipped")
                .registered(m, "promoted")
            )
            m.d.comb += places.eq(found.places)
        elif formats.flushes:
            significand = Cat(fraction, 1) & is_normal.replicate(precision)
            lowest = Mux(is_normal, field, parameters.zeros[0]) if 1 in parameters.levels else field
            found = Bundle(sign=rounded.sign, significand=significand, exponent=lowest, flags=flags, **its)
        else:
            # The total has no smaller exponent: where the leading one is does not matter.
            exponent = Cat(field[0] | ~is_normal, field[1:])
            found = Bundle(
                sign=rounded.sign, significand=Cat(fraction, is_normal), exponent=exponent, flags=flags, **its
            )
        m.d.comb += [promoted[name].eq(getattr(found, name)) for name in ("sign", "significand", "exponent", *its)]
        if parameters.flags:
            m.d.comb += self.promoted_flags.eq(found.flags)

    def _keep(self, m: Module, result: Value) -> None:
        """Keep a result behind the rank ``pack``; move it into the chain, or the result of the lane below."""
        own, tile = self.own, Signal(self.parameters.register_width, name="kept_tile", reset_less=True)
        write, read = self._writing[2], self._reading[2]
        chained = Signal(self._result, name="chained", reset_less=True)
        m.d.sync += [tile.eq(self.write_row[: len(tile)]), chained.eq(Mux(own.takes, read.data, self.below))]
        m.d.comb += [
            self.drained.eq(chained),
            write.addr.eq(tile),
            write.data.eq(result),
            write.en.eq(own.keeps),
            read.addr.eq(own.tile),
        ]
