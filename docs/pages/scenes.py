"""The scenes of the timing diagrams: for each kind of unit a few transfers, with the results that golden gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from amaranth import Value

import golden
from docs.pages.waves import Stream, Waveform, simulate
from golden.nearest import complete
from hdl.axi_stream import AxiStreamMac
from hdl.catalogue import Kind
from hdl.converter import FloatConverter
from hdl.matrix.matrix_mac import MatrixMac
from hdl.mx.quantizer import MxQuantizer
from hdl.vector.vector_mac import VectorMac

__all__ = ["Scene", "scenes"]

_NUMBERS = (1.5, 0.1, 3e5, -2.0)
#: Two reductions: the factors of each.
_SUMS = (((1.5, 2.0), (0.25, 3.0)), ((0.1, 0.1), (0.2, 0.3)))


@dataclass(frozen=True)
class Scene:
    """A diagram.

    Parameters
    ----------
    title, text : str
    waveform : Waveform
        It has been compared with golden.
    """

    title: str
    text: str
    waveform: Waveform


def scenes(kind: Kind, unit: Any) -> list[Scene]:
    """Simulate a unit of a kind and return its diagrams.

    Raises
    ------
    RuntimeError
        If the unit gives something else than golden.
    """
    return [draw(unit) for draw in _SCENES[kind]]


def _compared(scene: Scene, expected: Sequence[Mapping[str, int]]) -> Scene:
    for number, (answer, wanted) in enumerate(zip(scene.waveform.answers, expected, strict=True)):
        wrong = {name: (answer[name], value) for name, value in wanted.items() if answer[name] != value}
        if wrong:
            raise RuntimeError(f"{scene.title}: result {number}: got and expected {wrong}")
    return scene


def _conversions(unit: FloatConverter) -> Scene:
    codes = golden.encode(_NUMBERS, unit.source)
    results, flags = golden.convert(codes, unit.source, unit.destination, return_flags=True)
    beats = [{"i__payload": int(code)} for code in codes]
    wide = max(unit.source.width, unit.destination.width) > 16
    waveform = simulate(unit, beats, results=4, gaps=[3], stalls=[unit.latency + 3], scale=1 + wide)
    shown = ", ".join(f"{float(value):g}" for value in golden.decode(codes, unit.source))
    text = (
        f"Conversions of {shown}. The sender has nothing in cycle 3. The receiver is not ready in cycle "
        f"{unit.latency + 3}, so that everything stands still."
    )
    expected = [{"bits": int(bits), "flags": int(flag)} for bits, flag in zip(results, flags, strict=True)]
    return _compared(Scene("Four conversions", text, waveform), expected)


def _blocks(unit: MxQuantizer) -> Scene:
    values = np.resize(_NUMBERS, 2 * unit.block).reshape(2, -1) / [[1.0], [64.0]]
    codes = golden.encode(values, unit.source).reshape(-1, unit.lanes)
    scales, elements = golden.mx.quantize(golden.decode(codes, unit.source).reshape(2, -1), unit.element)
    beats = [{f"values[{lane}]": int(code) for lane, code in enumerate(row)} for row in codes]
    expected = [
        {f"codes[{lane}]": int(code) for lane, code in enumerate(row)}
        | {"scale": int(scales[at // unit.beats, 0]), "last": int(at % unit.beats == unit.beats - 1)}
        for at, row in enumerate(elements.reshape(-1, unit.lanes))
    ]
    waveform = simulate(unit, beats, results=len(beats), scale=2)
    text = (
        f"Each of the {unit.beats} beats of a block brings {unit.lanes} values. The first codes leave {unit.latency} "
        "cycles after the last values came, while the next block enters: a beat in every cycle on either side."
    )
    return _compared(Scene("Two blocks", text, waveform), expected)


def _codes(unit: Any, numbers: Sequence[float]) -> list[int]:
    return [int(code) for code in golden.encode(numbers, unit.operands[0])]


def _total(unit: Any, products: Sequence[tuple[float, float]], level: int, chunk: int) -> tuple[dict[str, int], str]:
    """Return the result of a reduction, and how a reader writes it."""
    fmt = unit.operands[0]
    a, b = (_codes(unit, factors) for factors in zip(*products, strict=True))
    total, flags = golden.dot(
        golden.encode(golden.decode(a, fmt), fmt), golden.encode(golden.decode(b, fmt), fmt),
        operand=fmt, level=level, chunk=chunk, return_flags=True,
    )  # fmt: skip
    outer = fmt if level == 2 else golden.FP32
    written = " + ".join(f"{x:g} × {y:g}" for x, y in products)
    return (
        {"result": int(total), "flags": int(flags)},
        f"{written} = {float(golden.decode(total, outer)):.6g}",
    )


def _interleaved(given: Any, *, is_axi: bool = False) -> Scene:
    unit = given.unit if is_axi else given
    beats, expected, sums = [], [], []
    for step in range(2):
        for number, products in enumerate(_SUMS):
            a, b = _codes(unit, products[step])
            ends = {"first": int(step == 0), "last": int(step == 1), "s_axis_tlast": int(step == 1)}
            beats.append({"a": a, "b": b, "register": 2 * number, "level": 0, **ends})
    for number, products in enumerate(_SUMS):
        total, written = _total(unit, products, 0, 32)
        key = "m_axis_tdata" if is_axi else "result"
        expected.append({key: total["result"], "flags": total["flags"], "register": 2 * number, "error": 0})
        sums.append(f"register {2 * number}: {written}")
    waveform = simulate(
        given, beats, results=2, hesitates=True, ports={"chunk": 32} | ({"aresetn": 1} if is_axi else {}),
        streams=_axi_streams(given) if is_axi else None,
    )  # fmt: skip
    text = (
        f"Level 0: {'; '.join(sums)}. Each register takes a product every {unit.accumulate_latency} cycles, so that "
        "the second products wait. The receiver takes a result in the second cycle in which it is offered."
    )
    return _compared(Scene("Two reductions in turn", text, waveform), expected)


def _chunks(unit: Any) -> Scene:
    products = [*_SUMS[0], _SUMS[1][0]]
    beats: list[dict[str, int]] = []
    for number, factors in enumerate(products):
        a, b = _codes(unit, factors)
        beats.append({"a": a, "b": b, "level": 1, "first": int(number == 0), "last": int(number == 2)})
    total, written = _total(unit, products, 1, 2)
    waveform = simulate(unit, beats, results=1, hesitates=True, ports={"chunk": 2})
    text = (
        f"Level 1 with ``chunk`` = 2: {written}. The first two products are summed in {unit.operands[0]} and promoted "
        "to the total in float32; so is the third, a chunk of its own. The result is that of the last promotion."
    )
    return _compared(Scene("Chunks and their promotion", text, waveform), [total])


def _lanes(unit: VectorMac, level: int) -> Scene:
    lanes = unit.lanes
    products = [[(lane + 1.0, step + 1.5) for step in range(2)] for lane in range(lanes)]
    beats = []
    for step in range(2):
        factors = [_codes(unit, products[lane][step]) for lane in range(lanes)]
        beat = {f"{name}[{lane}]": factors[lane][at] for lane in range(lanes) for at, name in enumerate("ab")}
        beats.append(beat | {"level": level, "first": int(step == 0), "last": int(step == 1)})
    totals = [_total(unit, products[lane], level, 32)[0]["result"] for lane in range(lanes)]
    halves = range(lanes // 2)
    if level == 2:
        expected = [{f"result[{at}]": totals[2 * at] | totals[2 * at + 1] << 16 for at in halves}]
        more = "Two 16-bit results share a word."
    else:
        expected = [{f"result[{at}]": totals[2 * at + part] for at in halves} | {"part": part} for part in range(2)]
        more = "The results in float32 come in two parts: those of the even lanes, then those of the odd ones."
    waveform = simulate(unit, beats, results=len(expected), hesitates=True, ports={"chunk": 32})
    sums = ", ".join(f"lane {lane}: {_total(unit, products[lane], level, 32)[1]}" for lane in range(2))
    text = f"Level {level}, two beats: {sums}, and so on. {more}"
    return _compared(Scene(f"A reduction in all lanes at level {level}", text, waveform), expected)


def _tile(unit: MatrixMac) -> Scene:
    fmt, shape = unit.operands[0], (unit.rows, 3, unit.columns)
    a = golden.encode(np.resize(_NUMBERS, shape[:2]) / [[1.0, 2.0, 4.0]], fmt)
    b = golden.encode(np.resize((0.5, 3.0, -1.0, 0.1, 2.0), shape[1:]), fmt)
    beats = [
        {f"a[{row}]": int(a[row, k]) for row in range(unit.rows)}
        | {f"b[{column}]": int(b[k, column]) for column in range(unit.columns)}
        | {"level": 0, "register": 5, "first": int(k == 0), "last": int(k == 2)}
        for k in range(3)
    ]
    product = golden.matmul(a, b, operand=fmt, level=0)
    expected = [
        {f"result[{column}]": int(code) for column, code in enumerate(codes)}
        | {"register": 5, "row": row, "last_row": int(row == unit.rows - 1)}
        for row, codes in enumerate(product)
    ]
    waveform = simulate(unit, beats, results=unit.rows, hesitates=True, ports={"chunk": 32}, scale=2)
    text = (
        "Level 0, tile 5: three columns of the first matrix times three rows of the second. The tile takes a beat "
        f"every {unit.accumulate_latency} cycles; other tiles would fill the cycles between. "
        "The rows of the product leave one after the other."
    )
    return _compared(Scene("A tile of a product", text, waveform), expected)


def _axi_streams(unit: AxiStreamMac) -> tuple[Stream, Stream]:
    def fields(name: str) -> dict[str, Any]:
        signal = getattr(unit, name)
        return {f"{name}.{key}": Value.cast(signal[key]) for key, _ in signal.shape() if key != "unused"}

    into = {**fields("s_axis_tdata"), **fields("s_axis_tuser"), "s_axis_tlast": unit.s_axis_tlast}
    out_of = {"m_axis_tdata": unit.m_axis_tdata, **fields("m_axis_tuser"), "m_axis_tlast": unit.m_axis_tlast}
    return (
        Stream(into, ("s_axis_tvalid", unit.s_axis_tvalid), ("s_axis_tready", unit.s_axis_tready)),
        Stream(out_of, ("m_axis_tvalid", unit.m_axis_tvalid), ("m_axis_tready", unit.m_axis_tready)),
    )


_SCENES: dict[Kind, Sequence[Callable[[Any], Scene]]] = complete(
    "docs.pages.scenes._SCENES",
    {
        Kind.CONVERTER: (_conversions,),
        Kind.MX_QUANTIZER: (_blocks,),
        Kind.MAC: (_interleaved, _chunks),
        Kind.AXI_STREAM: (partial(_interleaved, is_axi=True),),
        Kind.VECTOR: (partial(_lanes, level=2), partial(_lanes, level=1)),
        Kind.MATRIX: (_tile,),
        Kind.ENGINE: (),
    },
    Kind,
)
