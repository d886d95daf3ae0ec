"""The outputs of the board: the line of text on the serial pin, and the lamps."""

import pytest
from amaranth.sim import Simulator

from hdl.bridge.uart import UartTransmitter
from lab.boards.expectation import expect
from lab.boards.plan import Plan
from lab.boards.station import Station, VerdictLine
from tools.simulator import CompiledSimulator

pytestmark = pytest.mark.long

TINY = Plan(windows=1, length=2)
SIGNATURE = expect(TINY).signature
BIT = 4


def decoded(levels: list[int], cycles: int) -> bytes:
    """Read bytes off a line as a receiver does: a falling edge, then the middle of every bit."""
    received, at = bytearray(), 0
    while at + 10 * cycles <= len(levels):  # a byte that the end cuts off is not received
        if levels[at]:
            at += 1
            continue
        bits = [levels[at + cycles * number + cycles // 2] for number in range(10)]
        assert (bits[0], bits[9]) == (0, 1), "start and stop bit"
        received.append(sum(bit << number for number, bit in enumerate(bits[1:9])))
        at += 9 * cycles + cycles // 2
    return bytes(received)


def simulated(station: Station, lines: int) -> tuple[bytes, dict[str, int]]:
    """Run until some lines have been sent; return them and the lamps."""
    levels, lamps = [], {}

    async def testbench(ctx):
        sent, was_busy = 0, 0
        while sent < lines:
            await ctx.tick()
            levels.append(ctx.get(station.tx))
            is_busy = ctx.get(station.line.busy)
            sent += was_busy and not is_busy
            was_busy = is_busy
        # The transmitter still has the last byte.
        for _ in range(12 * BIT):
            await ctx.tick()
            levels.append(ctx.get(station.tx))
        lamps.update({name: ctx.get(getattr(station, name)) for name in ("passed", "failed", "heartbeat")})

    CompiledSimulator(station, station.line.busy).run(testbench)
    received = decoded(levels, BIT).splitlines(keepends=True)
    return b"".join(received[:lines]), lamps


def station(expected: int) -> Station:
    return Station(expected, clock=1e6, baud=1_000_000 // BIT, plan=TINY)


def test_station_with_golden_signature_sends_pass_for_every_round():
    text, lamps = simulated(station(SIGNATURE), lines=2)
    line = f"cbfloat16 MAC signature {SIGNATURE:08x} expected {SIGNATURE:08x} PASS\r\n".encode()
    assert text == 2 * line
    assert (lamps["passed"], lamps["failed"]) == (1, 0)


def test_station_with_wrong_expectation_sends_fail():
    wrong = SIGNATURE ^ 0x8000_0000
    text, lamps = simulated(station(wrong), lines=1)
    assert text == f"cbfloat16 MAC signature {SIGNATURE:08x} expected {wrong:08x} FAIL\r\n".encode()
    assert (lamps["passed"], lamps["failed"]) == (0, 1)


def test_heartbeat_changes_every_half_second_of_the_clock():
    unit, beats = Station(SIGNATURE, clock=200, baud=50, plan=TINY), []

    async def testbench(ctx):
        for _ in range(1000):
            beats.append(ctx.get(unit.heartbeat))
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1 / 200)
    simulator.add_testbench(testbench)
    simulator.run()
    assert beats == [cycle // 100 % 2 for cycle in range(1000)]


@pytest.mark.parametrize("found", [0x01234567, 0x89ABCDEF])
def test_verdict_line_shows_every_hexadecimal_digit(found):
    line, sent = VerdictLine(0), bytearray()

    async def testbench(ctx):
        ctx.set(line.found, found)
        ctx.set(line.o.ready, 1)
        ctx.set(line.start, 1)
        await ctx.tick()
        ctx.set(line.start, 0)
        while ctx.get(line.busy):
            sent.append(ctx.get(line.o.payload))
            await ctx.tick()

    simulator = Simulator(line)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert sent == f"cbfloat16 MAC signature {found:08x} expected 00000000 FAIL\r\n".encode()


@pytest.mark.parametrize("cycles", [2, 3, 217])
def test_transmitter_sends_bytes_back_to_back_with_bits_of_equal_length(cycles):
    uart, levels, data = UartTransmitter(cycles), [], b"\x00\xffU\xaa"

    async def testbench(ctx):
        ctx.set(uart.i.valid, 1)
        for byte in data:
            ctx.set(uart.i.payload, byte)
            taken = False
            while not taken:
                taken = ctx.get(uart.i.ready)
                await ctx.tick()
                levels.append(ctx.get(uart.tx))
        ctx.set(uart.i.valid, 0)
        for _ in range(11 * cycles):
            await ctx.tick()
            levels.append(ctx.get(uart.tx))

    simulator = Simulator(uart)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert decoded(levels, cycles) == data


def test_transmitter_of_too_slow_a_clock_is_refused():
    with pytest.raises(ValueError, match="cycles: got 1 for a bit, must be at least 2"):
        UartTransmitter(1)
