# amaranth: UnusedElaboratable=no
# Some units are built only to inspect their ports.
"""Every unit that is released, simulated or measured: its component and arguments.

To add a unit, add a line here. `make verilog`, the regression, the FPGA measurements and the documents use this list.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from amaranth.lib import wiring

from golden.formats import (
    BF16,
    CB16,
    CBFLOAT16,
    CONVERSIONS,
    FLOAT4_E2M1FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FP16,
    FP32,
    HALF_FORMATS,
    SIXTEEN_BIT_FORMATS,
    FloatFormat,
)
from golden.mx.recipes import NVFP4, BlockFormat
from golden.rounding import Rounding
from hdl.axi_stream import AxiStreamMac, AxiStreamParameters
from hdl.converter import DEPTHS as CONVERTER_DEPTHS
from hdl.converter import ConverterParameters, FloatConverter
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.mac.parameters import DEPTHS, MacParameters
from hdl.matrix.matrix_mac import MatrixMac
from hdl.matrix.parameters import MatrixParameters
from hdl.matrix_engine.matrix_engine import MatrixEngine
from hdl.matrix_engine.parameters import EngineParameters
from hdl.mx.parameters import MxParameters
from hdl.mx.quantizer import MxQuantizer
from hdl.parameters import Parameters
from hdl.vector.parameters import VectorParameters
from hdl.vector.vector_mac import VectorMac

__all__ = ["UNITS", "Kind", "Unit", "released"]


class Kind(enum.Enum):
    """A kind of unit: its component, its command, its description and its checks.

    Attributes
    ----------
    component : class
        The Amaranth component.
    parameters : class
        Its parameters with their definitions.
    command : str
        Its name in ``python -m hdl verilog``.
    about : str
        A description, as a noun phrase.
    golden_twin : str
        The function that defines its results, bit for bit.
    heading : str
        The heading of its units in the documents.
    core : Kind
        The kind of the component's ``unit``, for a component that puts AXI ports around it; else this kind.
    """

    CONVERTER = (
        FloatConverter, ConverterParameters, "convert", "a format converter", "golden.convert", "Format converters",
    )  # fmt: skip
    MX_QUANTIZER = (
        MxQuantizer, MxParameters, "mx-quantize", "a block quantiser of microscaling", "golden.mx.quantize",
        "Block quantisers",
    )  # fmt: skip
    MAC = (
        MultiplyAccumulate, MacParameters, "mac", "the multiply-accumulate unit", "golden.dot",
        "Multiply-accumulate units",
    )  # fmt: skip
    AXI_STREAM = (
        AxiStreamMac, AxiStreamParameters, "mac-axi-stream",
        "the multiply-accumulate unit behind AXI4-Stream ports", "golden.dot", "Behind AXI4-Stream ports",
        "MAC",
    )  # fmt: skip
    VECTOR = (
        VectorMac, VectorParameters, "vector-mac", "the SIMD multiply-accumulate unit", "golden.dot", "Several lanes",
    )  # fmt: skip
    MATRIX = (
        MatrixMac, MatrixParameters, "matrix-mac", "the array of multiply-accumulate lanes", "golden.matmul",
        "Arrays of lanes",
    )  # fmt: skip
    # Its regression is `sim.engine`.
    ENGINE = (
        MatrixEngine, EngineParameters, "matrix-engine", "the matrix engine behind AXI4 and AXI4-Lite", "golden.matmul",
        "Matrix engines", "MATRIX",
    )  # fmt: skip

    def __init__(
        self,
        component: type[wiring.Component],
        parameters: type[Parameters],
        command: str,
        about: str,
        golden_twin: str,
        heading: str,
        core: str = "",
    ) -> None:
        self.component, self.parameters, self.command, self.about = component, parameters, command, about
        self.golden_twin, self.heading, self._core = golden_twin, heading, core

    @property
    def core(self) -> Kind:
        return Kind[self._core or self.name]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit with chosen parameters.

    Parameters
    ----------
    name : str
        Name of the Verilog module, the files and the rows in tables.
    kind : Kind
    arguments : mapping
        Arguments of the constructor; all others keep their defaults.
    is_released : bool
        Whether `make verilog` writes it.
    effort : float
        Share of the full random stimulus in the regression. Variants of a fully tested unit need less; 0 means that the
        unit is not simulated there. Engines are simulated by `sim.engine`.
    is_measured : bool
        Whether its area and speed are measured on an FPGA.
    """

    name: str
    kind: Kind
    arguments: Mapping[str, Any] = field(hash=False)
    is_released: bool = False
    effort: float = 0.0
    is_measured: bool = False

    def build(self, **changes: Any) -> Any:
        """Return the component, with additional or changed arguments."""
        return self.kind.component(**{**self.arguments, **changes})


