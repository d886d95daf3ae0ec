"""The driver's connections: a serial line, a memory-mapped file."""

import os
import threading
import time
import tty
from contextlib import suppress

import numpy as np
import pytest
import serial

import golden
from golden import CBFLOAT16
from hdl.engine import Engine, Region, TransportError, serial_line
from hdl.engine.frames import MOST_WORDS, Operation, Status, answer, check, request
from hdl.engine.mapped import Mapped
from hdl.engine.serial_line import SerialBridge
from hdl.matrix_engine.registers import register_named

from .bridge_double import BridgeDouble
from .engine_double import Double


@pytest.fixture(autouse=True)
def _without_silence(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def codes(shape, seed=1):
    return golden.encode(np.random.default_rng(seed).normal(size=shape).astype(np.float32), CBFLOAT16)


def test_check_is_the_crc_of_the_published_example():
    assert check(b"123456789") == 0xF4  # CRC-8/SMBUS in the catalogue of parametrised CRC algorithms
    asked = request(Operation.READ_MEMORY, 0x12345678, 2)
    assert asked[:-1] == bytes([0x20, 0x78, 0x56, 0x34, 0x12, 2, 0])
    assert check(asked) == 0


def test_product_over_a_serial_line_gives_goldens_bits():
    bridge = BridgeDouble(Double())
    engine = Engine(SerialBridge(bridge))
    a, b = codes((31, 45)), codes((45, 33), 2)
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
    assert engine.info()["memory"] == (0x1000, 1 << 20)
    engine.close()
    assert bridge.closed


@pytest.mark.parametrize(("at", "length"), [(0, 1), (1, 6), (3, 2), (2, 4 * MOST_WORDS), (4, 8), (7, 3 * MOST_WORDS)])
def test_bytes_of_memory_over_a_serial_line_are_those_asked_for(at, length):
    double = Double()
    bridge = SerialBridge(BridgeDouble(double))
    content, before = np.random.default_rng(3).bytes(length), double.bytes.copy()
    bridge.write_memory(0x1000 + at, content)
    assert bridge.read_memory(0x1000 + at, length) == content
    before[at : at + length] = np.frombuffer(content, np.uint8)
    assert (double.bytes == before).all(), "bytes beside them changed"


def flipped(content, bit):
    wrong = bytearray(content)
    wrong[bit // 8 % len(wrong)] ^= 1 << bit % 8
    return bytes(wrong)


@pytest.mark.parametrize("bit", range(16))
def test_memory_is_asked_for_again_after_a_damaged_answer(bit):
    bridge = BridgeDouble(Double(), lambda number, content: flipped(content, bit) if number == 2 else content)
    driver = SerialBridge(bridge)
    driver.write_memory(0x1000, b"12345678")
    assert driver.read_memory(0x1000, 8) == b"12345678"
    asked = [operation for operation, _, _ in bridge.operations]
    assert asked.count(Operation.READ_MEMORY) == 2


class LateLine(BridgeDouble):
    """A line whose next read, once `fails` is set, ends early; `late` brings its answer after the next reset only."""

    fails, late, held = None, False, b""

    def read(self, size):
        if self.fails is not None:
            error, self.fails = self.fails, None
            if self.late:
                self.held, self.sent = self.sent, b""
            if error:
                raise error
            return b""
        return super().read(size)

    def reset_input_buffer(self):
        self.sent, self.held = self.held, b""


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ""])
def test_serial_line_without_the_answer_to_a_request_gives_the_next_one_its_own_answer(error, late):
    line = LateLine(Double())
    driver = SerialBridge(line)
    driver.write_memory(0x1000, b"abcdefgh")
    driver.write(register_named("M").address, 5)
    m, n = (register_named(name).address for name in "MN")
    asks = (
        (lambda: driver.read_memory(0x1000, 4), lambda: driver.read_memory(0x1004, 4), b"efgh"),
        (lambda: driver.read(m), lambda: driver.read(n), 0),
        (lambda: driver.write(n, 0), lambda: driver.read(m), 5),
    )
    for ask, ask_next, wanted in asks:
        line.fails, line.late = error, late
        with suppress(KeyboardInterrupt, TransportError):
            ask()
        assert ask_next() == wanted
        assert ask_next() == wanted


