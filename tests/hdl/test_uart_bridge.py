"""The UART bridge and the memory behind it, bit by bit on the pins; every pinned fault of theirs is caught."""

import importlib.util
import struct
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from hdl.bridge.memory import AxiMemory
from hdl.bridge.uart import UartReceiver
from hdl.bridge.uart_bridge import UartBridge
from hdl.engine.frames import HELLO_WORDS, MAGIC, MOST_WORDS, Operation, Status, answer, request
from hdl.engine.transport import Region
from lab.mutants.table import seen_by
from tools.paths import ROOT
from tools.simulator import CompiledSimulator

from .bridge_bench import (
    BASE,
    BEYOND,
    BIT,
    PARAMETERS,
    PARTS,
    READ_ONLY,
    SILENCE,
    SIZE,
    STORE,
    WITHIN,
    WRITES,
    Bench,
    Line,
    Master,
    words,
)

pytestmark = pytest.mark.long

HELLO = request(Operation.HELLO)
GREETING = answer(Status.DONE, words(MAGIC, BASE, BEYOND))
DONE, BUS_ERROR, REFUSED, DAMAGED = map(answer, Status)


def read_register(address, count=1):
    return request(Operation.READ_REGISTER, address, count)


def write_register(address, value):
    return request(Operation.WRITE_REGISTER, address, 1, words(value))


def read_memory(address, count):
    return request(Operation.READ_MEMORY, address, count)


def write_memory(address, *values):
    return request(Operation.WRITE_MEMORY, address, len(values), words(*values))


def randoms(rng, count):
    return [int(value) for value in rng.integers(1 << 32, size=count)]


def hello(line, rng):
    assert line.answer(HELLO) == GREETING
    assert len(GREETING) == 2 + 4 * HELLO_WORDS


def registers(line, rng):
    for late in range(8):
        line.ctx.set(line.top.late, late)
        known = {
            int(address): value for address, value in zip(rng.permutation(60)[:4] * 4, randoms(rng, 4), strict=True)
        }
        for address, value in known.items():
            assert line.answer(write_register(address, value)) == DONE
        for address, value in known.items():
            assert line.answer(read_register(address)) == answer(Status.DONE, words(value))
    assert line.answer(read_register(WRITES)) == answer(Status.DONE, words(4 * 8))
    line.ctx.set(line.top.late, 15)
    assert line.answer(write_register(READ_ONLY, 1)) == BUS_ERROR
    # Beyond the registers' addresses: no register sees it.
    for address in (0x100, 0x104, 0x8000_0000):
        assert line.answer(write_register(address, 0)) == BUS_ERROR
        assert line.answer(read_register(address)) == BUS_ERROR
    assert line.answer(read_register(WRITES)) == answer(Status.DONE, words(4 * 8))


def memory(line, rng):
    known = randoms(rng, MOST_WORDS)
    assert len(known) * 4 == SIZE
    assert line.answer(write_memory(BASE, *known)) == DONE
    assert line.answer(read_memory(BASE, MOST_WORDS)) == answer(Status.DONE, words(*known))
    for at, count in ((0, 1), (1, 1), (2, 3), (5, 2), (MOST_WORDS - 1, 1)):
        known[at : at + count] = randoms(rng, count)
        assert line.answer(write_memory(BASE + 4 * at, *known[at : at + count])) == DONE
        assert line.answer(read_memory(BASE + 4 * at, count)) == answer(Status.DONE, words(*known[at : at + count]))
    assert line.answer(read_memory(BASE, MOST_WORDS)) == answer(Status.DONE, words(*known))


def slow_memory(line, rng):
    line.answer(write_memory(BASE, 1, 2, 3))
    line.ctx.set(line.top.holds, 1)
    line.write(read_memory(BASE, 3))
    for _ in range(3):
        line.pass_cycles(60 * BIT)  # longer than a word takes on the line
        line.ctx.set(line.top.holds, 0)
        line.pass_cycles(20)
        line.ctx.set(line.top.holds, 1)
    line.ctx.set(line.top.holds, 0)
    assert line.read(1 << 20) == answer(Status.DONE, words(1, 2, 3))