def _unit(
    name: str, kind: Kind, *, released: bool = False, effort: float = 0.0, measured: bool = False, **arguments: Any
) -> Unit:
    return Unit(name=name, kind=kind, arguments=arguments, is_released=released, effort=effort, is_measured=measured)


def _converters() -> Iterator[Unit]:
    def converter(name: str, source: FloatFormat, destination: FloatFormat, **given: Any) -> Unit:
        return _unit(name, Kind.CONVERTER, source=source, destination=destination, **given)

    for source, destination in CONVERSIONS:
        widens = source in HALF_FORMATS and destination is FP32
        yield converter(f"{source}_to_{destination}", source, destination, released=True, effort=1.0, measured=widens)
    for narrow in HALF_FORMATS:
        for stages in CONVERTER_DEPTHS:
            name = f"float32_to_{narrow}_stages_{stages}"
            effort = 0.2 if narrow is CBFLOAT16 and stages != 2 else 0.0
            yield converter(name, FP32, narrow, effort=effort, measured=True, stages=stages)
            yield converter(f"{name}_no_flags", FP32, narrow, measured=True, stages=stages, flags=False)
    yield converter("cbfloat16_to_float16_stages_1", CBFLOAT16, FP16, effort=0.2, stages=1)
    yield converter("float16_to_float32_stages_3", FP16, FP32, effort=0.2, stages=3)
    yield converter("float32_to_bfloat16_no_flags", FP32, BF16, effort=0.2, flags=False)
    # The general datapath: every mode, several modes (the others are refused), a single mode.
    every = tuple(Rounding)
    yield converter("float32_to_cbfloat16_any_rounding", FP32, CBFLOAT16, measured=True, roundings=every)
    yield converter("float32_to_float8_e4m3fn_any_rounding", FP32, FLOAT8_E4M3FN, effort=0.5, roundings=every)
    some = {
        "roundings": (Rounding.NEAREST_EVEN, Rounding.STOCHASTIC),
        "random_bits": 8,
        "overflow": "saturate",
        "stages": 3,
    }
    yield converter("float8_e5m2_to_float4_e2m1fn_some_roundings", FLOAT8_E5M2, FLOAT4_E2M1FN, effort=0.3, **some)
    yield converter("float8_e4m3fn_to_float8_e4m3fnuz", FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, effort=0.3)
    # Subnormals on both sides are flushed: into the smaller range, into the larger one, in every mode.
    yield converter("float32_to_cbfloat16_flush", FP32, CBFLOAT16, effort=0.5, measured=True, subnormals="flush")
    yield converter("float16_to_cbfloat16_flush", FP16, CBFLOAT16, effort=0.3, subnormals="flush")
    flushed = {"roundings": every, "subnormals": "flush", "stages": 3}
    yield converter("cbfloat16_to_float16_flush_any_rounding", CBFLOAT16, FP16, effort=0.3, **flushed)
    yield converter("float8_e5m2fnuz_to_float8_e4m3fnuz", FLOAT8_E5M2FNUZ, FLOAT8_E4M3FNUZ, effort=0.3)


def _quantizers() -> Iterator[Unit]:
    def quantizer(name: str, element: FloatFormat | BlockFormat, **given: Any) -> Unit:
        return _unit(f"mx_quantize_{name}", Kind.MX_QUANTIZER, element=element, **given)

    yield quantizer("float8_e4m3fn", FLOAT8_E4M3FN, released=True, effort=1.0, measured=True, lanes=4)
    # Scales that are numbers, and with them the largest magnitude in place of the largest exponent.
    yield quantizer("nvfp4", NVFP4, effort=0.5, measured=True, block=NVFP4.block, lanes=4)
    yield quantizer("bfloat16_to_nvfp4", NVFP4, effort=0.3, source=BF16, block=NVFP4.block, lanes=16)
    # One value in a beat; a whole block in a beat, with random numbers.
    yield quantizer("float16_to_float6_e3m2fn", FLOAT6_E3M2FN, effort=0.3, source=FP16)
    some = {"block": 4, "lanes": 4, "rounding": Rounding.STOCHASTIC, "random_bits": 8}
    yield quantizer("cbfloat16_to_float8_e5m2_stochastic", FLOAT8_E5M2, effort=0.3, source=CBFLOAT16, **some)


