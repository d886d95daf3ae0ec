"""The order in which the products of several chains enter, and their registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.reductions import NO_ERROR, REFUSED_ALIGNMENT, Chain, Segment

__all__ = ["POLICIES", "Beat", "cycles_of_rotation", "details_of", "interleave", "pauses_of", "to_scenario"]

#: One chain at a time, always in the same registers; in turn, over all registers; at random.
POLICIES = ("back_to_back", "rotation", "random")

Beat = tuple[Segment, int]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Open:
    """A chain that has its registers."""

    def __init__(self, chain: Chain, register: int, registers: list[int]) -> None:
        self.registers = registers
        self.beats = self._beats(chain, register)

    def _beats(self, chain: Chain, register: int) -> Iterator[Beat]:
        for segment in chain:
            if segment.error == NO_ERROR:
                segment.register = register | 1 if segment.odd else register
            for k in range(max(1, len(segment.a))):
                yield segment, k


def interleave(
    chains: Sequence[Chain],
    registers: int,
    rng: np.random.Generator,
    policy: str,
    paired: tuple[int, ...] = (0, 1),
) -> list[Beat]:
    """Return all products in the order in which they enter.

    Totals of the levels `paired` take a pair of registers for as long as their chain is under way, so that no other
    chain writes into it; a refused product takes none.

    Parameters
    ----------
    chains : sequence of chains
    registers : int
        Of the unit.
    rng : numpy.random.Generator
    policy : str
        One of `POLICIES`.
    paired : tuple of int
        Levels 0 and 1 in a scalar unit, whose fp32 totals take two registers.
    """
    waiting = list(reversed(chains))
    free = list(range(registers))
    under_way: list[_Open] = []
    order: list[Beat] = []
    turn = 0
    limit = 1 if policy == "back_to_back" else registers + 2
    choose: Callable[[int], int] = (lambda count: int(rng.integers(count))) if policy == "random" else (lambda count: 0)
    while waiting or under_way:
        while waiting and len(under_way) < limit:
            opened = _open(waiting[-1], free, registers, rng, choose, paired)
            if opened is None:
                break
            under_way.append(opened)
            waiting.pop()
        turn = int(rng.integers(len(under_way))) if policy == "random" else turn % len(under_way)
        chosen = under_way[turn]
        beat = next(chosen.beats, None)
        if beat is None:
            free.extend(chosen.registers)
            free.sort()
            under_way.pop(turn)
            continue
        order.append(beat)
        turn += 1
    return order


def _open(
    chain: Chain,
    free: list[int],
    registers: int,
    rng: np.random.Generator,
    choose: Callable[[int], int],
    paired: tuple[int, ...],
) -> _Open | None:
    """Give a chain its registers, if there are any free."""
    if chain[0].error != NO_ERROR:
        register = int(rng.integers(registers))
        chain[0].register = register | 1 if chain[0].error == REFUSED_ALIGNMENT else register
        return _Open(chain, 0, [])
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
    return _Open(chain, register, taken)


def cycles_of_rotation(mac: Any, ends_chunk: Sequence[bool]) -> int:
    """Return the cycles from the first accepted product to the last, both counted, of products that never wait.

    A product that ends a chunk comes back as its promotion, through all ranks but that of the beat, and takes a cycle
    from whatever product would be issued then.

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
    # A beat that is held is accepted when the one before it is issued, the first one in the cycle before its issue.
    return issued[-2] + 2 if holds_beat else issued[-1] + 1


def to_scenario(
    name: str, beats: list[Beat], operands: Sequence[FloatFormat], port: Port, further: Mapping[str, Any] = _NOTHING
) -> Scenario:
    """Return the scenario that drives these products and expects the answers of their segments.

    Parameters
    ----------
    name : str
    beats : list of beats
    operands : sequence of FloatFormat
    port : Port
    further : mapping of str to array
        Fields of the products beside the usual ones.
    """
    minus_zero = [fmt.sign_mask for fmt in operands]
    one = [fmt.one for fmt in operands]
    columns: dict[str, list[int]] = {key: [] for key in ("a", "b", "format", "level", "register", "first", "last")}
    answered: list[Segment] = []
    ends: list[int] = []
    for at, (segment, k) in enumerate(beats):
        is_final = k == max(1, len(segment.a)) - 1
        row = {
            "a": segment.a[k] if segment.a else minus_zero[segment.format],
            "b": segment.b[k] if segment.b else one[segment.format],
            "format": segment.format,
            "level": segment.level,
            "register": segment.register | segment.beyond,
            "first": int(segment.first and k == 0),
            "last": int(segment.last and is_final),
        }
        for key, value in row.items():
            columns[key].append(value)
        if segment.error != NO_ERROR or (segment.last and is_final):
            answered.append(segment)
            ends.append(at)
    return Scenario(
        name=name,
        payloads=port.request.pack(**{key: np.array(values, np.uint64) for key, values in columns.items()}, **further),
        answers=_answers(answered, port),
        case=np.arange(len(answered)),
        chunks=np.array([segment.chunk for segment, _ in beats]),
        pauses=pauses_of(beats),
        ends=np.array(ends),
        details=details_of(answered),
    )


def pauses_of(beats: Sequence[Beat]) -> NDArray[Any] | None:
    """Return the pauses ahead of all products; None if there is none."""
    pauses = np.array([segment.pauses[k] if segment.pauses else 0 for segment, k in beats])
    return pauses if pauses.any() else None


def _answers(segments: list[Segment], port: Port) -> Any:
    def column(key: str) -> Any:
        return np.array([getattr(segment, key) for segment in segments], np.uint64)

    is_answer = (column("error") == NO_ERROR).astype(np.uint64)
    fields = {
        "result": column("result") * is_answer,
        "error": column("error"),
        "register": column("register"),
        "flags": column("flags") * is_answer,
        "tlast": np.ones(len(segments), np.uint64),
    }
    return port.answer.pack(**{key: value for key, value in fields.items() if key in port.answer.widths})


def details_of(segments: list[Segment]) -> dict[str, Any]:
    """Return what a failure line needs to explain these."""
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
