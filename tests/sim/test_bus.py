"""The bench's side of the counters' bus, on a bus in Python: each broken rule is reported by itself."""

from types import SimpleNamespace

import pytest

from sim.bench.bus import BusCounting
from sim.counts import CLEAR_ADDRESS, COUNTER_ADDRESSES, COUNTER_BITS, COUNTERS

#: Cycles of traffic while the unit works, in which the counters move now and then.
WORKS = 600
LARGEST = (1 << COUNTER_BITS) - 1
#: Bits of a counter that are added at once, in a unit of one lane.
LOW_BITS = 6


class Pin:
    """A signal, which the bench sets at once; it reads as text, as an int, and as a truth value."""

    def __init__(self) -> None:
        self.now = 0

    @property
    def value(self):
        return Seen(self.now)

    @value.setter
    def value(self, given) -> None:
        self.now = getattr(given, "value", given)


class Part:
    """Bits of a counter, which are set by themselves."""

    def __init__(self, whole: Pin, start: int, width: int) -> None:
        self._whole, self._start, self._mask = whole, start, (1 << width) - 1 << start

    def __len__(self) -> int:
        return self._mask.bit_count()

    @property
    def value(self):
        return Seen((self._whole.now & self._mask) >> self._start)

    @value.setter
    def value(self, given) -> None:
        self._whole.now = self._whole.now & ~self._mask | getattr(given, "value", given) << self._start


class Seen(int):
    def __str__(self) -> str:
        return f"{self:b}"


class Counts:
    """The port of all counters."""

    def __init__(self, counters) -> None:
        self._counters = counters

    @property
    def value(self):
        return Seen(sum(counter.now << COUNTER_BITS * at for at, counter in enumerate(self._counters)))


class Edge:
    """The next falling edge."""

    def __await__(self):
        yield


class Bus:
    """A unit with counters behind a bus, correct except for one fault."""

    def __init__(self, fault: str = "") -> None:
        names = "awaddr awvalid awready wdata wstrb wvalid wready bresp bvalid bready"
        names += " araddr arvalid arready rdata rresp rvalid rready"
        self.pins = {name: Pin() for name in names.split()}
        self.counters, self.more = [Pin() for _ in COUNTERS], [Pin() for _ in COUNTERS]
        inside = SimpleNamespace()
        for name, counter, more in zip(COUNTERS, self.counters, self.more, strict=True):
            parts = {"low": Part(counter, 0, LOW_BITS), "high": Part(counter, LOW_BITS, COUNTER_BITS - LOW_BITS)}
            parts |= {name: Pin() for name in ("next_high", "carry", "waits", "adds")}
            setattr(inside, name.replace(".", "_"), SimpleNamespace(**parts))
            setattr(inside, f"counted_{name.replace('.', '_')}", more)
        unit = SimpleNamespace(counting=inside, counts=Counts(self.counters))
        self.dut = SimpleNamespace(**{f"s_axil_{name}": pin for name, pin in self.pins.items()})
        self.dut.dut, self.dut.rst = SimpleNamespace(unit=unit), Pin()
        self.fault, self.cycle, self.total, self.met = fault, 0, [0] * len(COUNTERS), set[str]()
        self.address = self.strobes = self.read = None
        self._reset()

    def _reset(self) -> None:
        if self.fault != "a reset leaves the bus as it is":
            self.address = self.strobes = self.read = None
            self.pins["bvalid"].value = self.pins["rvalid"].value = 0
        for pin in self.counters if self.fault != "a reset leaves the counters as they are" else ():
            pin.value = 0
        self._show()

    def edge(self, *, events: bool) -> None:
        """Take the coming edge."""
        now = SimpleNamespace(**{name: pin.now for name, pin in self.pins.items()})
        self.cycle += 1
        if self.dut.rst.now:
            self.met |= {
                f"reset with {name}" for name in ("address", "strobes", "read") if getattr(self, name) is not None
            }
            self.met |= {f"reset with {name}" for name in ("bvalid", "rvalid") if getattr(now, name)}
            self._reset()
            return
        held = [pin.now for pin in self.counters]
        clears = self._write(now)
        self._read(now, held)
        self._count(held, clears=clears)
        for at, pin in enumerate(self.more):
            pin.value = int(events and self.cycle % (at + 2) < 2)
        self._show()

    def _count(self, held: list[int], *, clears: bool) -> None:
        self.met |= {"clear"} if clears and any(held) else set()
        for at, (pin, more) in enumerate(zip(self.counters, self.more, strict=True)):
            self.total[at] += more.now
            before = 0 if clears and self.fault != "a clear is lost" else held[at]
            self.met |= {"full"} if before == LARGEST and more.now else set()
            full = before == LARGEST and self.fault != "a full counter begins again"
            after = (before + (more.now and not full)) & LARGEST
            if self.fault == "a carry is lost" and after & 0xFFFF == 0:
                after = before & ~0xFFFF
            if self.fault == "a count is lost" and self.cycle == 100:
                after = before
            pin.value = after

    def _write(self, now) -> bool:
        """Take a write; return whether the counters are cleared."""
        stalls = now.bvalid and not now.bready
        self.met |= {"early bready"} if now.bready and not now.bvalid else set()
        pins, clears = self.pins, False
        if not stalls:
            pins["bvalid"].value = 0
        has_data = self.strobes is not None or self.fault == "an answer comes ahead of the data"
        if self.address is not None and has_data and not stalls and self.fault != "writes are not answered":
            is_clear = self.address == CLEAR_ADDRESS
            clears = (is_clear or self.fault == "any write clears") and bool(
                self.strobes or self.fault == "a write of no byte clears"
            )
            pins["bresp"].value = 0 if is_clear or self.fault == "a counter takes writes" else 2
            pins["bvalid"].value, self.address, self.strobes = 1, None, None
        taken = {name for name in ("aw", "w") if getattr(now, f"{name}valid") and getattr(now, f"{name}ready")}
        if taken == {"aw", "w"}:
            self.met.add("both at once")
        elif taken and self.address is None and self.strobes is None:
            self.met.add(f"{min(taken)} first")
        if "aw" in taken:
            self.address = now.awaddr & ~3
        if "w" in taken:
            self.strobes = now.wstrb
        both = self.address is not None and self.strobes is not None
        self.met |= {"write behind an answer"} if both and pins["bvalid"].now else set()
        return clears

    def _read(self, now, held: list[int]) -> None:
        stalls, pins = now.rvalid and not now.rready, self.pins
        self.met |= {"early rready"} if now.rready and not now.rvalid else set()
        if not stalls or self.fault == "an answer falls":
            pins["rvalid"].value = 0
        elif self.fault == "an answer changes":
            pins["rdata"].value = pins["rdata"].now ^ 1
        elif self.read is not None:
            self.met.add("read behind an answer")
        if self.read is not None and not stalls:
            pins["rdata"].value, pins["rvalid"].value = self._register(self.read, held), 1
            pins["rresp"].value = 2 * (self.fault == "a read is an error" and self.read == CLEAR_ADDRESS)
            self.met |= {"read beside a write"} if pins["bvalid"].now else set()
            self.read = None
        if now.arvalid and now.arready:
            self.read = now.araddr & ~3

    def _register(self, address: int, held: list[int]) -> int:
        if address not in COUNTER_ADDRESSES:
            return int(self.fault == "nothing is something")
        at = COUNTER_ADDRESSES.index(address)
        return held[{6: 7, 7: 6}.get(at, at) if self.fault == "two counters are exchanged" else at]

    def _show(self) -> None:
        blocks = self.fault == "a read waits for a write" and self.address is not None
        self.pins["awready"].value = int(self.address is None)
        self.pins["wready"].value = int(self.strobes is None)
        self.pins["arready"].value = int(self.read is None and not blocks)


