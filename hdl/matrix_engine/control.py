"""The registers of the engine on an AXI4-Lite bus."""

from __future__ import annotations

from typing import Any

from amaranth import Array, C, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hdl.axi_lite import axi_lite_ports
from hdl.matrix_engine.parameters import EngineParameters, code_of
from hdl.matrix_engine.ports import command_layout
from hdl.matrix_engine.registers import (
    ADDRESS_BITS,
    QUEUE_DEPTH,
    REGISTERS,
    RESULT_DEPTH,
    Access,
    register_named,
)

__all__ = ["COUNTERS", "ControlRegisters", "counters_layout", "engine_axi_lite_ports"]

_WORD = 32
_OKAY, _SLAVE_ERROR = 0, 2
#: Registers that count.
COUNTERS = ("CYCLES", "PRODUCTS", "STALLS_LOAD", "STALLS_ARRAY", "STALLS_STORE")


def engine_axi_lite_ports() -> dict[str, Any]:
    """Return the ports of the bus on the subordinate's side, without prefix."""
    return {**axi_lite_ports(), "awaddr": In(ADDRESS_BITS), "araddr": In(ADDRESS_BITS)}


def counters_layout() -> data.StructLayout:
    """Return the counters, by the names of their registers."""
    return data.StructLayout({name.lower(): _WORD for name in COUNTERS})


def result_layout() -> data.StructLayout:
    """Return a result as it stands in ``RESULT``, without ``valid``."""
    return data.StructLayout({"error": 8, "tag": 8, "flags": 5})


