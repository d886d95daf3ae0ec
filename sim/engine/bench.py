"""The engine in cocotb, between a processor and a memory of cocotbext-axi."""

from __future__ import annotations

import itertools
import logging
import random
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

from hdl.matrix_engine.registers import EngineError, register_named
from sim.engine.commands import Command
from sim.engine.units import COMPARED

__all__ = ["MEMORY", "EngineBench", "Refused"]

#: Bytes of memory.
MEMORY = 1 << 16
_CYCLE = 2
#: Cycles; the largest commands take long while every channel pauses most of the time.
_PATIENCE = 120_000


class Refused(Exception):
    """The bus answered a write to a register with an error."""


class EngineBench:
    """The engine, its registers and its memory, and a record of its reads and writes."""

    def __init__(self, dut: Any, seed: int) -> None:
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self.dut = dut
        self.rng = np.random.default_rng(seed)
        self.pauses = random.Random(seed)
        self.registers = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, dut.aresetn, reset_active_level=False
        )
        self.ram = AxiRam(
            AxiBus.from_prefix(dut, "m_axi"), dut.aclk, dut.aresetn, reset_active_level=False, size=MEMORY
        )
        self.width = len(dut.m_axi_wstrb)
        #: The values of a command's registers.
        self.held: dict[str, int] = {}
        #: Words that were read, bytes that were written.
        self.read_words: set[int] = set()
        self.written: set[int] = set()
        #: Addresses from which on the memory answers with an error.
        self.bad_reads: set[int] = set()
        self.bad_writes: set[int] = set()
        read, write = self.ram.read_if._read, self.ram.write_if._write

        async def watched_read(address: int, length: int) -> bytes:
            self.read_words.add(address)
            if address in self.bad_reads:
                raise OSError
            return await read(address, length)

        async def watched_write(address: int, data: bytes) -> None:
            if not self.bad_writes.isdisjoint(range(address, address + len(data))):
                raise OSError
            self.written |= set(range(address, address + len(data)))
            await write(address, data)

        self.ram.read_if._read, self.ram.write_if._write = watched_read, watched_write
        self._mute()
        for channel, words in (("ar", "addr len"), ("aw", "addr len"), ("w", "data strb last")):
            cocotb.start_soon(self._watch(channel, words.split()))

    async def _watch(self, channel: str, words: list[str]) -> None:
        """An offered transfer stays until it is accepted (AXI4, A3.2.1), unless a reset comes."""
        valid, ready = (getattr(self.dut, f"m_axi_{channel}{end}") for end in ("valid", "ready"))
        payload = [getattr(self.dut, f"m_axi_{channel}{word}") for word in words]
        edge, reset = RisingEdge(self.dut.aclk), self.dut.aresetn
        waits = None
        while True:
            await edge
            now = [str(word.value) for word in payload] if valid.value else None
            if waits is not None and reset.value:
                assert now == waits, f"{channel}: {waits} was offered, and became {now}"
            waits = now if now is not None and not ready.value and reset.value else None

    @classmethod
    async def made(cls, dut: Any, seed: int) -> EngineBench:
        """Start the clock, hold the reset, and attach the buses; `reset` ends the reset."""
        Clock(dut.aclk, _CYCLE, unit="step").start()
        dut.aresetn.value = 0
        await ClockCycles(dut.aclk, 3)
        return cls(dut, seed)

    def _mute(self) -> None:
        for part in (self.registers.write_if, self.registers.read_if, self.ram.write_if, self.ram.read_if):
            part.log.setLevel(logging.CRITICAL)

    async def reset(self, cycles: int = 4) -> None:
        self.dut.aresetn.value = 0
        self.held.clear()
        await ClockCycles(self.dut.aclk, cycles)
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    def press_back(self, share: float) -> None:
        """Let every channel pause in a share of the cycles."""

        def pauses() -> Any:
            return (self.pauses.random() < share for _ in itertools.count())

        ram = self.ram
        for channel in (
            ram.write_if.aw_channel, ram.write_if.w_channel, ram.write_if.b_channel,
            ram.read_if.ar_channel, ram.read_if.r_channel,
        ):  # fmt: skip
            channel.set_pause_generator(pauses() if share else None)
            channel.pause = False  # the earlier generator may have left it paused

    @property
    def memory(self) -> np.ndarray:
        """A copy of the memory."""
        return np.frombuffer(self.ram.read(0, MEMORY), np.uint8).copy()

    @memory.setter
    def memory(self, given: np.ndarray) -> None:
        self.ram.write(0, given.tobytes())

    async def write(self, name: str, value: int) -> None:
        """Write a register; raise `Refused` if the bus answers with an error."""
        answer = await self.registers.write(register_named(name).address, value.to_bytes(4, "little"))
        if answer.resp != AxiResp.OKAY:
            raise Refused(name)

    async def read(self, name: str) -> int:
        """Read a register."""
        answer = await self.registers.read(register_named(name).address, 4)
        assert answer.resp == AxiResp.OKAY
        return int.from_bytes(answer.data, "little")

    async def fields(self, name: str) -> dict[str, int]:
        """Read a register's fields."""
        return register_named(name).fields_of(await self.read(name))

    async def submit(self, command: Command) -> None:
        """Write the registers that differ from the last command, and submit it."""
        for name, word in command.registers().items():
            if self.held.get(name, 0) != word:
                await self.write(name, word)
                self.held[name] = word
        await self.write("SUBMIT", command.tag)

    async def result(self) -> dict[str, int]:
        """Wait for the interrupt, take the first result and remove it."""
        if not int(self.dut.interrupt.value):
            await with_timeout(RisingEdge(self.dut.interrupt), _CYCLE * _PATIENCE, "step")
        found = await self.fields("RESULT")
        await self.write("RESULT", 0)
        assert found["valid"]
        return found

    async def idle(self) -> None:
        """Wait until the engine is not busy."""
        for _ in range(_PATIENCE):
            if not (await self.fields("STATUS"))["busy"]:
                return
        raise AssertionError("still busy")

    async def expect(self, command: Command, expected: np.ndarray, flags: int | None, error: int = 0) -> None:
        """Wait for the end of a command and compare its result, all of the memory, and its reads and writes."""
        found = await self.result()
        assert (EngineError(found["error"]), found["tag"]) == (EngineError(error), command.tag), found
        if flags is not None:
            assert found["flags"] == flags, (found, flags)
        memory = self.memory
        wrong = np.flatnonzero(memory != expected)
        assert not len(wrong), f"{len(wrong)} bytes differ, the first at {wrong[0]:#x}; D at {command.d}"
        self.check_touched(command)
        with Path(COMPARED).open("a") as file:
            print(command.batches * command.m * command.n, file=file)

    def check_touched(self, *commands: Command) -> None:
        """Check that all words read and bytes written belong to matrices of these commands; clear the record."""
        words: set[int] = set().union(*(command.allowed_words(self.width) for command in commands))
        assert self.read_words <= words, f"read outside: {sorted(self.read_words - words)[:4]}"
        bytes_of_d = set().union(*(set(command.d.bytes_of().ravel().tolist()) for command in commands))
        assert self.written <= bytes_of_d, f"written outside: {sorted(self.written - bytes_of_d)[:4]}"
        self.read_words.clear()
        self.written.clear()