def outside_of_memory(line, rng):
    end = BASE + WITHIN
    assert line.answer(write_memory(BASE, 1, 2)) == DONE
    assert line.answer(write_memory(end - 4, 3)) == DONE
    for address, count in ((BASE - 4, 1), (BASE - 4, 2), (0, 1), (end, 1), (end - 4, 2), (2**32 - 4, 2)):
        assert line.answer(read_memory(address, count)) == BUS_ERROR
        assert line.answer(write_memory(address, *range(7, 7 + count))) == BUS_ERROR
    assert line.answer(read_memory(BASE, 2)) == answer(Status.DONE, words(1, 2))
    assert line.answer(read_memory(end - 4, 1)) == answer(Status.DONE, words(3))


outside_of_memory.told = WITHIN


def errors_of_memory(line, rng):
    """Access addresses that belong to the bridge's memory, but not to the bus."""
    end = BASE + SIZE
    assert line.answer(write_memory(BASE, 1)) == DONE
    assert line.answer(read_memory(end, 1)) == BUS_ERROR
    assert line.answer(write_memory(end, 9)) == BUS_ERROR
    assert line.answer(write_memory(end - 4, 4, 5)) == BUS_ERROR
    found = line.answer(read_memory(end - 4, 2))
    right = answer(Status.DONE, found[1:9])
    assert found[:5] == right[:5] == bytes([Status.DONE]) + words(4)
    assert found[9] != right[9], "the check of an answer whose second word could not be read"
    assert line.answer(read_memory(BASE, 1)) == answer(Status.DONE, words(1))
    master = line.beside = Master(line.ctx, line.top.axi, rng)
    master.burst_read(STORE.base, 1)
    line.pass_cycles(20)
    assert master.read == [(0, 0, 1)], "a word that was meant for an address beyond the memory"


def wrong_check(line, rng):
    for bit in range(8):
        good = write_register(4 * bit, 1)
        assert line.answer(good[:-1] + bytes([good[-1] ^ 1 << bit])) == DAMAGED
    for byte in range(1, 8 + 4):
        good = bytearray(write_register(0, 0x01020304))
        good[byte if byte < 5 or byte > 6 else 0] ^= 0x01 if byte < 5 or byte > 6 else 0x31
        if good[1] & 3:
            good[1] ^= 0x05  # another register, not another kind of address
        assert line.answer(bytes(good)) == DAMAGED
    assert line.answer(read_register(WRITES)) == answer(Status.DONE, words(0))
    good = read_memory(BASE, 1)
    assert line.answer(good[:-1] + bytes([good[-1] ^ 0x80])) == DAMAGED
    good = request(Operation.READ_MEMORY, 0, 1)  # two faults: the damage is told
    assert line.answer(good[:-1] + bytes([good[-1] ^ 0x80])) == DAMAGED
    assert line.answer(HELLO) == GREETING