#: The simulated unit of a depth differs from the default in these: the number of registers or the bits of the chunk
#: counter. Deep units, too, have so few registers that products always wait for each other.
_AT_DEPTH: dict[int, dict[str, Any]] = {
    1: {"effort": 0.12, "registers": 2},
    2: {"effort": 0.12, "registers": 4},
    3: {"effort": 0.15},
    4: {"effort": 0.15, "registers": 32},
    5: {"effort": 0.15, "chunk_bits": 1},
    6: {"effort": 0.15, "chunk_bits": 2},
    8: {"chunk_bits": 6},
    9: {"registers": 32},
    10: {"registers": 8, "chunk_bits": 32},
    11: {"registers": 2},
    12: {"operands": (CB16,), "registers": 64, "chunk_bits": 3},
}


def _macs() -> Iterator[Unit]:
    def mac(name: str, *operands: FloatFormat, **given: Any) -> Unit:
        return _unit(name, Kind.MAC, operands=operands, **given)

    several, one = HALF_FORMATS, CBFLOAT16
    yield mac("mac", *several, released=True, effort=1.0, measured=True)
    yield mac("mac_no_flags", *several, effort=0.3, measured=True, flags=False)
    for fmt in SIXTEEN_BIT_FORMATS:
        yield mac(f"mac_{fmt}", fmt, released=True, effort=1.0, measured=fmt in HALF_FORMATS)
    for stages in DEPTHS:
        if stages != MacParameters(operands=several).stages:  # which `mac` has
            given: dict[str, Any] = {"operands": several, "effort": 0.2} | _AT_DEPTH.get(stages, {})
            yield _unit(f"mac_stages_{stages}", Kind.MAC, stages=stages, **given)
    yield mac("mac_level_0", *several, effort=0.5, levels=(0,))
    yield mac("mac_level_1", *several, effort=0.5, levels=(1,))
    yield mac("mac_level_2", *several, effort=0.5, levels=(2,), chunk_bits=3)
    for fmt in HALF_FORMATS:
        for level in (0, 2):
            yield mac(f"mac_{fmt}_level_{level}", fmt, measured=True, levels=(level,))
    yield mac(f"mac_{one}_no_flags", one, measured=True, flags=False)
    for stages in DEPTHS:
        yield mac(f"mac_{one}_stages_{stages}", one, measured=True, stages=stages)
    for stages in (3, 4):
        yield mac(f"mac_{one}_level_2_stages_{stages}", one, measured=True, levels=(2,), stages=stages)
    # Event counters.
    yield mac("mac_counters", *several, effort=0.1, measured=True, counters=True)
    # Every rounding mode, and operands of 8 bits and fewer, which are widened.
    yield mac("mac_any_rounding", one, effort=0.1, measured=True, roundings=tuple(Rounding))
    yield mac("mac_narrow", FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN, effort=0.1, stages=3)
    directed = tuple(mode for mode in Rounding if mode is not Rounding.STOCHASTIC)
    yield mac(f"mac_{one}_directed_roundings", one, measured=True, roundings=directed)
    # Subnormals flushed: the smallest unit, in every mode, and of operands that are widened.
    yield mac(f"mac_{one}_flush", one, effort=0.3, measured=True, subnormals="flush")
    flushed = {"roundings": tuple(Rounding), "subnormals": "flush"}
    yield mac("mac_flush_any_rounding", BF16, FP16, effort=0.1, **flushed)
    yield mac("mac_flush_narrow", FLOAT8_E4M3FN, FLOAT8_E5M2FNUZ, effort=0.1, stages=3, subnormals="flush")
    yield mac("mac_float8_e4m3fn", FLOAT8_E4M3FN, effort=0.1, measured=True)
    yield _unit("mac_axi_stream", Kind.AXI_STREAM, released=True, effort=0.4, operands=several)
    yield _unit("mac_axi_counters", Kind.AXI_STREAM, effort=0.1, operands=(one,), stages=3, counters=True)