def test_serial_line_whose_bridge_changes_after_a_failure_is_refused():
    line = BridgeDouble(Double())
    driver = SerialBridge(line)
    line.transport.memory = Region(0x2000, 64)
    with pytest.raises(TransportError, match="WRITE_REGISTER at address 0x0: the bus of the board answered with an"):
        driver.write(0, 1)
    with pytest.raises(TransportError, match="HELLO at address 0x0: no answer, or a damaged one"):
        driver.read(0)


def test_product_after_one_that_was_interrupted_on_a_serial_line_has_goldens_bits():
    line = LateLine(Double())
    engine = Engine(SerialBridge(line))
    a, b = codes((5, 20)), codes((20, 4), 2)
    wanted, read = golden.matmul(a, b, operand=CBFLOAT16), line.read
    for number in range(0, 60, 3):
        left = [number]

        def interrupted(size, left=left):
            if not left[0]:
                line.fails, line.late = KeyboardInterrupt(), True
            left[0] -= 1
            return read(size)

        line.read = interrupted
        with suppress(KeyboardInterrupt):
            while True:
                engine.matmul(a, b, operand=CBFLOAT16)
        assert (engine.matmul(a, b, operand=CBFLOAT16) == wanted).all()
        assert engine.counters()["cycles"]


@pytest.mark.parametrize("name", ["read", "write", "reset_input_buffer"])
def test_serial_port_that_fails_raises_a_transport_error_that_says_what_to_do(name):
    line = BridgeDouble(Double())
    driver = SerialBridge(line)

    def gone(*_):
        raise serial.SerialException("device disconnected")

    setattr(line, name, gone)
    if name == "reset_input_buffer":
        line.damage = lambda number, content: b""
    with pytest.raises(TransportError, match=r"^serial line: device disconnected; check the cable, then make another"):
        driver.read_memory(0x1000, 4)


@pytest.mark.parametrize("baud", [9600, 38_400, 1_000_000])
def test_serial_port_waits_as_long_as_the_longest_answer_takes(monkeypatch, baud):
    given = {}
    monkeypatch.setattr(serial, "Serial", lambda port, baud, **options: given.update(options))
    serial_line.open_port("/dev/none", baud)
    longest = len(request(Operation.READ_MEMORY)) + len(answer(Status.DONE, bytes(4 * MOST_WORDS)))
    assert given["timeout"] > 10 * longest / baud + 0.5
    with pytest.raises(ValueError, match="baud: got 0, must be an int of at least 1"):
        serial_line.open_port("/dev/none", 0)


@pytest.mark.parametrize(
    ("port", "baud", "said"),
    [
        (None, 9600, "port: got None, must be the name of a serial port"),
        ("/dev/none", 1.5, "baud: got 1.5, must be an int of at least 1"),
    ],
)
def test_serial_port_with_a_wrong_argument_names_it(port, baud, said):
    with pytest.raises(TypeError, match=said):
        serial_line.open_port(port, baud)


def test_port_that_somebody_else_has_open_is_refused_and_a_failed_attach_frees_it():
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    name = os.ttyname(theirs)
    thread = threading.Thread(target=serve_port, args=(ours, Other(Double())), daemon=True)
    thread.start()
    for _ in range(2):
        with pytest.raises(TransportError, match=f"port: got 0x04030201 from {name}, must be 0x31464243"):
            Engine.serial(name)
    held = serial_line.open_port(name, 9600)
    with pytest.raises(TransportError, match=f"port: got '{name}', which cannot be opened: .*lock"):
        serial_line.open_port(name, 9600)
    held.close()
    os.close(theirs)
    thread.join(5)
    os.close(ours)


def test_requests_of_two_threads_over_a_serial_line_do_not_mix():
    engine = Engine(SerialBridge(BridgeDouble(Double())))
    a, b = codes((12, 60)), codes((60, 12), 2)
    ends, seen = threading.Event(), []

    def watch():
        while not ends.is_set():
            seen.append(engine.counters()["beats"])

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(20):
        assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
    ends.set()
    watcher.join(5)
    assert seen == sorted(seen)
    assert seen


def test_transport_that_is_closed_says_so(tmp_path):
    path = tmp_path / "device"
    path.write_bytes(bytes(8192))
    for transport in (SerialBridge(BridgeDouble(Double())), Mapped(path, memory=Region(4096, 64))):
        transport.close()
        transport.close()
        for use in (
            lambda it: it.read(0),
            lambda it: it.write(0, 1),
            lambda it: it.read_memory(4096, 4),
            lambda it: it.write_memory(4096, b"abcd"),
        ):
            with pytest.raises(TransportError, match=": the transport is closed; make another Engine"):
                use(transport)


