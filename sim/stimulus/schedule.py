"""The order in which the products of several chains enter, and their registers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.order import Beat, Beats, Order
from sim.stimulus.reductions import NO_ERROR, REFUSED_ALIGNMENT, Chain, Segment

__all__ = [
    "DRAINED",
    "POLICIES",
    "Table",
    "beats_ahead",
    "cycles_of_rotation",
    "details_of",
    "interleave",
    "on_registers",
    "to_scenario",
]

#: One chain at a time, always in the same registers; in turn, over all registers; at random.
POLICIES = ("back_to_back", "rotation", "random")
#: Cycles after which nothing is in flight any more.
DRAINED = 60

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Open:
    """A chain that has its registers."""

    def __init__(self, chain: Chain, register: int, registers: list[int], order: Order) -> None:
        self.registers = registers
        for segment in chain:
            if segment.error == NO_ERROR:
                segment.register = register | 1 if segment.odd else register
        lengths = [max(1, len(segment.a)) for segment in chain]
        numbers = np.repeat([order.number(segment) for segment in chain], lengths)
        self._columns = np.stack([numbers, np.concatenate([np.arange(length) for length in lengths])])
        self.left = self._columns.shape[1]

    def take(self, count: int) -> NDArray[np.int64]:
        """Return the next products."""
        start = self._columns.shape[1] - self.left
        self.left -= count
        return self._columns[:, start : start + count]


def interleave(
    chains: Sequence[Chain],
    registers: int,
    rng: np.random.Generator,
    policy: str,
    paired: tuple[int, ...] = (0, 1),
) -> Order:
    """Return all products in the order in which they enter.

    Totals of the levels `paired` reserve a pair of registers until their chain ends, so that no other chain writes to
    it; a refused product reserves none.

    Parameters
    ----------
    chains : sequence of chains
    registers : int
        Number of registers in the unit.
    rng : numpy.random.Generator
    policy : str
        One of `POLICIES`.
    paired : tuple of int
        Levels 0 and 1 in a scalar unit, whose fp32 totals take two registers.
    """
    waiting = list(reversed(chains))
    free = list(range(registers))
    under_way: list[_Open] = []
    order = Order()
    turn = 0
    limit = 1 if policy == "back_to_back" else registers + 2
    choose: Callable[[int], int] = (lambda count: int(rng.integers(count))) if policy == "random" else (lambda count: 0)
    while waiting or under_way:
        while waiting and len(under_way) < limit:
            opened = _open(waiting[-1], free, registers, rng, choose, paired, order)
            if opened is None:
                break
            under_way.append(opened)
            waiting.pop()
        turn = int(rng.integers(len(under_way))) if policy == "random" else turn % len(under_way)
        chosen = under_way[turn]
        if not chosen.left:
            free.extend(chosen.registers)
            free.sort()
            under_way.pop(turn)
        elif policy != "random" and (rounds := min(one.left for one in under_way)):
            # Nothing opens or ends in these rounds, which are millions of products in long chunks.
            in_turn = np.stack([one.take(rounds) for one in under_way[turn:] + under_way[:turn]], axis=2)
            order.extend(in_turn.reshape(2, -1))
        else:
            order.append(*chosen.take(1)[:, 0].tolist())
            turn += 1
    return order


def _open(
    chain: Chain,
    free: list[int],
    registers: int,
    rng: np.random.Generator,
    choose: Callable[[int], int],
    paired: tuple[int, ...],
    order: Order,
) -> _Open | None:
    """Give a chain its registers, if there are any free."""
    if chain[0].error != NO_ERROR:
        register = int(rng.integers(registers))
        chain[0].register = register | 1 if chain[0].error == REFUSED_ALIGNMENT else register
        return _Open(chain, 0, [], order)
    if any(segment.level in paired or segment.odd for segment in chain):
        pairs = [register for register in free if register % 2 == 0 and register + 1 in free]
        if not pairs:
            return None
        register = pairs[choose(len(pairs))]
        taken = [register, register + 1]
    else:
        if not free:
            return None
        register = free[choose(len(free))]
        taken = [register]
    for one in taken:
        free.remove(one)
    return _Open(chain, register, taken, order)


def on_registers(chains: Sequence[Chain], registers: int, paired: tuple[int, ...]) -> list[list[Chain]]:
    """Assign registers to chains, in groups that fit the registers together."""
    groups: list[list[Chain]] = []
    free = 0
    for chain in chains:
        width = 2 if chain[0].level in paired else 1
        free += free % width
        if free + width > registers or not groups:
            groups.append([])
            free = 0
        for segment in chain:
            segment.register = free
        groups[-1].append(chain)
        free += width
    return groups


class Table:
    """Products in the order in which they enter, column by column: there are millions of them in long chunks.

    Attributes
    ----------
    segments : list of Segment
        All segments that occur.
    which : int array
        Of each product: the number of its segment in `segments`.
    place : int array
        Of each product: its number in its segment.
    """

    def __init__(self, beats: Iterable[Beat]) -> None:
        order = beats if isinstance(beats, Order) else Order(beats)
        self.segments = order.segments
        self.which, self.place = order.columns()

    def of_segments(self, key: str) -> NDArray[np.int64]:
        """Return an attribute of each product's segment."""
        return np.array([getattr(segment, key) for segment in self.segments], np.int64)[self.which]

    def of_products(self, values: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Return each product's value from the values of every segment's products."""
        lengths = np.array([len(each) for each in values], np.int64)
        every = np.fromiter(itertools.chain.from_iterable(values), np.int64, int(lengths.sum()))
        return every[(np.cumsum(lengths) - lengths)[self.which] + self.place]

    def edges(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return whether each product is the first, and whether it is the last, of its segment."""
        ends = np.array([max(1, len(segment.a)) - 1 for segment in self.segments], np.int64)
        return self.place == 0, self.place == ends[self.which]

    def pauses(self) -> NDArray[np.int64] | None:
        """Return the pauses ahead of all products; None if there is none."""
        if not any(any(segment.pauses) for segment in self.segments):
            return None
        return self.of_products([segment.pauses or [0] * max(1, len(segment.a)) for segment in self.segments])


def beats_ahead(mac: Any) -> int:
    """Return the number of beats that a unit holds before their issue, in the widening rank and the input rank."""
    return int(mac.parameters.has_input_rank) + (mac.parameters.widened is not None)


def cycles_of_rotation(mac: Any, ends_chunk: Sequence[bool]) -> int:
    """Return the cycles from the first accepted product to the last, both counted, of products that never wait.

    A product that ends a chunk returns as its promotion, through all ranks but the input rank, and takes the issue
    cycle of one product.

    Parameters
    ----------
    mac : MultiplyAccumulate
    ends_chunk : sequence of bool
        Of each product.
    """
    holds_beat = mac.parameters.has_input_rank
    cycle, promotions, issued = 0, set(), []
    for ends in ends_chunk:
        while cycle in promotions:
            cycle += 1
        issued.append(cycle)
        if ends:
            promotions.add(cycle + mac.stages - holds_beat)
        cycle += 1
    # A beat behind the held ones is accepted when the first of these is issued.
    ahead = beats_ahead(mac)
    return issued[-1 - ahead] + 1 + ahead


def to_scenario(
    name: str, beats: Beats, operands: Sequence[FloatFormat], port: Port, further: Mapping[str, Any] = _NOTHING
) -> Scenario:
    """Return the scenario that drives these products and expects the answers of their segments.

    Parameters
    ----------
    name : str
    beats : list of beats
    operands : sequence of FloatFormat
    port : Port
    further : mapping of str to array
        Additional fields of the products.
    """
    minus_zero = [fmt.sign_mask for fmt in operands]
    neutral = [fmt.one for fmt in operands]
    table = Table(beats)
    segments = table.segments
    is_first, is_final = table.edges()
    columns = {
        "a": table.of_products([one.a or [minus_zero[one.format]] for one in segments]),
        "b": table.of_products([one.b or [neutral[one.format]] for one in segments]),
        "format": table.of_segments("format"),
        "level": table.of_segments("level"),
        "register": table.of_segments("register") | table.of_segments("beyond"),
        "first": table.of_segments("first") & is_first,
        "last": table.of_segments("last") & is_final,
    }
    ends = np.flatnonzero(columns["last"] | (table.of_segments("error") != NO_ERROR))
    answered = [segments[which] for which in table.which[ends].tolist()]
    return Scenario(
        name=name,
        payloads=port.request.pack(**columns, **further),
        answers=_answers(answered, port),
        case=np.arange(len(answered)),
        chunks=table.of_segments("chunk"),
        pauses=table.pauses(),
        ends=ends,
        details=details_of(answered),
    )


def _answers(segments: list[Segment], port: Port) -> Any:
    def column(key: str) -> Any:
        return np.array([getattr(segment, key) for segment in segments], np.uint64)

    is_answer = (column("error") == NO_ERROR).astype(np.uint64)
    fields = {
        "result": column("result") * is_answer,
        "error": column("error"),
        "register": column("register"),
        "flags": column("flags") * is_answer,
    }
    return port.answer.pack(**{key: value for key, value in fields.items() if key in port.answer.widths})


def details_of(segments: list[Segment]) -> dict[str, Any]:
    """Return the details of these segments for failure lines."""
    keys = ("format", "level", "register", "first", "chunk", "initial", "error")
    details: dict[str, Any] = {
        key: np.array([int(getattr(segment, key)) for segment in segments], np.int64) for key in keys
    }
    lengths = np.array([len(segment.a) for segment in segments], np.int64)
    details["products"] = lengths
    details["start"] = np.cumsum(lengths) - lengths
    for key in ("a", "b"):
        details[key] = np.array([code for segment in segments for code in getattr(segment, key)], np.uint16)
    modes = [mode for segment in segments for mode in segment.modes]
    return details | ({"modes": np.array(modes, np.uint8)} if modes else {})