def refused(line, rng):
    known = set(Operation)
    strange = [0x01, 0x0F, 0x12, 0x1F, 0x22, 0x30, 0x50, 0x80, 0x90, 0xA0, 0xFF]
    heads = [struct.pack("<BIH", operation, 0, 1) for operation in strange if operation not in known]
    for operation, address, counts in (
        (Operation.HELLO, 0, (1, 0xFFFF)),
        (Operation.READ_REGISTER, 0, (0, 2, 257)),
        (Operation.WRITE_REGISTER, 0, (0, 2, 257)),
        (Operation.READ_MEMORY, BASE, (0, MOST_WORDS + 1, 0x8000)),
        (Operation.WRITE_MEMORY, BASE, (0, MOST_WORDS + 1, 0x8001)),
        (Operation.READ_MEMORY, BASE + 1, (1,)),
        (Operation.READ_REGISTER, 2, (1,)),
    ):
        heads += [struct.pack("<BIH", operation, address, count) for count in counts]
    for head in heads:
        assert line.answer(head) == REFUSED, head.hex()
        line.pass_cycles(SILENCE)
    # After a refusal, the rest is ignored until there is a silence.
    line.pass_cycles(SILENCE)
    line.write(heads[0])
    assert line.read(2) == REFUSED
    for _ in range(3):
        line.write(HELLO)
        line.pass_cycles(SILENCE * 3 // 4)
    assert not line.received
    line.pass_cycles(SILENCE // 2)
    assert line.answer(HELLO) == GREETING


def silence(line, rng):
    good = write_register(8, 0x5A5A5A5A)
    for sent in range(1, len(good)):
        line.write(good[:sent])
        line.pass_cycles(SILENCE + 8 * BIT)
        assert not line.received
        assert line.answer(HELLO) == GREETING
    assert line.answer(read_register(WRITES)) == answer(Status.DONE, words(0))
    for byte in good:
        line.write([byte])
        line.pass_cycles(SILENCE - 12 * BIT)
    assert line.read(2) == DONE
    assert line.answer(read_register(8)) == answer(Status.DONE, words(0x5A5A5A5A))


def broken_line(line, rng):
    good = write_register(8, 1)
    for sent in (0, 3, 7, 9, len(good) - 1):
        line.write(good[:sent])
        line.drive(0, 15 * BIT)
        line.drive(1, BIT)
        line.write(good[sent + 1 :])
        # Without one of its first 7 bytes, a request has another count, or begins with an address.
        assert line.read(1 << 20) == (REFUSED if sent < 7 else b"")
        assert line.answer(HELLO) == GREETING
    line.drive(0, 1)  # too short to begin a byte
    line.drive(1, 12 * BIT)
    assert line.answer(read_register(WRITES)) == answer(Status.DONE, words(0))


def other_speed(line, rng):
    # A sender may be off by some percent: here by one cycle in ten bits, in either direction.
    for late in (-1, 1):
        for byte in HELLO:
            for level in (0, *(byte >> at & 1 for at in range(8))):
                line.drive(level, BIT)
            line.drive(1, BIT + late)
        assert line.read(1 << 20) == GREETING


def engine_beside_the_line(line, rng):
    """Bursts on the engine's bus in every cycle, while the bridge reads and writes elsewhere."""
    master = line.beside = Master(line.ctx, line.top.axi, rng)
    store = rng.integers(1 << 63, size=SIZE // 8, dtype=np.uint64)
    quarter = len(store) // 4
    assert line.answer(write_memory(BASE, *struct.unpack(f"<{SIZE // 4}I", store.tobytes()))) == DONE
    for turn in range(4):
        # The bridge writes and reads the first quarter, the engine reads the second one and writes the rest.
        bytes_of, wanted, bursts = store.view(np.uint8), [], 200
        for _ in range(bursts):
            count = int(rng.integers(1, 17))
            first = int(rng.integers(2 * quarter, len(store) - count))
            beats = [(int(word), int(rng.integers(256))) for word in rng.integers(1 << 63, size=count, dtype=np.uint64)]
            for at, (value, strobes) in enumerate(beats):
                for byte in range(8):
                    if strobes >> byte & 1:
                        bytes_of[8 * (first + at) + byte] = value >> 8 * byte & 0xFF
            master.burst_write(BASE + 8 * first, beats)
            start = int(rng.integers(quarter, 2 * quarter - count))
            master.burst_read(BASE + 8 * start, count)
            wanted += [(int(word), 0, int(at == count - 1)) for at, word in enumerate(store[start : start + count])]
        place, values = int(rng.integers(2 * quarter - 4)), randoms(rng, 4)
        line.write(write_memory(BASE + 4 * place, *values))
        assert not master.is_idle, "the engine is at work while the bridge writes"
        store.view(np.uint32)[place : place + 4] = values
        assert line.read(2) == DONE
        line.write(read_memory(BASE + 4 * place, 4))
        assert line.read(18) == answer(Status.DONE, words(*values)), turn
        line.pass_cycles(4000)
        assert master.is_idle
        assert master.answers == [0] * bursts
        assert master.read == wanted, turn
        master.read, master.answers = [], []
    for address in (STORE.base - 8, sum(STORE), 0):
        master.burst_write(address, [(1, 0xFF), (2, 0xFF)])
        master.burst_read(address, 3)
        line.pass_cycles(100)
        assert master.answers == [3]
        assert [(code, last) for _, code, last in master.read] == [(3, 0), (3, 0), (3, 1)]
        master.read, master.answers = [], []
    master.burst_write(STORE.base, [(1, 0)])  # an error does not stay
    line.pass_cycles(50)
    assert master.answers == [0]
    # The lower half of the memory, which nobody has written, and the upper one.
    master.burst_read(STORE.base, SIZE // 8 // 2)
    master.burst_read(BASE, 256)
    line.pass_cycles(3000)
    assert {value for value, _, _ in master.read[:-256]} == {0}
    assert [value for value, _, _ in master.read[-256:]] == store[:256].tolist()
    whole = struct.unpack(f"<{SIZE // 4}I", store.tobytes())
    assert line.answer(read_memory(BASE, MOST_WORDS)) == answer(Status.DONE, words(*whole))


SCENARIOS = (
    hello,
    registers,
    memory,
    slow_memory,
    outside_of_memory,
    errors_of_memory,
    wrong_check,
    refused,
    silence,
    broken_line,
    other_speed,
    engine_beside_the_line,
)


def run(simulator, bench, scenario):
    async def testbench(ctx):
        line = Line(ctx, bench)
        line.pass_cycles(10)
        scenario(line, np.random.default_rng(1))

    simulator.run(testbench)


def told_in(scenario):
    return getattr(scenario, "told", BEYOND)


@cache
def right(told):
    bench = Bench(told=told)
    return CompiledSimulator(bench), bench


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_bridge_answers_as_the_protocol_says(scenario):
    run(*right(told_in(scenario)), scenario)


def parts_with(fault, monkeypatch):
    """Return the modules of the bridge, with the fault in one of them."""
    parts = SimpleNamespace()
    for name in vars(PARTS):
        path = ROOT / "hdl" / "bridge" / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(f"hdl.bridge.{name}", path))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(fault.applied(text) if fault.file.endswith(f"/{name}.py") else text, path, "exec"), vars(module))
        setattr(parts, name, module)
    return parts


@pytest.mark.parametrize("name", seen_by(__file__))
def test_fault_of_the_bridge_is_caught(name, monkeypatch):
    fault = seen_by(__file__)[name]
    scenario = next(scenario for scenario in SCENARIOS if scenario.__name__ == fault.by)
    bench = Bench(parts_with(fault, monkeypatch), told_in(scenario))
    simulator = CompiledSimulator(bench)
    with pytest.raises(AssertionError):
        run(simulator, bench, scenario)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: UartReceiver(3), "cycles: got 3 for a bit, must be at least 4"),
        (lambda: UartBridge(cycles=4, silence=0, region=Region(0, 4096)), "silence: got 0, must be at least 1"),
        (lambda: UartBridge(cycles=4, silence=9, region=Region(2, 4096)), "region: got Region.*must be whole words"),
        (lambda: AxiMemory(PARAMETERS, Region(0, 2048)), "region: got .* a power of two of at least 4096 bytes"),
        (lambda: AxiMemory(PARAMETERS, Region(4096, 8192)), "its address a multiple of it"),
        (lambda: AxiMemory(PARAMETERS, Region(0, 1 << 17)), "must lie within addresses of 16 bits"),
    ],
)
def test_bridge_of_wrong_parameters_is_refused(made, said):
    with pytest.raises(ValueError, match=said):
        made()