def test_register_is_never_written_twice():
    bridge = BridgeDouble(Double(), lambda number, content: b"" if number else content)
    driver = SerialBridge(bridge)
    with pytest.raises(TransportError, match="WRITE_REGISTER at address 0x98: no answer, or a damaged one"):
        driver.write(register_named("SUBMIT").address, 1)
    assert [operation for operation, _, _ in bridge.operations].count(Operation.WRITE_REGISTER) == 1


def test_damaged_request_does_nothing_and_is_sent_again():
    double = Double()
    bridge = BridgeDouble(double)
    driver = SerialBridge(bridge)
    write = bridge.write
    bridge.write = lambda content: (setattr(bridge, "write", write), write(flipped(content, 60)))[1]
    driver.write_memory(0x1000, b"abcd")
    assert driver.read_memory(0x1000, 4) == b"abcd"
    assert [operation for operation, _, _ in bridge.operations if operation != Operation.HELLO] == [
        *[Operation.WRITE_MEMORY] * 2,
        Operation.READ_MEMORY,
    ]
    bridge.write = lambda content: write(flipped(content, 60))
    with pytest.raises(TransportError, match="WRITE_REGISTER at address 0x40: it reached the bridge damaged"):
        driver.write(0x40, 7)
    assert double.words["M"] == 0


def test_errors_of_the_board_are_told():
    driver = SerialBridge(BridgeDouble(Double()))
    with pytest.raises(TransportError, match="WRITE_REGISTER at address 0x0: the bus of the board answered with an"):
        driver.write(0, 1)


class Other(BridgeDouble):
    """Something else that speaks the same protocol."""

    def serve(self, request):
        return answer(Status.DONE, b"\1\2\3\4" + bytes(8))


def test_port_with_something_else_is_told():
    with pytest.raises(
        TransportError, match="port: got 0x04030201 from serial line, must be 0x31464243: is it the UART"
    ):
        SerialBridge(Other(Double()))
    with pytest.raises(TransportError, match=r"HELLO at address 0x0: no answer, or a damaged one; is the board on"):
        SerialBridge(BridgeDouble(Double(), lambda number, content: b""))
    with pytest.raises(TransportError, match="port: got '/dev/none', which cannot be opened"):
        Engine.serial("/dev/none")


def test_product_over_a_port_of_the_system_gives_goldens_bits():
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    bridge = BridgeDouble(Double())
    thread = threading.Thread(target=serve_port, args=(ours, bridge), daemon=True)
    thread.start()
    try:
        with Engine.serial(os.ttyname(theirs)) as engine:
            a, b = codes((7, 40)), codes((40, 5), 2)
            assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
    finally:
        os.close(theirs)
        thread.join(5)
        os.close(ours)
    assert Operation.WRITE_MEMORY in {operation for operation, _, _ in bridge.operations}


def serve_port(end, bridge):
    while True:
        try:
            bridge.write(os.read(end, 4096))
        except OSError:  # nobody has the other end any more
            return
        sent = bridge.read(1 << 20)
        while sent:
            sent = sent[os.write(end, sent) :]


REGISTERS, MEMORY, SIZE = 0x1F00, 0x4000, 1 << 16
MARK = 0xFFFFFFFF


