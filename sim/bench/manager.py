"""A manager on the AXI4-Lite bus of the counters, whose channels do not wait for each other.

An address comes before its data, with it or after it; the next transfers are offered while an answer waits; the
manager is ready before or after an answer. The allowed behaviour of the bus follows from its accepted transfers and the
unit's counts.

Every output of the bus comes from a register: its value on a falling edge still holds at the next rising one.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from cocotb.handle import Immediate

from sim.bench.monitor import is_high
from sim.counts import CLEAR_ADDRESS, COUNTER_ADDRESSES

__all__ = ["Transfers", "quiet"]

_OKAY, _SLAVE_ERROR = 0, 2
#: Cycles within which the bus continues unless it waits for the manager, which may pause for longer.
_LATEST, _MOST_PAUSES = 8, 24


def quiet(dut: Any) -> None:
    """Offer nothing on the bus."""
    for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
        getattr(dut, f"s_axil_{name}").value = 0


class _Channel:
    """The common part of both kinds of channels: ports and random pauses."""

    def __init__(self, dut: Any, name: str, words: tuple[str, ...], rng: np.random.Generator) -> None:
        self._rng = rng
        self._valid, self._ready = (getattr(dut, f"s_axil_{name}{end}") for end in ("valid", "ready"))
        self.words = [getattr(dut, f"s_axil_{word}") for word in words]
        self.name, self.pause = name, 0

    def _draw(self) -> None:
        self.pause = int(self._rng.integers(1, (1, 1, 4, _MOST_PAUSES)[self._rng.integers(4)] + 1)) - 1


class _Source(_Channel):
    """A channel on which the bench offers the transfers in `queue`."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.queue, self.is_offering = deque[tuple[int, ...]](), False

    def step(self) -> tuple[int, ...] | None:
        """Start or continue an offer; return the transfer accepted at the coming edge."""
        if not self.is_offering and self.queue:
            self.pause -= 1
            if self.pause < 0:
                for port, word in zip(self.words, self.queue[0], strict=True):
                    port.value = Immediate(word)
                self.is_offering = True
        self._valid.value = Immediate(int(self.is_offering))
        if not self.is_offering or not is_high(self._ready, f"{self.name}ready"):
            return None
        self.is_offering = False
        self._draw()
        return self.queue.popleft()


