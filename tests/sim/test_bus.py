"""The bench's side of the counters' bus, on a bus in Python: each rule that the bus breaks is told by itself."""

from types import SimpleNamespace

import pytest

from sim.bench import bus as bench
from sim.bench.bus import BusCounting
from sim.counts import CLEAR_ADDRESS, COUNTER_ADDRESSES, COUNTER_BITS, COUNTERS

#: Cycles of traffic while the unit works, in which a counter moves now and then.
WORKS = 600


class Pin:
    """A signal, which the bench sets at once."""

    def __init__(self) -> None:
        self._value = 0

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, given) -> None:
        self._value = getattr(given, "value", given)


class Edge:
    """The next falling edge."""

    def __await__(self):
        yield


class Bus:
    """A unit with counters behind a bus as INTERFACE says, but for one fault."""

    def __init__(self, fault: str = "") -> None:
        names = "awaddr awvalid awready wdata wstrb wvalid wready bresp bvalid bready"
        names += " araddr arvalid arready rdata rresp rvalid rready"
        self.pins = {name: Pin() for name in names.split()}
        self.dut = SimpleNamespace(**{f"s_axil_{name}": pin for name, pin in self.pins.items()})
        self.dut.dut = SimpleNamespace(unit=SimpleNamespace(counts=Pin(), clear_counts=Pin()))
        self.fault, self.counts, self.total, self.cycle = fault, [0] * len(COUNTERS), [0] * len(COUNTERS), 0
        self.address = self.strobes = self.reads = None
        #: Clears while something was counted, and what of a write came first.
        self.clears, self.first = 0, set[str]()
        self._show()

    def edge(self, events: bool) -> None:
        """Take the coming edge."""
        now = {name: pin.value for name, pin in self.pins.items()}
        self.cycle += 1
        clears = bool(self.dut.dut.unit.clear_counts.value)
        self.clears += clears and events and any(self.counts)
        if clears and self.fault != "a clear is lost":
            self.counts = [0] * len(COUNTERS)
        if events and self.cycle % 3 == 0:
            for at in range(len(COUNTERS)):
                self.counts[at] += at + 1
                self.total[at] += at + 1
        if self.fault == "a counter falls" and self.cycle % 40 == 0:
            self.counts[3] //= 2
        self._write(now)
        self._read(now)
        self._show()

    def _write(self, now) -> None:
        if now["bvalid"] and now["bready"]:
            self.pins["bvalid"].value = 0
        if self.address is not None and self.strobes is not None and not now["bvalid"]:
            is_clear = self.address == CLEAR_ADDRESS or self.fault == "a counter takes writes"
            self.pins["bresp"].value = 0 if is_clear else 2
            self.pins["bvalid"].value = 1
            self.address = self.strobes = None
        if now["awvalid"] and now["awready"]:
            self.first |= {"address"} if self.strobes is None else {"data"}
            self.address = now["awaddr"] & ~3
        if now["wvalid"] and now["wready"]:
            self.strobes = now["wstrb"]

    def _read(self, now) -> None:
        waits = now["rvalid"] and not now["rready"]
        if now["rvalid"] and now["rready"]:
            self.pins["rvalid"].value = 0
        if waits and self.fault == "an answer falls":
            self.pins["rvalid"].value = 0
            self.reads = COUNTER_ADDRESSES[0]
            return
        if waits and self.fault == "an answer changes":
            self.pins["rdata"].value ^= 1
        if self.reads is not None and not self.pins["rvalid"].value:
            self.pins["rdata"].value, self.pins["rvalid"].value = self._register(self.reads), 1
            self.pins["rresp"].value = 2 * (self.fault == "a read is an error" and self.reads == CLEAR_ADDRESS)
            self.reads = None
        if now["arvalid"] and now["arready"]:
            self.reads = now["araddr"] & ~3

    def _register(self, address: int) -> int:
        if address in COUNTER_ADDRESSES:
            at = COUNTER_ADDRESSES.index(address)
            at = {6: 7, 7: 6}.get(at, at) if self.fault == "two counters are exchanged" else at
            return self.counts[at]
        return int(self.fault == "nothing is something")

    def _show(self) -> None:
        self.pins["awready"].value = int(self.address is None)
        self.pins["wready"].value = int(self.strobes is None)
        self.pins["arready"].value = int(self.reads is None)
        unit = self.dut.dut.unit
        word = sum(count << COUNTER_BITS * at for at, count in enumerate(self.counts))
        unit.counts.value = f"{word:0{COUNTER_BITS * len(COUNTERS)}b}"
        done = self.address is not None and self.strobes is not None and not self.pins["bvalid"].value
        strobes = self.strobes or (self.fault == "a write of no byte clears" and done)
        anywhere = self.fault == "any write clears"
        unit.clear_counts.value = int(bool(done and strobes and (anywhere or self.address == CLEAR_ADDRESS)))


class Done:
    """A task that has ended."""

    def __await__(self):
        return iter(())


def counted(fault: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Bus, list[str]]:
    """Read a bus while its unit works, and at rest; return what was counted, the bus, and what is broken."""
    traffic = []
    monkeypatch.setattr(bench.cocotb, "start_soon", lambda work: traffic.append(work) or Done())
    bus = Bus(fault)
    counting = BusCounting(bus.dut, Edge(), seed)
    (work,) = traffic

    def drive(coroutine, cycles: int, *, events: bool):
        for _ in range(cycles):
            try:
                coroutine.send(None)
            except StopIteration as ended:
                return ended.value
            counting.step(bus.cycle)
            bus.edge(events)
        raise AssertionError("the bus does not answer")

    try:
        drive(work, WORKS, events=True)
    except AssertionError as error:
        if "does not answer" not in str(error):
            raise
    counting._stops = True
    drive(work, 200, events=False)
    found = drive(counting.finish(), 2000, events=False)
    return found, bus, counting.broken


@pytest.mark.parametrize("seed", range(4))
def test_bus_that_keeps_the_rules_is_read_as_it_counts_whatever_is_cleared(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    found, bus, broken = counted("", seed, monkeypatch)
    assert broken == []
    assert found == bus.total
    assert min(bus.total) > 100
    assert bus.clears >= 3
    assert bus.first == {"address", "data"}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("a write of no byte clears", "counters after these writes: got [0, "),
        ("any write clears", "counters after these writes: got [0, "),
        ("a counter takes writes", "write to 0x0: got 0, must be 2"),
        ("nothing is something", "register 0x18: got 1, must be 0"),
        ("a clear is lost", "counters after a clear: got "),
        ("a counter falls", f"{COUNTERS[3]} falls from "),
    ],
)
def test_bus_that_breaks_a_rule_is_told(monkeypatch: pytest.MonkeyPatch, fault: str, said: str) -> None:
    *_, broken = counted(fault, 1, monkeypatch)
    assert any(line.startswith(said) for line in broken), broken


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("an answer falls", "rvalid fell before it was taken"),
        ("an answer changes", "answer of r changed"),
        ("a read is an error", "read of 0x3c: answered with an error"),
    ],
)
def test_bus_whose_answers_are_none_ends_the_test(monkeypatch: pytest.MonkeyPatch, fault: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        counted(fault, 1, monkeypatch)


def test_bus_that_shows_one_counter_as_another_is_not_read_as_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found, bus, _ = counted("two counters are exchanged", 1, monkeypatch)
    differ = [name for name, one, other in zip(COUNTERS, found, bus.total, strict=True) if one != other]
    assert differ == [COUNTERS[6], COUNTERS[7]]
