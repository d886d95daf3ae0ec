"""A bench for each kind of core: how it is driven, and how its failures are explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from golden.nearest import complete
from hdl.catalogue import Kind
from hdl.converter import FloatConverter
from hdl.mx.quantizer import MxQuantizer
from sim.bench.explain import explain_block, explain_conversion
from sim.bench.explain_matrix import explain_matrix
from sim.bench.explain_reduction import explain_reduction
from sim.bench.explain_vector import explain_vector
from sim.bench.findings import Explain
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.converter import converter_scenarios, required_bins
from sim.stimulus.converter_modes import mode_scenarios, required_mode_bins
from sim.stimulus.maker import generator_for
from sim.stimulus.makers import reduction_scenarios
from sim.stimulus.mx import block_scenarios, required_block_bins
from tools.evidence import Part

__all__ = ["BENCHES", "Bench", "bench_of"]

#: Scenarios, the coverage bins that they must meet, and the names of the formats that failure lines need.
Prepared = tuple[list[Scenario], set[str], list[str]]


@dataclass(frozen=True)
class Bench:
    """How the regression tests a kind of core, with any ports around it.

    Parameters
    ----------
    prepare : function
        Returns the scenarios, the required coverage and the names of the formats, from the core, its `Port`, the seed,
        the name of the unit and the share of the full stimulus.
    explain : function
        Makes the line of a failure.
    part : Part
        The row of the picture of evidence.
    slowness : int
        How long a kind takes compared with the others; the smallest is the fastest.
    request_names, answer_names : mapping of str to str
        Other names of the streams' fields in the scenarios; ``""`` is a payload that is one number.
    """

    prepare: Callable[[Any, Port, int, str, float], Prepared]
    explain: Explain
    part: Part
    slowness: int
    request_names: Mapping[str, str] = field(default_factory=dict)
    answer_names: Mapping[str, str] = field(default_factory=dict)


def _conversions(core: FloatConverter, port: Port, seed: int, unit: str, effort: float) -> Prepared:
    source, destination = core.source, core.destination
    rng, names = generator_for(seed, unit), [source.name, destination.name]
    if not core.parameters.plan.is_plain:
        return mode_scenarios(core, port, rng, effort), required_mode_bins(core), names
    return converter_scenarios(core, port, rng, effort), required_bins(source, destination, core.latency), names


def _blocks(core: MxQuantizer, port: Port, seed: int, unit: str, effort: float) -> Prepared:
    names = [core.source.name, core.plan.element.name]
    return block_scenarios(core, port, generator_for(seed, unit), effort), required_block_bins(core), names


#: The bench of each core. Refused or not, results of a converter keep their order, so no field is called an error.
BENCHES: dict[Kind, Bench] = complete(
    "sim.kinds.BENCHES",
    {
        Kind.CONVERTER: Bench(
            _conversions, explain_conversion, Part.CONVERTERS, 0, {"": "code", "bits": "code"}, {"error": "refused"}
        ),
        Kind.MX_QUANTIZER: Bench(_blocks, explain_block, Part.CONVERTERS, 0),
        Kind.MAC: Bench(reduction_scenarios, explain_reduction, Part.MAC, 1, {}, {"": "result"}),
        Kind.VECTOR: Bench(reduction_scenarios, explain_vector, Part.VECTOR, 2),
        Kind.MATRIX: Bench(reduction_scenarios, explain_matrix, Part.MATRIX, 2),
    },
    (kind for kind in Kind if kind.core is kind),
)


def bench_of(kind: Kind) -> Bench:
    """Return the bench of a kind of units: the one of its core."""
    return BENCHES[kind.core]
