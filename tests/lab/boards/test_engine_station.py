"""The matrix engine of a board: the driver multiplies through the two pins of the serial line."""

import time

import numpy as np
import pytest

import golden
from golden import CBFLOAT16
from hdl.bridge.system import EngineSystem
from hdl.engine import CommandFailed, Engine, TransportError
from hdl.engine.serial_line import SerialBridge
from hdl.matrix_engine.registers import EngineError
from lab.boards.board import BOARDS, engine_of
from lab.boards.station import EngineStation
from tools.simulator import CompiledSimulator

from ...hdl.bridge_bench import Line

pytestmark = pytest.mark.long

CLOCK, BAUD, MEMORY = 400_000, 100_000, 1 << 13


@pytest.fixture(scope="module")
def board():
    """A board's station and its simulator; the board's own array would only take longer to compile."""
    parameters = engine_of("ulx3s") | {"rows": 2, "columns": 2, "memory": MEMORY, "multiplier": "generic"}
    station = EngineStation(clock=CLOCK, baud=BAUD, **parameters)
    return CompiledSimulator(station, is_long=True), station


@pytest.fixture
def with_driver(board, monkeypatch):
    """Return a function that runs another one with the driver and the line."""
    simulator, station = board

    def run(use, spoilt=lambda line: line):
        async def testbench(ctx):
            line = spoilt(Line(ctx, station, bit=CLOCK // BAUD, patience=20_000))
            monkeypatch.setattr(time, "sleep", lambda seconds: line.pass_cycles(round(seconds * CLOCK)))
            use(SerialBridge(line), line)

        simulator.run(testbench)

    return run


def codes(rng, *shape):
    return golden.encode(rng.normal(size=shape).astype(np.float32), CBFLOAT16)


def test_random_matrices_through_the_pins_have_goldens_bits(with_driver):
    def use(bridge, line):
        engine, rng = Engine(bridge), np.random.default_rng(27)
        info = engine.info()
        assert (info["rows"], info["columns"], info["memory"]) == (2, 2, (0, MEMORY))
        # The last one does not fit the memory, and runs as several commands.
        for m, k, n in ((1, 1, 1), (5, 20, 7), (8, 33, 8), (3, 70, 2), (40, 48, 40)):
            a, b = codes(rng, m, k), codes(rng, k, n)
            for level in (0, 1, 2) if m < 40 else (1,):
                found = engine.matmul(a, b, operand=CBFLOAT16, level=level)
                assert (found == golden.matmul(a, b, operand=CBFLOAT16, level=level)).all(), (m, k, n, level)
        values, weights = rng.normal(size=(2, 6, 6)).astype(np.float32)
        found = engine.matmul(values, weights, operand=CBFLOAT16, transpose_b=True)
        rounded = golden.encode(values, CBFLOAT16), golden.encode(weights, CBFLOAT16).T
        assert (found == golden.matmul(*rounded, operand=CBFLOAT16)).all()

    with_driver(use)


class Noisy(Line):
    """A line that turns over a bit now and then, and is silent in the middle of a request once."""

    def write(self, content):
        self.sent = getattr(self, "sent", 0) + 1
        content = bytearray(content)
        if self.sent % 7 == 3 and content[0] in (0x20, 0x21):
            content[self.sent % len(content)] ^= 1 << self.sent % 8
        if self.sent == 11:
            super().write(content[:5])
            self.pass_cycles(CLOCK // 10)
            content = content[5:]
        super().write(content)


def test_memory_over_a_noisy_line_is_as_it_was_written(with_driver):
    def use(bridge, line):
        content = np.random.default_rng(3).bytes(600)
        for at in range(0, 600, 30):
            bridge.write_memory(at, content[at : at + 30])
        assert b"".join(bridge.read_memory(at, 60) for at in range(0, 600, 60)) == content
        assert line.sent > 20 + 10

    def noisy(line):
        line.__class__ = Noisy
        return line

    with_driver(use, noisy)


def test_addresses_outside_of_the_memory_are_errors_of_the_bus(with_driver):
    def use(bridge, line):
        with pytest.raises(
            TransportError, match="READ_MEMORY at address 0x2000: the bus of the board answered with an"
        ):
            bridge.read_memory(MEMORY, 4)
        engine = Engine(bridge)
        a = codes(np.random.default_rng(0), 4, 4)
        device = engine._device
        device.memory = device.memory._replace(base=MEMORY)  # a driver that is wrong about the memory
        bridge.write_memory = lambda address, content: None
        with pytest.raises(CommandFailed) as failed:
            engine.matmul(a, a, operand=CBFLOAT16)
        assert failed.value.error is EngineError.READ
        engine = Engine(SerialBridge(line))
        assert (engine.matmul(a, a, operand=CBFLOAT16) == golden.matmul(a, a, operand=CBFLOAT16)).all()

    with_driver(use)


@pytest.mark.parametrize("board_name", BOARDS)
def test_engine_of_a_board_can_be_built(board_name):
    parameters = engine_of(board_name)
    system = EngineSystem(clock=25e6, **parameters)
    assert system.bridge.cycles == 25
    with pytest.raises(ValueError, match=r"baud: got 3000000, which a clock of 2.5e\+07 Hz misses by more than 2%"):
        EngineSystem(clock=25e6, baud=3_000_000, **parameters)
    assert parameters["memory"] < 1 << parameters["address_bits"], "an address outside of the memory can be told"
