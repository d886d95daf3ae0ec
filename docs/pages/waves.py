"""Timing diagrams: a unit is simulated by Amaranth, cycle by cycle, and its ports are drawn by WaveDrom."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Collection, Iterable, Mapping
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
    shape = port.payload.shape()
    fields = {name + "__payload": port.payload}
    if isinstance(shape, data.Layout):
        fields = {f"{name}__payload.{key}": port.payload[key] for key, field in shape if field.width}
    return Stream(
        {key: Value.cast(value) for key, value in fields.items()},
        (f"{name}__valid", port.valid),
        (f"{name}__ready", port.ready),
    )


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

    def to_wavedrom(self) -> dict[str, Any]:
        """Return the line in WaveDrom's language: a letter for each cycle, and the texts of the values."""
        letters, texts = "", []
        before: tuple[int, int, int] | None = (-1, -1, -1)
        for value in self.values:
            if value is None:
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
    """

    waves: tuple[Wave, ...]
    answers: tuple[dict[str, int], ...]

    @property
    def cycles(self) -> int:
        """Its length."""
        return len(self.waves[0].values)

    def to_wavedrom(self) -> dict[str, Any]:
        """Return the diagram in WaveDrom's language."""
        clock = {"name": "clk", "wave": "p" + "." * (self.cycles - 1)}
        signals = [clock, *(wave.to_wavedrom() for wave in self.waves)]
        # 20 units of length are half a cycle; a character of a value takes about 9.
        widest = max(max((wave.width + 3) // 4 for wave in self.waves if wave.width > 1), 1)
        return {"signal": signals, "config": {"hscale": 1 if widest <= 4 else 2}, "head": {"tick": 0, "every": 1}}

    def to_svg(self) -> str:
        """Return the diagram as SVG without colours of its own: the page's style sheet gives them."""
        return _drawn(self.to_wavedrom())

    def _repr_html_(self) -> str:
        return f'<div class="timing">{self.to_svg()}</div>'


def simulate(
    unit: Any,
    beats: Iterable[Mapping[str, int]],
    *,
    cycles: int,
    streams: tuple[Stream, Stream] | None = None,
    ports: Mapping[str, int] | None = None,
    gaps: Collection[int] = (),
    stalls: Collection[int] = (),
) -> Waveform:
    """Send beats through a unit and record its ports.

    Parameters
    ----------
    unit : Component
        With streams ``i`` and ``o``, or with `streams` given.
    beats : iterable of mapping
        What is sent: for each field of the payload, by the last part of its name, a value; 0 where none is given.
    cycles : int
        How long; every beat must have entered by then.
    streams : pair of Stream, optional
        Input and output, if they are not ``i`` and ``o``.
    ports : mapping, optional
        Values of other input ports, which stay the same.
    gaps, stalls : collection of int
        Cycles in which the sender has nothing, and in which the receiver is not ready. Nothing is sent in cycle 0.

    Raises
    ------
    RuntimeError
        If beats are left over: a diagram would not show them.
    """
    into, out_of = streams or (as_stream(unit.i, "i"), as_stream(unit.o, "o"))
    waiting, samples = deque(enumerate(beats)), []
    answers: list[dict[str, int]] = []

    async def bench(context: SimulatorContext) -> None:
        for name, value in (ports or {}).items():
            context.set(getattr(unit, name), value)
        for cycle in range(cycles):
            offers = bool(waiting) and cycle and cycle not in gaps
            context.set(into.valid[1], offers)
            for name, signal in into.payload.items() if offers else ():
                context.set(signal, waiting[0][1].get(name.split(".")[-1], 0))
            context.set(out_of.ready[1], cycle not in stalls)
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

    simulator = Simulator(unit)
    if not hasattr(unit, "aclk"):
        simulator.add_clock(1e-6, phase=0.5e-6)
    simulator.add_testbench(bench)
    simulator.run()
    if waiting:
        raise RuntimeError(f"cycles: got {cycles}, must be more: {len(waiting)} beats have not entered")
    widths = {name: len(value) for stream in (into, out_of) for name, value in _signals(stream)}
    waves = (Wave(name, width, tuple(row[name] for row in samples)) for name, width in widths.items())
    return Waveform(tuple(waves), tuple(answers))


def _signals(stream: Stream) -> list[tuple[str, Value]]:
    return [*stream.payload.items(), stream.valid, stream.ready]


def _sample(context: SimulatorContext, stream: Stream, number: int | None) -> dict[str, Any]:
    """Return what stands on a stream's signals; what belongs to one accumulator has one colour."""
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


def _drawn(diagram: Mapping[str, Any]) -> str:
    """Draw a diagram; leave out its style sheet, which would rule the whole page, and symbols that it does not use."""
    root = ElementTree.fromstring(wavedrom.render(json.dumps(diagram)).tostring())
    for name in ("height", "width"):
        root.set("style", f"{root.get('style', '')}{name}:{root.get(name)}px;")
    used = {use.get(_XLINK, "").lstrip("#") for use in root.iter(f"{{{_SVG}}}use")}
    for parent in list(root.iter()):
        for child in list(parent):
            is_symbol = parent.tag == f"{{{_SVG}}}defs" and child.get("id") not in used
            if is_symbol or child.tag == f"{{{_SVG}}}style":
                parent.remove(child)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK[1:].split("}")[0])
    return ElementTree.tostring(root, encoding="unicode")
