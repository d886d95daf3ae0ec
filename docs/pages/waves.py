"""Timing diagrams: a unit is simulated by Amaranth, cycle by cycle, and its ports are drawn by WaveDrom."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import wavedrom
from amaranth import Value
from amaranth.lib import data
from amaranth.sim import Simulator, SimulatorContext

__all__ = ["Stream", "Wave", "Waveform", "as_stream", "simulate"]

_SVG, _XLINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
#: WaveDrom's colours of values, taken in turn.
_COLOURS = "345678"
_LONGEST = 2000


@dataclass(frozen=True)
class Stream:
    """A stream's signals, under the names that they have in the Verilog.

    Parameters
    ----------
    payload : mapping of str to Value
        Fields that are drawn, each on a line of its own.
    valid, ready : tuple of str and Value
    """

    payload: Mapping[str, Value]
    valid: tuple[str, Value]
    ready: tuple[str, Value]


def as_stream(port: Any, name: str) -> Stream:
    """Return the stream at a port ``i`` or ``o`` of a unit."""
    fields = dict(_fields(port.payload, f"{name}__payload"))
    return Stream(fields, (f"{name}__valid", port.valid), (f"{name}__ready", port.ready))


def _fields(payload: Any, name: str) -> Iterator[tuple[str, Value]]:
    """Give a struct's fields and an array's elements, but flags as one value: they are read together."""
    shape = payload.shape()
    if isinstance(shape, data.ArrayLayout):
        for at in range(shape.length):
            yield from _fields(payload[at], f"{name}[{at}]")
    elif isinstance(shape, data.Layout) and not name.split(".")[-1].startswith("flags"):
        for key, field in shape:
            if field.width:
                yield from _fields(payload[key], f"{name}.{key}")
    else:
        yield name, Value.cast(payload)


@dataclass(frozen=True)
class Wave:
    """One line of a diagram.

    Parameters
    ----------
    name : str
    width : int
        Bits. One bit is drawn as a level, more as a value.
    values : tuple of (int, int, int) or None
        In each cycle the value, the number of the transfer that it belongs to, and that of the transfer's colour; None
        where it means nothing.
    """

    name: str
    width: int
    values: tuple[tuple[int, int, int] | None, ...]

    def to_wavedrom(self, gaps: Collection[int]) -> dict[str, Any]:
        """Return the line in WaveDrom's language: a letter for each cycle, and the texts of the values."""
        letters, texts = "", []
        before: tuple[int, int, int] | None = (-1, -1, -1)
        for cycle, value in enumerate(self.values):
            if cycle in gaps:
                letters += "|"
            elif value is None:
                letters += "x" if before is not None else "."
            elif self.width == 1:
                letters += str(value[0]) if before is None or before[0] != value[0] else "."
            elif value == before:
                letters += "."
            else:
                letters += _COLOURS[value[2] % len(_COLOURS)]
                texts.append(f"{value[0]:0{(self.width + 3) // 4}x}")
            before = value
        return {"name": self.name, "wave": letters, "data": texts}


@dataclass(frozen=True)
class Waveform:
    """The ports of a unit, cycle by cycle.

    Parameters
    ----------
    waves : tuple of Wave
    answers : tuple of dict
        What left the unit, in order: the value of each field.
    scale : int
        Width of a cycle: 1, or 2 where values of more than 16 bits change in each.
    """

    waves: tuple[Wave, ...]
    answers: tuple[dict[str, int], ...]
    scale: int = 1

    def shortened(self, longest: int = 3) -> tuple[list[int], list[int]]:
        """Return the cycles to draw, and where in them the rest of a long wait is left out.

        Parameters
        ----------
        longest : int
            Cycles in which nothing changes that are drawn in a row; of more, one is, with a gap in it.
        """
        rows = list(zip(*(wave.values for wave in self.waves), strict=True))
        shown: list[int] = []
        gaps: list[int] = []
        start = 0
        for cycle in range(1, len(rows) + 1):
            if cycle < len(rows) and rows[cycle] == rows[start]:
                continue
            waits = range(start + 1, cycle)
            if len(waits) > longest:
                gaps.append(len(shown) + 1)
                waits = waits[:1]
            shown += [start, *waits]
            start = cycle
        return shown, gaps

    def to_wavedrom(self, scale: int = 1) -> dict[str, Any]:
        """Return the diagram in WaveDrom's language; a cycle is 40 times `scale` units wide."""
        shown, gaps = self.shortened()
        signals = [{"name": "clk", "wave": "".join("|" if at in gaps else "p."[at > 0] for at in range(len(shown)))}]
        for wave in self.waves:
            signals.append(Wave(wave.name, wave.width, tuple(wave.values[at] for at in shown)).to_wavedrom(gaps))
        return {"signal": signals, "config": {"hscale": scale}, "head": {"tick": 0, "every": 1}}

    def to_svg(self) -> str:
        """Return the diagram as SVG; the page's style sheet gives the colours."""
        shown, _ = self.shortened()
        return _drawn(self.to_wavedrom(self.scale), [*map(str, shown), ""])

    def _repr_html_(self) -> str:
        return f'<div class="timing">{self.to_svg()}</div>'