class ControlRegisters(wiring.Component):
    """Let an AXI4-Lite bus read and write the registers of `hdl.matrix_engine.registers`.

    One read and one write can be outstanding, and neither waits for the other. The lowest two bits of an address are
    ignored.

    Ports
    -----
    command : command_layout, out
        The command as the registers hold it.
    submit : out
        It enters the queue. Only while ``can_submit`` is 1.
    abort, reset_all, clear_counters, pop : out
        A write asks for this.
    can_submit, busy, queued, results, result, has_result : in
        State for ``STATUS`` and ``RESULT``.
    counters : counters_layout, in
    clear : in
        All registers return to their reset values.
    interrupt : out
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                **engine_axi_lite_ports(),
                "command": Out(command_layout()),
                "submit": Out(1),
                "abort": Out(1),
                "reset_all": Out(1),
                "clear_counters": Out(1),
                "pop": Out(1),
                "can_submit": In(1),
                "busy": In(1),
                "queued": In(range(QUEUE_DEPTH + 1)),
                "results": In(range(RESULT_DEPTH + 1)),
                "result": In(result_layout()),
                "has_result": In(1),
                "counters": In(counters_layout()),
                "clear": In(1),
                "interrupt": Out(1),
            }
        )
        bits = ADDRESS_BITS - 2
        self.address, self.data = Signal(bits), Signal(_WORD)
        self.strobes = Signal(_WORD // 8)
        self.has_address, self.has_data = Signal(), Signal()
        self.read_address, self.reads = Signal(bits), Signal()
        self.words = {each.name: Signal(_WORD, name=each.name.lower()) for each in REGISTERS if each.is_command}
        self.is_enabled = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, word in self.words.items():
            m.d.comb += Value.cast(self.command[name.lower()]).eq(word)
        m.d.comb += self.interrupt.eq(self.is_enabled & self.has_result)
        self._write(m)
        self._read(m)
        with m.If(self.clear):
            m.d.sync += [*(word.eq(0) for word in self.words.values()), self.is_enabled.eq(0)]
        return m

    def _write(self, m: Module) -> None:
        writes, acts, is_known = Signal(), Signal(), Signal()
        m.d.comb += [
            self.awready.eq(~self.has_address),
            self.wready.eq(~self.has_data),
            writes.eq(self.has_address & self.has_data & (~self.bvalid | self.bready)),
            acts.eq(writes & is_known & self.strobes.all()),
            self.command.tag.eq(self.data[:8]),
        ]
        with m.If(self.awready):
            m.d.sync += [self.address.eq(self.awaddr[2:]), self.has_address.eq(self.awvalid)]
        with m.If(self.wready):
            m.d.sync += [self.data.eq(self.wdata), self.strobes.eq(self.wstrb), self.has_data.eq(self.wvalid)]
        with m.If(self.bready):
            m.d.sync += self.bvalid.eq(0)
        with m.If(writes):
            m.d.sync += [
                self.has_address.eq(0),
                self.has_data.eq(0),
                self.bvalid.eq(1),
                self.bresp.eq(Mux(acts, _OKAY, _SLAVE_ERROR)),
            ]
        control = register_named("CONTROL")
        with m.Switch(self.address):
            for register in REGISTERS:
                if register.access is Access.READ:
                    continue
                with m.Case(register.address >> 2):
                    m.d.comb += is_known.eq(1)
                    if register.name == "CONTROL":
                        for name, port in (
                            ("abort", self.abort), ("reset", self.reset_all), ("clear_counters", self.clear_counters)
                        ):  # fmt: skip
                            m.d.comb += port.eq(acts & self.data[control.field(name).low])
                    elif register.name == "INTERRUPT":
                        with m.If(acts):
                            m.d.sync += self.is_enabled.eq(self.data[register.field("enable").low])
                    elif register.name == "RESULT":
                        m.d.comb += self.pop.eq(acts)
                    elif register.name == "SUBMIT":
                        m.d.comb += [is_known.eq(self.can_submit), self.submit.eq(acts)]
                    else:
                        with m.If(acts):
                            m.d.sync += self.words[register.name].eq(self.data)

    def _read(self, m: Module) -> None:
        registers: list[Any] = [C(0, _WORD)] * (1 << (ADDRESS_BITS - 2))
        for register in REGISTERS:
            registers[register.address >> 2] = self._value(register.name)
        m.d.comb += [self.arready.eq(~self.reads), self.rresp.eq(_OKAY)]
        with m.If(self.arready):
            m.d.sync += [self.read_address.eq(self.araddr[2:]), self.reads.eq(self.arvalid)]
        with m.If(self.rready):
            m.d.sync += self.rvalid.eq(0)
        with m.If(self.reads & (~self.rvalid | self.rready)):
            m.d.sync += [self.reads.eq(0), self.rvalid.eq(1), self.rdata.eq(Array(registers)[self.read_address])]

    def _value(self, name: str) -> Value:
        """The word that a register shows."""
        if name in self.words:
            return self.words[name]
        if name in COUNTERS:
            return self.counters[name.lower()]
        fields: dict[str, Any] = {}
        if name == "INTERRUPT":
            fields = {"enable": self.is_enabled, "pending": self.has_result}
        elif name == "STATUS":
            fields = {
                "busy": self.busy, "can_submit": self.can_submit, "queued": self.queued, "results": self.results
            }  # fmt: skip
        elif name == "RESULT":
            shown = {field: Mux(self.has_result, self.result[field], 0) for field in ("error", "tag", "flags")}
            fields = {**shown, "valid": self.has_result}
        else:
            return C(self.constants().get(name, 0), _WORD)
        register = register_named(name)
        word: Value = C(0, _WORD)
        for field, value in fields.items():
            its = register.field(field)
            word = word | ((value & ((1 << its.width) - 1)) << its.low)[:_WORD]
        return word[:_WORD]

    def constants(self) -> dict[str, int]:
        """Return the words of the registers that never change."""
        parameters = self.parameters
        operands = sum(1 << (code_of(fmt) or 0) for fmt in parameters.operands)
        if parameters.conversions:
            operands |= 1 << (code_of(FP32) or 0)
        words = {
            "ID": register_named("ID").reset or 0,
            "SHAPE": register_named("SHAPE").word(
                rows=parameters.rows, columns=parameters.columns, tiles=parameters.registers & 0xFF,
                bus_bytes=parameters.bus_bytes,
            ),
            "FORMATS": register_named("FORMATS").word(
                operands=operands, results=sum(1 << (code_of(fmt) or 0) for fmt in parameters.result_formats)
            ),
            "FEATURES": register_named("FEATURES").word(
                levels=sum(1 << level for level in parameters.levels),
                roundings=sum(1 << mode for mode in parameters.modes),
                initial=int(parameters.initial),
                flags=int(parameters.flags),
                subnormals_flush=int(parameters.subnormals == "flush"),
                queue=QUEUE_DEPTH,
                results=RESULT_DEPTH,
            ),
            "LIMITS": register_named("LIMITS").word(
                chunk_bits=parameters.chunk_bits, size_bits=parameters.size_bits, address_bits=parameters.address_bits
            ),
        }  # fmt: skip
        return words
