"""The accumulators: two banks of 16-bit words, so that an even-aligned pair is read and written at once."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.cores.round import result_layout
from hdl.mac.parameters import WORD_WIDTH, MacParameters

__all__ = ["RegisterFile"]


class RegisterFile(wiring.Component):
    """Hold totals and, where a level has chunks, partial sums, each with the flags that making it raised.

    ::

        register     0    1    2    3    4    5
        even bank  [ 0 ]     [ 2 ]     [ 4 ]         fp32 in a pair: low half in the even register,
        odd bank        [ 1 ]     [ 3 ]     [ 5 ]    high half in the odd one

    Each bank has the totals of its registers and behind them their partial sums. A word is ``[ flags | 16 bits ]``;
    the flags of a pair are those of its even word. Reading is combinational; what is written is read from the next
    cycle on. Registers start as +0.

    Parameters
    ----------
    parameters : MacParameters

    Ports
    -----
    read_register, read_partial, read_wide : in
        Which accumulator to read.
    read : result_layout, out
        Its code, in the low bits, and flags.
    write_enable, write_register, write_partial, write_wide : in
        Which accumulator to write at the clock edge.
    write : result_layout, in
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        value = result_layout(parameters.formats.accumulator_width)
        super().__init__(
            {
                "read_register": In(parameters.register_width),
                "read_partial": In(1),
                "read_wide": In(1),
                "read": Out(value),
                "write_enable": In(1),
                "write_register": In(parameters.register_width),
                "write_partial": In(1),
                "write_wide": In(1),
                "write": In(value),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        flag_fields = [name for name in ("inexact", "underflow", "overflow", "invalid") if parameters.flags]
        word = data.StructLayout({"bits": WORD_WIDTH, **dict.fromkeys(flag_fields, 1)})
        depth = parameters.registers // 2 * (2 if parameters.has_chunks else 1)

        def address(register: Value, partial: Value) -> Value:
            return Cat(register[1:], partial) if parameters.has_chunks else register[1:]

        halves = [self.write.bits[:WORD_WIDTH], self.write.bits[WORD_WIDTH:]]
        words = []
        for parity, name in enumerate(("even", "odd")):
            m.submodules[name] = bank = Memory(shape=word, depth=depth, init=[])
            write, read = bank.write_port(), bank.read_port(domain="comb")
            mine = self.write_wide | (self.write_register[0] == parity)
            half = Mux(self.write_wide, halves[1], halves[0]) if parity and parameters.has_fp32 else halves[0]
            m.d.comb += [
                read.addr.eq(address(self.read_register, self.read_partial)),
                write.addr.eq(address(self.write_register, self.write_partial)),
                write.en.eq(self.write_enable & mine),
                write.data.bits.eq(half),
            ]
            m.d.comb += [write.data[flag].eq(self.write.flags[flag]) for flag in flag_fields]
            words.append(read.data)

        even, odd = words
        own_is_odd = self.read_register[0] & ~self.read_wide
        m.d.comb += self.read.bits.eq(
            Cat(Mux(own_is_odd, odd.bits, even.bits), Mux(self.read_wide, odd.bits, C(0, WORD_WIDTH)))
        )
        m.d.comb += [self.read.flags[flag].eq(Mux(own_is_odd, odd[flag], even[flag])) for flag in flag_fields]
        return m