def simulate(
    unit: Any,
    beats: Iterable[Mapping[str, int]],
    *,
    results: int,
    streams: tuple[Stream, Stream] | None = None,
    ports: Mapping[str, int] | None = None,
    gaps: Collection[int] = (),
    stalls: Collection[int] = (),
    hesitates: bool = False,
    scale: int = 1,
) -> Waveform:
    """Send beats through a unit and record its ports.

    Parameters
    ----------
    unit : Component
        With streams ``i`` and ``o``, or with `streams` given.
    beats : iterable of mapping
        What is sent: for each field of the payload, by the last part of its name, a value; 0 where none is given.
    results : int
        How many results to wait for; the recording ends two cycles after the last.
    streams : pair of Stream, optional
        Input and output, if they are not ``i`` and ``o``.
    ports : mapping, optional
        Values of other input ports, which stay the same.
    gaps, stalls : collection of int
        Cycles in which the sender has nothing, and in which the receiver is not ready. Nothing is sent in cycle 0.
    hesitates : bool
        Whether the receiver takes a result only in the second cycle in which it is offered.
    scale : int
        Of the `Waveform`.

    Raises
    ------
    RuntimeError
        If the results do not come.
    """
    into, out_of = streams or (as_stream(unit.i, "i"), as_stream(unit.o, "o"))
    waiting = deque(enumerate(beats))
    samples: list[dict[str, Any]] = []
    answers: list[dict[str, int]] = []

    async def bench(context: SimulatorContext) -> None:
        for name, value in (ports or {}).items():
            context.set(getattr(unit, name), value)
        for cycle in range(_LONGEST):
            offers = bool(waiting) and cycle and cycle not in gaps
            context.set(into.valid[1], offers)
            for name, signal in into.payload.items() if offers else ():
                context.set(signal, waiting[0][1].get(name.split(".")[-1], 0))
            offered_before = bool(samples) and samples[-1][out_of.valid[0]][0] and not samples[-1][out_of.ready[0]][0]
            context.set(out_of.ready[1], cycle not in stalls and (offered_before or not hesitates))
            await context.delay(0.1e-6)  # everything settles
            taken, given = (context.get(stream.valid[1]) and context.get(stream.ready[1]) for stream in (into, out_of))
            row = _sample(context, into, waiting[0][0] if offers else None)
            row |= _sample(context, out_of, len(answers) if context.get(out_of.valid[1]) else None)
            samples.append(row)
            if taken:
                waiting.popleft()
            if given:
                answers.append({name.split(".")[-1]: context.get(value) for name, value in out_of.payload.items()})
            await _edge(context, unit)
            if len(answers) == results and samples[-2:] == samples[-1:] * 2:
                return

    simulator = Simulator(unit)
    if not hasattr(unit, "aclk"):
        simulator.add_clock(1e-6, phase=0.5e-6)
    simulator.add_testbench(bench)
    simulator.run()
    if waiting or len(answers) != results:
        raise RuntimeError(f"results: got {results}, but {len(answers)} came, and {len(waiting)} beats did not enter")
    widths = {name: len(value) for stream in (into, out_of) for name, value in _signals(stream)}
    waves = (Wave(name, width, tuple(row[name] for row in samples)) for name, width in widths.items())
    return Waveform(tuple(waves), tuple(answers), scale)


def _signals(stream: Stream) -> list[tuple[str, Value]]:
    return [*stream.payload.items(), stream.valid, stream.ready]


def _sample(context: SimulatorContext, stream: Stream, number: int | None) -> dict[str, Any]:
    """Return the values of a stream's signals; values of the same accumulator share a colour."""
    row: dict[str, Any] = {}
    colour = next((context.get(signal) for name, signal in stream.payload.items() if _is_register(name)), number)
    for name, signal in stream.payload.items():
        row[name] = None if number is None else (context.get(signal), number, colour)
    for name, signal in (stream.valid, stream.ready):
        row[name] = (context.get(signal), 0, 0)
    return row


def _is_register(name: str) -> bool:
    return name.endswith(".register")


async def _edge(context: SimulatorContext, unit: Any) -> None:
    if hasattr(unit, "aclk"):  # a unit that makes its clock domain from a port
        context.set(unit.aclk, 1)
        await context.delay(0.5e-6)
        context.set(unit.aclk, 0)
        await context.delay(0.4e-6)
    else:
        await context.tick()


def _drawn(diagram: Mapping[str, Any], ticks: Sequence[str]) -> str:
    """Draw a diagram with the numbers of its cycles.

    Its style sheet is left out, which would rule the whole page, and so are symbols that it does not use.
    """
    root = ElementTree.fromstring(wavedrom.render(json.dumps(diagram)).tostring())
    for tick, text in zip(root.iter(f"{{{_SVG}}}text"), ticks, strict=False):
        tick.text = text
    used = {use.get(_XLINK, "").lstrip("#") for use in root.iter(f"{{{_SVG}}}use")}
    for parent in list(root.iter()):
        for child in list(parent):
            is_symbol = parent.tag == f"{{{_SVG}}}defs" and child.get("id") not in used
            if is_symbol or child.tag == f"{{{_SVG}}}style":
                parent.remove(child)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK[1:].split("}")[0])
    return ElementTree.tostring(root, encoding="unicode")