def counted(fault: str, seed: int) -> tuple[list[int] | None, Bus, list[str]]:
    """Read a bus while its unit works, and at rest; return the counts, the bus, and the broken rules."""
    bus = Bus(fault)
    counting = BusCounting(bus.dut, Edge(), seed)
    for cycle in range(WORKS):
        bus.edge(events=cycle < WORKS - 2)
        counting.step(cycle)
    finish = counting.finish()
    for _ in range(3000):
        try:
            finish.send(None)
        except StopIteration as ended:
            return ended.value, bus, counting.broken
        bus.edge(events=False)
    raise AssertionError("the bench does not end")


@pytest.mark.parametrize("seed", range(4))
def test_bus_that_keeps_the_rules_is_read_as_it_counts_whatever_is_on_it(seed: int) -> None:
    found, bus, broken = counted("", seed)
    assert broken == []
    assert found == bus.total
    assert min(bus.total) > 80
    assert bus.met == {
        "aw first", "w first", "both at once", "write behind an answer", "read behind an answer", "read beside a write",
        "early bready", "early rready", "clear", "full", "reset with address", "reset with strobes", "reset with read",
        "reset with bvalid", "reset with rvalid",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("a write of no byte clears", "goes from "),
        ("any write clears", "goes from "),
        ("a clear is lost", "goes from "),
        ("a reset leaves the counters as they are", "goes from 0 to "),
        ("a full counter begins again", "goes from 4294967295 to 0"),
        ("a carry is lost", "goes from "),
        ("a counter takes writes", "answered with 0, must be 2"),
        ("nothing is something", "answered with 0 and 1, must be 0 and one of [0]"),
        ("two counters are exchanged", "answered with 0 and "),
        ("a read is an error", "read of 0x3c: answered with 2 and 0, must be 0 and one of [0]"),
        ("an answer falls", "answer of r fell before it was taken"),
        ("an answer changes", "answer of r changed before it was taken"),
        ("an answer comes ahead of the data", "a write is answered that has not come or channel w does not go on"),
        ("writes are not answered", "channel b does not go on"),
        ("a read waits for a write", "channel ar does not go on"),
        ("a reset leaves the bus as it is", "a read is answered that has not come"),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_bus_that_breaks_a_rule_is_told_and_not_read_any_more(fault: str, said: str, seed: int) -> None:
    found, _, broken = counted(fault, seed)
    assert found is None
    assert any(words in broken[0] for words in said.split(" or "))


def test_counter_that_loses_a_step_is_not_read_as_it_counts() -> None:
    found, bus, broken = counted("a count is lost", 1)
    assert broken == []
    assert found != bus.total