class FileDouble(threading.Thread):
    """A double behind an ordinary file: it notices the driver's writes to the file."""

    def __init__(self, path, double):
        super().__init__(daemon=True)
        path.write_bytes(bytes(MEMORY + SIZE))
        self.words = np.memmap(path, np.uint32, "r+", REGISTERS, (64,))
        self.bytes = np.memmap(path, np.uint8, "r+", MEMORY, (SIZE,))
        self.double, self.ends = double, threading.Event()
        double.bytes = self.bytes
        for name, value in double.words.items():
            self.words[register_named(name).address // 4] = value
        self.places = {name: register_named(name).address // 4 for name in ("SUBMIT", "RESULT", "CONTROL")}
        self.words[[self.places["SUBMIT"], self.places["CONTROL"]]] = MARK
        self.shown = 0

    def run(self):
        submit, result, control = (self.places[name] for name in ("SUBMIT", "RESULT", "CONTROL"))
        while not self.ends.is_set():
            if self.words[control] != MARK:
                self.words[control] = MARK
            if self.shown and self.words[result] == 0:
                self.shown = 0
            if not self.shown and self.words[submit] != MARK:
                tag, self.words[submit] = int(self.words[submit]), MARK
                for name in self.double.words:
                    if register_named(name).is_command:
                        self.double.words[name] = int(self.words[register_named(name).address // 4])
                error, tag, flags = self.double.run(tag)
                self.shown = register_named("RESULT").word(error=error, tag=tag, flags=flags, valid=1)
                self.words[result] = self.shown


def test_product_through_an_ordinary_file_gives_goldens_bits(tmp_path):
    path = tmp_path / "device"
    double = FileDouble(path, Double(size=SIZE, base=0x80000000))
    double.start()
    try:
        options = {"offset": REGISTERS, "memory": (0x80000000, SIZE), "memory_offset": MEMORY}
        with Engine.mapped(path, **options) as engine:
            for seed in range(5):
                a, b = codes((9, 40), seed), codes((40, 7), seed + 9)
                assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
            assert engine.info()["transport"] == f"mapped {path}"
    finally:
        double.ends.set()
        double.join(5)
    assert len(double.double.commands) == 5


def test_mapped_file_has_registers_and_memory_where_they_were_said_to_be(tmp_path):
    registers, memory = tmp_path / "registers", tmp_path / "memory"
    registers.write_bytes(bytes(8192))
    memory.write_bytes(bytes(16384))
    mapped = Mapped(registers, offset=0x1004, memory=Region(0x1000, 64), memory_path=memory)
    mapped.write(0x40, 0x12345678)
    mapped.write_memory(0x1003, b"abc")
    assert mapped.read(0x40) == 0x12345678
    assert mapped.read_memory(0x1002, 5) == b"\0abc\0"
    mapped.close()
    assert registers.read_bytes()[0x1044:0x1048] == bytes.fromhex("78563412")
    assert memory.read_bytes()[0x1003:0x1006] == b"abc"


def test_file_that_cannot_be_mapped_is_told(tmp_path):
    with pytest.raises(TransportError, match=r"path: got .*none, of which 256 bytes from 0x0 on cannot be mapped"):
        Engine.mapped(tmp_path / "none")
    short = tmp_path / "short"
    short.write_bytes(bytes(300))
    with pytest.raises(TransportError, match=r"path: got .*short, of which 4096 bytes from 0x1000 on"):
        Engine.mapped(short, memory=(4096, 4096))
    with pytest.raises(TransportError, match=r"memory_path: got .*none, of which 1048576 bytes from 0x0 on"):
        Engine.mapped(short, memory_path=tmp_path / "none")
    with pytest.raises(TransportError, match=r"path: got .* cannot be mapped"):
        Engine.mapped(short, memory=(4096, 4096), offset=1 << 70)
    for given, said in (
        ({"offset": 2}, "offset: got 2, must be a multiple of 4 from 0"),
        ({"offset": -4}, "offset: got -4, must be an int of at least 0"),
        ({"offset": "0x40"}, "offset: got '0x40', must be an int of at least 0"),
        ({"memory": (-4096, 4096)}, "memory, its address: got -4096, must be an int of at least 0"),
        ({"memory": (4096, -1)}, "memory, its bytes: got -1, must be an int of at least 1"),
        ({"memory": 5}, "memory: got 5, must be an address and a number of bytes"),
        ({"memory_offset": -4096}, "memory_offset: got -4096, must be an int of at least 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            Engine.mapped(short, **given)


def test_memory_that_lies_on_the_registers_is_refused_before_it_is_written(tmp_path):
    path = tmp_path / "bar"
    path.write_bytes(bytes(1 << 16))
    for given in (
        {},
        {"offset": 4096, "memory": (4000, 97)},
        {"offset": 4096, "memory": (0, 9), "memory_offset": 4351},
    ):
        with pytest.raises(ValueError, match=r"memory: got .* in the file of the registers, must lie apart from their"):
            Engine.mapped(path, **given)
    other = tmp_path / "memory"
    other.write_bytes(bytes(64))
    for given in (
        {"memory": (256, 64)},
        {"offset": 4096, "memory": (0, 4096)},
        {"memory": (0, 64), "memory_path": other},
    ):
        with pytest.raises(TransportError, match="ID: got 0x0000 in its upper half"):
            Engine.mapped(path, **given)


def test_serial_line_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "serial", None)
    with pytest.raises(ModuleNotFoundError, match=r"Engine.serial needs pyserial: pip install 'cbfloat\[serial\]'"):
        serial_line.open_port("/dev/none", 9600)