def _vectors() -> Iterator[Unit]:
    def vector(name: str, *operands: FloatFormat, **given: Any) -> Unit:
        return _unit(name, Kind.VECTOR, operands=operands, **given)

    yield vector("vector_mac", *HALF_FORMATS, released=True, effort=0.1, measured=True)
    yield vector("vector_mac_lanes_8", CBFLOAT16, effort=0.05, lanes=8, chunk_bits=4)
    yield vector("vector_mac_no_flags", CBFLOAT16, effort=0.05, flags=False)
    yield vector("vector_mac_counters", *HALF_FORMATS, effort=0.03, measured=True, counters=True)
    every = tuple(Rounding)
    yield vector("vector_mac_any_rounding", CBFLOAT16, effort=0.03, lanes=2, stages=5, roundings=every, random_bits=8)
    yield vector(f"vector_mac_{CBFLOAT16}_any_rounding", CBFLOAT16, measured=True, lanes=4, roundings=every)
    for lanes in (4, 8):
        yield vector(f"vector_mac_cbfloat16_lanes_{lanes}", CBFLOAT16, measured=True, lanes=lanes)


def _matrices() -> Iterator[Unit]:
    def matrix(name: str, *operands: FloatFormat, **given: Any) -> Unit:
        return _unit(name, Kind.MATRIX, operands=operands, **given)

    small = {"rows": 2, "columns": 2}
    yield matrix("matrix_mac", CBFLOAT16, released=True, effort=0.05, measured=True, **small)
    yield matrix("matrix_mac_formats_no_flags", *HALF_FORMATS, effort=0.05, flags=False, rows=1, columns=3)
    yield matrix("matrix_mac_level_2", CBFLOAT16, effort=0.05, levels=(2,), rows=3, columns=1, chunk_bits=4)
    yield matrix("matrix_mac_shared_promotions", CBFLOAT16, FP16, effort=0.03, levels=(1, 2), rows=2, columns=3)
    directed = tuple(mode for mode in Rounding if mode is not Rounding.STOCHASTIC)
    yield matrix("matrix_mac_directed_roundings", CBFLOAT16, effort=0.03, roundings=directed, registers=4, **small)
    yield matrix("matrix_mac_initial", CBFLOAT16, FP16, effort=0.03, initial=True, rows=3, columns=2)
    flushed = {"subnormals": "flush", "registers": 16}
    yield matrix("matrix_mac_flush_narrow", FLOAT8_E4M3FN, FLOAT8_E5M2, effort=0.03, **small, **flushed)
    yield matrix("matrix_mac_no_flags", CBFLOAT16, measured=True, flags=False, levels=(1, 2))
    yield matrix("matrix_mac_level_2_no_flags", CBFLOAT16, measured=True, flags=False, levels=(2,))
    sizes = {"rows": 8, "columns": 8}
    yield matrix("matrix_mac_8_by_8_formats_no_flags", *HALF_FORMATS, measured=True, flags=False, **sizes)
    yield matrix("matrix_mac_8_by_8_full_no_flags", CBFLOAT16, measured=True, flags=False, **sizes)
    yield matrix("matrix_mac_8_by_8_no_flags", CBFLOAT16, measured=True, flags=False, levels=(1, 2), **sizes)
    yield matrix("matrix_mac_8_by_8_level_2_no_flags", CBFLOAT16, measured=True, flags=False, levels=(2,), **sizes)


def _engines() -> Iterator[Unit]:
    yield _unit("matrix_engine", Kind.ENGINE, released=True, operands=(CBFLOAT16,))


#: Every unit, by its name.
UNITS = {unit.name: unit for unit in (*_converters(), *_quantizers(), *_macs(), *_vectors(), *_matrices(), *_engines())}


def released(*kinds: Kind) -> list[Unit]:
    """Return the units that `make verilog` writes, optionally only of some kinds."""
    return [unit for unit in UNITS.values() if unit.is_released and (not kinds or unit.kind in kinds)]
