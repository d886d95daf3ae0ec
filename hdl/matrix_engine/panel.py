# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The block RAM of one operand: two slices, one that is written and one that is read."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.parameters import CODE_WIDTH, EngineParameters
from hdl.matrix_engine.ports import line_layout

__all__ = ["Panel"]


def _bits(count: int) -> int:
    return count.bit_length() - 1


class Panel(wiring.Component):
    """Hold the codes of one operand so that every lane reads one in a cycle, and a group is written in one.

    Each lane has a memory, whose words are groups of codes with consecutive k. The address is (half, tile, k // group).
    A group that arrives lies

    ::

        along k (A as stored, B transposed)            across lanes (A transposed, B as stored)

                 k k+1 k+2 k+3                                  k
        lane 0   .  .   .   .                          lane 0   g0
        lane 1   g0 g1  g2  g3   one word of           lane 1   g1   one code in a word of
        lane 2   .  .   .   .    one lane              lane 2   g2   each of some lanes
        lane 3   .  .   .   .                          lane 3   g3

    With fewer lanes than codes in a group, a group across lanes takes several cycles, one for each tile.

    Parameters
    ----------
    parameters : EngineParameters
    lanes, tiles : int
        Rows of the array and tiles one below the other; for B, columns and tiles side by side.

    Ports
    -----
    line, group, number : in
        A group, as `hdl.matrix_engine.loader.Loader` gives it.
    valid, ready : in, out
    half, tile, k, enable : in
        What to read.
    codes : out
        One for each lane, in the second cycle after ``enable``; held while it is 0.
    uppers : out
        Likewise the codes of k + 1, if k is even: upper halves of elements of C. Only if they are asked for.
    """

    def __init__(self, parameters: EngineParameters, lanes: int, tiles: int, *, has_uppers: bool = False) -> None:
        self.parameters, self.lanes, self.tiles, self._has_uppers = parameters, lanes, tiles, has_uppers
        super().__init__(
            {
                "line": In(line_layout(parameters)),
                "group": In(parameters.bus_width),
                "number": In(range(parameters.line_most)),
                "valid": In(1),
                "ready": Out(1),
                "half": In(1),
                "tile": In(range(tiles)),
                "k": In(range(parameters.depth)),
                "enable": In(1),
                "codes": Out(data.ArrayLayout(CODE_WIDTH, lanes)),
                **({"uppers": Out(data.ArrayLayout(CODE_WIDTH, lanes))} if has_uppers else {}),
            }
        )
        depth = 2 * tiles * parameters.depth // parameters.group
        self.memories = [Memory(shape=parameters.bus_width, depth=depth, init=[]) for _ in range(lanes)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        group, lanes = self.parameters.group, self.lanes
        slot_bits, tile_bits = _bits(self.parameters.depth // group), _bits(self.tiles)
        line = self.line

        # Where the group goes. Numbers of lanes, tiles and codes are powers of two, so parts of indices are bits.
        slot, tile, part = Signal(max(1, slot_bits)), Signal(max(1, tile_bits)), Signal(range(max(2, group // lanes)))
        parts = max(1, group // lanes)
        is_last_part = Signal()
        m.d.comb += [is_last_part.eq(1), self.ready.eq(is_last_part)]
        with m.If(line.is_across):
            m.d.comb += slot.eq(line.index >> _bits(group))
            if parts == 1:
                m.d.comb += tile.eq(self.number >> _bits(lanes // group))
            else:
                m.d.comb += [
                    tile.eq(Cat(part, self.number)),
                    is_last_part.eq(
                        (part == parts - 1) | ((self.number << _bits(group)) + (part + 1) * lanes >= line.count)
                    ),
                ]
                with m.If(self.valid):
                    m.d.sync += part.eq(Mux(is_last_part, 0, part + 1))
        with m.Else():
            m.d.comb += [slot.eq(self.number), tile.eq(line.index >> _bits(lanes))]

        one_code = Signal(group)
        m.d.comb += one_code.eq(1 << line.index[: _bits(group)])
        chosen = Signal(range(group))
        with m.If(self.enable):
            m.d.sync += chosen.eq(self.k[: _bits(group)])
        for number, memory in enumerate(self.memories):
            m.submodules[f"lane_{number}"] = memory
            writing, reading = memory.write_port(granularity=CODE_WIDTH), memory.read_port()
            is_mine = Signal(name=f"is_of_{number}")
            across = Signal(CODE_WIDTH, name=f"across_{number}")
            if parts == 1:
                own = number // group
                its_lanes = self.number[: _bits(lanes // group)]
                m.d.comb += across.eq(self.group.word_select(number % group, CODE_WIDTH))
            else:
                own, its_lanes = 0, None
                m.d.comb += across.eq(self.group.word_select(part * lanes + number, CODE_WIDTH))
            with m.If(line.is_across):
                m.d.comb += [
                    is_mine.eq(its_lanes == own if its_lanes is not None and len(its_lanes) else 1),
                    writing.data.eq(across.replicate(group)),
                    writing.en.eq(Mux(self.valid & is_mine, one_code, 0)),
                ]
            with m.Else():
                m.d.comb += [
                    is_mine.eq(line.index[: _bits(lanes)] == number if lanes > 1 else 1),
                    writing.data.eq(self.group),
                    writing.en.eq((self.valid & is_mine).replicate(group)),
                ]
            m.d.comb += [
                writing.addr.eq(Cat(slot[:slot_bits], tile[:tile_bits], line.half)),
                reading.addr.eq(Cat(self.k[_bits(group) :], self.tile[:tile_bits], self.half)),
                reading.en.eq(self.enable),
            ]
            code = Signal(CODE_WIDTH, name=f"code_{number}", reset_less=True)
            with m.If(self.enable):
                m.d.sync += code.eq(reading.data.word_select(chosen, CODE_WIDTH))
            m.d.comb += self.codes[number].eq(code)
            if self._has_uppers:
                upper = Signal(CODE_WIDTH, name=f"upper_{number}", reset_less=True)
                with m.If(self.enable):
                    m.d.sync += upper.eq(reading.data.word_select(chosen | 1, CODE_WIDTH))
                m.d.comb += self.uppers[number].eq(upper)
        return m