class _Sink(_Channel):
    """A channel on which the bus answers: ``ready`` comes after a pause, which begins at once or with the answer."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._is_early, self.waiting = True, list[str]()

    def step(self, broken: list[str], *, takes: bool) -> list[int] | None:
        """Take an answer or let it wait, and return a new one; it must not change while it waits."""
        valid = is_high(self._valid, f"{self.name}valid")
        answer = [str(port.value) for port in self.words] if valid else []
        if self.waiting and answer != self.waiting:
            broken.append(f"answer of {self.name} {'changed' if valid else 'fell'} before it was taken")
        is_new = valid and not self.waiting
        self.pause -= valid or self._is_early
        ready = takes and self.pause < 0
        self._ready.value = Immediate(int(ready))
        self.waiting = [] if ready else answer
        if ready and valid:
            self._is_early = bool(self._rng.integers(2))
            self._draw()
        return [int(word, 2) for word in answer] if is_new else None


class Transfers:
    """The transfers in flight on the bus.

    Parameters
    ----------
    dut
        The shell around the unit.
    rng : numpy.random.Generator
    broken : list of str
        Errors of the bus are added to it. After an error, the state here is unreliable.

    Attributes
    ----------
    takes : bool
        Whether answers are taken.
    """

    def __init__(self, dut: Any, rng: np.random.Generator, broken: list[str]) -> None:
        self._rng, self._broken = rng, broken
        given = {"aw": ("awaddr",), "w": ("wdata", "wstrb"), "ar": ("araddr",)}
        self._sources = {name: _Source(dut, name, words, rng) for name, words in given.items()}
        self._b, self._r = _Sink(dut, "b", ("bresp",), rng), _Sink(dut, "r", ("rdata", "rresp"), rng)
        self._addresses, self._strobes = deque[int](), deque[int]()
        # Every read with all values of its register since it was accepted.
        self._reads = deque[tuple[int, set[int]]]()
        self._late, self.takes = dict.fromkeys(("aw", "w", "b", "ar", "r"), 0), True

    @property
    def is_idle(self) -> bool:
        """Whether all transfers are answered, and all answers are taken."""
        sources = any(source.queue for source in self._sources.values())
        return not (sources or self._addresses or self._strobes or self._reads or self._b.waiting or self._r.waiting)

    def has_room(self, *channels: str) -> bool:
        """Return whether these channels will soon have nothing to offer."""
        return all(len(self._sources[name].queue) < 2 for name in channels)

    def write(self, address: int, strobes: int) -> None:
        """Queue a write of random data; the lowest two bits of an address are ignored."""
        self._sources["aw"].queue.append((address | int(self._rng.integers(4)),))
        self._sources["w"].queue.append((int(self._rng.integers(1 << 32)), strobes))

    def read(self, address: int) -> None:
        """Queue a read of a register."""
        self._sources["ar"].queue.append((address | int(self._rng.integers(4)),))

    def hurry(self, **counts: int) -> None:
        """Offer the given number of transfers on these channels at once, and take no answers."""
        self.takes = False
        for name, count in counts.items():
            self._sources[name].queue.extend(count * [(0,) * len(self._sources[name].words)])
            self._sources[name].pause = 0

    def answers(self) -> bool:
        """Check new answers; return whether the counters were cleared at the last edge."""
        cleared = False
        if (written := self._b.step(self._broken, takes=self.takes)) is not None:
            cleared = self._written(*written)
        if (read := self._r.step(self._broken, takes=self.takes)) is not None:
            self._read(*read)
        return cleared

    def offers(self, shown: list[int]) -> None:
        """Offer transfers in a cycle; `shown` are the unit's counts."""
        for address, possible in self._reads:
            possible.add(shown[COUNTER_ADDRESSES.index(address)] if address in COUNTER_ADDRESSES else 0)
        accepted = {name: source.step() for name, source in self._sources.items()}
        self._watch(accepted)
        if word := accepted["aw"]:
            self._addresses.append(word[0] & ~3)
        if word := accepted["w"]:
            self._strobes.append(word[1])
        if word := accepted["ar"]:
            self._reads.append((word[0] & ~3, set()))

    def _written(self, answer: int) -> bool:
        """Check the answer to the oldest write; return whether this write clears the counters."""
        if not (self._addresses and self._strobes):
            self._broken.append("a write is answered that has not come")
            return False
        address, strobes = self._addresses.popleft(), self._strobes.popleft()
        must = _OKAY if address == CLEAR_ADDRESS else _SLAVE_ERROR
        if answer != must:
            self._broken.append(f"write to {address:#x}: answered with {answer}, must be {must}")
        return address == CLEAR_ADDRESS and strobes != 0

    def _read(self, value: int, answer: int) -> None:
        """Check the answer to the oldest read."""
        if not self._reads or not self._reads[0][1]:
            self._broken.append("a read is answered that has not come")
            return
        address, possible = self._reads.popleft()
        if answer != _OKAY or value not in possible:
            must = f"{_OKAY} and one of {sorted(possible)}"
            self._broken.append(f"read of {address:#x}: answered with {answer} and {value}, must be {must}")

    def _watch(self, accepted: dict[str, Any]) -> None:
        """Detect a channel on which the bus stalls without a reason."""
        on_their_way = {"aw": self._addresses, "w": self._strobes, "ar": self._reads}
        waits = {
            name: source.is_offering and not accepted[name] and not on_their_way[name]
            for name, source in self._sources.items()
        }
        waits["b"] = bool(self._addresses and self._strobes) and not self._b.waiting
        waits["r"] = bool(self._reads) and not self._r.waiting
        for name, does_wait in waits.items():
            self._late[name] = self._late[name] + 1 if does_wait else 0
            if self._late[name] > _LATEST:
                self._broken.append(f"channel {name} does not go on")
