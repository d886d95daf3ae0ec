"""Parameters of the units: attributes to read, errors that name the parameter, its value and the allowed ones."""

import inspect

import pytest

from golden import BF16, CB16, CBFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, FP32, FloatFormat, Rounding
from hdl import FloatConverter, MatrixEngine, MultiplyAccumulate, VectorMac
from hdl.axi_stream import AxiStreamMac

NO_ONE = FloatFormat("e4m3_high_bias", 4, 3, bias=60)

MODES = "some of nearest_even, toward_zero, down, up, nearest_away, to_odd, stochastic"

BAD_MODES = [
    ({"roundings": ()}, ValueError, f"roundings: got none, must be {MODES}, each once"),
    ({"roundings": ("up", "up")}, ValueError, f"roundings: got up, up, must be {MODES}, each once"),
    ({"roundings": "near"}, ValueError, f"roundings: got 'near', must be a Rounding or {MODES.replace('some', 'one')}"),
    ({"roundings": (0,)}, TypeError, "roundings: got 0, must be a Rounding or the name of one"),
    ({"roundings": 3}, TypeError, "roundings: got 3, must be a sequence of Rounding"),
    ({"random_bits": 0}, ValueError, "random_bits: got 0, must be from 1 to 32"),
    ({"random_bits": 33}, ValueError, "random_bits: got 33, must be from 1 to 32"),
    ({"subnormals": "drop"}, ValueError, "subnormals: got 'drop', must be one of keep, flush"),
]

BAD_CONVERTER = [
    ({"source": "float32"}, TypeError, "source: got 'float32', must be a golden.FloatFormat"),
    ({"destination": None}, TypeError, "destination: got None, must be a golden.FloatFormat"),
    (
        {"source": FloatFormat("a\nb", 6, 9)},
        ValueError,
        "source: got a format named 'a\\nb', must be a name of printable characters",
    ),
    ({"stages": 0}, ValueError, "stages: got 0, must be from 1 to 3 (2 unless given)"),
    ({"stages": 4}, ValueError, "stages: got 4, must be from 1 to 3 (2 unless given)"),
    ({"stages": "2"}, TypeError, "stages: got '2', must be an int from 1 to 3, or None for 2"),
    ({"stages": True}, TypeError, "stages: got True, must be an int from 1 to 3, or None for 2"),
    ({"flags": "no"}, TypeError, "flags: got 'no', must be True or False"),
    *BAD_MODES,
    ({"overflow": "clip"}, ValueError, "overflow: got 'clip', must be one of special, saturate"),
    ({"overflow": None}, ValueError, "overflow: got None, must be one of special, saturate"),
]

BAD_MAC = [
    ({"operands": ()}, ValueError, "operands: got none, must be at least one FloatFormat"),
    ({"operands": None}, TypeError, "operands: got None, must be a sequence of FloatFormat"),
    ({"operands": "cbfloat16"}, TypeError, "operands: got 'cbfloat16', must be a sequence of FloatFormat"),
    ({"operands": ("cbfloat16",)}, TypeError, "operands: got 'cbfloat16', must be golden.FloatFormats"),
    ({"operands": (FP32,)}, ValueError, "operands: got float32 of 32 bits, must be at most 16 bits wide"),
    (
        {"operands": (FP16, FP16)},
        ValueError,
        "operands: got float16, float16, must be different formats, each with a name of its own",
    ),
    (
        {"operands": (FP16, FloatFormat("float16", 6, 9))},
        ValueError,
        "operands: got float16, float16, must be different formats, each with a name of its own",
    ),
    (
        {"operands": (FloatFormat("a\nb", 6, 9),)},
        ValueError,
        "operands: got a format named 'a\\nb', must be a name of printable characters",
    ),
    (
        {"operands": (NO_ONE,)},
        ValueError,
        "operands: got e4m3_high_bias with bias 60, must hold 1.0: promotions multiply by it",
    ),
    ({"inner": 16}, TypeError, "inner: got 16, must be a golden.FloatFormat or 'operand'"),
    ({"inner": FP16}, ValueError, "inner: got float16, must hold every value of the operand format cbfloat16"),
    ({"levels": ()}, ValueError, "levels: got (), must be some of (0, 1, 2), each once"),
    ({"levels": (0, 3)}, ValueError, "levels: got (0, 3), must be some of (0, 1, 2), each once"),
    ({"levels": (1, 1)}, ValueError, "levels: got (1, 1), must be some of (0, 1, 2), each once"),
    ({"levels": ("1",)}, TypeError, "levels: got ('1',), must be ints, some of (0, 1, 2)"),
    ({"levels": (True,)}, TypeError, "levels: got (True,), must be ints, some of (0, 1, 2)"),
    ({"levels": None}, TypeError, "levels: got None, must be a sequence of int"),
    ({"registers": 1}, ValueError, "registers: got 1, must be a power of two from 2 to 4096"),
    ({"registers": 12}, ValueError, "registers: got 12, must be a power of two from 2 to 4096"),
    ({"registers": 1 << 20}, ValueError, "registers: got 1048576, must be a power of two from 2 to 4096"),
    ({"registers": 4.0}, TypeError, "registers: got 4.0, must be an int"),
    ({"stages": 0}, ValueError, "stages: got 0, must be from 1 to 13 (13 unless given)"),
    ({"stages": 14}, ValueError, "stages: got 14, must be from 1 to 13 (13 unless given)"),
    (
        {"stages": 14, "operands": (CBFLOAT16, FP16)},
        ValueError,
        "stages: got 14, must be from 1 to 13 (13 unless given)",
    ),
    ({"stages": 2.0}, TypeError, "stages: got 2.0, must be an int from 1 to 13, or None for 13"),
    ({"stages": True}, TypeError, "stages: got True, must be an int from 1 to 13, or None for 13"),
    ({"chunk_bits": 0}, ValueError, "chunk_bits: got 0, must be from 1 to 32"),
    ({"chunk_bits": 33}, ValueError, "chunk_bits: got 33, must be from 1 to 32"),
    ({"chunk_bits": False}, TypeError, "chunk_bits: got False, must be an int"),
    ({"flags": 1}, TypeError, "flags: got 1, must be True or False"),
    ({"counters": 1}, TypeError, "counters: got 1, must be True or False"),
    ({"multiplier": "dsp"}, ValueError, "multiplier: got 'dsp', must be one of generic, ecp5, nexus"),
    ({"multiplier": None}, ValueError, "multiplier: got None, must be one of generic, ecp5, nexus"),
    ({"multiplier": ["ecp5"]}, ValueError, "multiplier: got ['ecp5'], must be one of generic, ecp5, nexus"),
    *BAD_MODES,
]

SEVENTEEN = tuple(FloatFormat(f"e5m10_bias_{bias}", 5, 10, bias=bias) for bias in range(7, 24))
ONE_MODE = MODES.replace("some", "one mode").replace(", stochastic", "")
BAD_AXI = [
    *(
        (given, kind, message.replace("to 4096", "to 256").replace(f"{MODES}, each once", ONE_MODE))
        for given, kind, message in BAD_MAC
    ),
    ({"registers": 512}, ValueError, "registers: got 512, must be a power of two from 2 to 256"),
    ({"operands": SEVENTEEN}, ValueError, "operands: got 17, must be at most 16 to fit s_axis_tuser"),
    (
        {"roundings": ("nearest_even", "up")},
        ValueError,
        "roundings: got nearest_even, up, must be one mode that takes no random number: s_axis_tuser has no field for "
        "a mode; mac (hdl.MultiplyAccumulate) has one",
    ),
]
BAD_VECTOR = [
    *(bad for bad in BAD_MAC if bad[0].keys() != {"stages"}),
    ({"lanes": 0}, ValueError, "lanes: got 0, must be an even number from 2 to 1024"),
    ({"lanes": 5}, ValueError, "lanes: got 5, must be an even number from 2 to 1024"),
    ({"lanes": 1026}, ValueError, "lanes: got 1026, must be an even number from 2 to 1024"),
    ({"lanes": -2}, ValueError, "lanes: got -2, must be an even number from 2 to 1024"),
    ({"lanes": 4.0}, TypeError, "lanes: got 4.0, must be an int"),
    ({"lanes": True}, TypeError, "lanes: got True, must be an int"),
    ({"stages": 14}, ValueError, "stages: got 14, must be from 1 to 13 (13 unless given)"),
    (
        {"registers": 8},
        ValueError,
        "registers: got 8, must be at least 16 with 13 stages: 14 registers in rotation keep the pipeline full; "
        "build more registers or fewer stages",
    ),
    (
        {"registers": 4, "levels": (0, 2), "stages": 8},
        ValueError,
        "registers: got 4, must be at least 8 with 8 stages: 5 registers in rotation keep the pipeline full; "
        "build more registers or fewer stages",
    ),
]
NAMED = "must be some of cbfloat16, float16, bfloat16, cb16: the registers name no others"
BAD_ENGINE = [
    ({"operands": (FLOAT8_E5M2,)}, ValueError, f"operands: got float8_e5m2, {NAMED}"),
    ({"operands": (FLOAT8_E4M3FN, FP16)}, ValueError, f"operands: got float8_e4m3fn, {NAMED}"),
    (
        {"rows": 1, "columns": 1, "registers": 256},
        ValueError,
        "registers: got 256, must be a power of two from 2 to 128",
    ),
]


CONVERTER = {"source": FP32, "destination": CBFLOAT16}
BAD = [
    *((FloatConverter, {**CONVERTER, **given}, *rest) for given, *rest in BAD_CONVERTER),
    *((MultiplyAccumulate, *bad) for bad in BAD_MAC),
    *((AxiStreamMac, *bad) for bad in BAD_AXI),
    *((VectorMac, *bad) for bad in BAD_VECTOR),
    *((MatrixEngine, *bad) for bad in BAD_ENGINE),
]


@pytest.mark.parametrize(
    ("unit", "given", "error", "message"),
    BAD,
    ids=[f"{unit.__name__}-{said.partition(', must')[0]}" for unit, _, _, said in BAD],
)
def test_unit_with_a_bad_parameter_names_it(unit, given, error, message):
    with pytest.raises(error) as raised:
        unit(**given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("unit", "covered"),
    [(FloatConverter, BAD_CONVERTER), (MultiplyAccumulate, BAD_MAC), (AxiStreamMac, BAD_AXI), (VectorMac, BAD_VECTOR)],
    ids=["converter", "mac", "axi_stream", "vector"],
)
def test_every_parameter_is_keyword_only_and_has_a_bad_value_above(unit, covered):
    parameters = inspect.signature(unit).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    assert {parameter.name for parameter in parameters} == {name for given, *_ in covered for name in given}


def test_unknown_parameter_is_an_error():
    for unit in (FloatConverter, MultiplyAccumulate, AxiStreamMac, VectorMac):
        with pytest.raises(TypeError, match="depth"):
            unit(depth=3)


def test_attributes_of_a_converter_are_its_parameters_and_its_latency():
    rounding = FloatConverter(source=FP32, destination=CBFLOAT16)
    assert (rounding.source, rounding.destination) == (FP32, CBFLOAT16)
    assert (rounding.stages, rounding.latency, rounding.flags) == (2, 2, True)
    assert FloatConverter(source=BF16, destination=FP32).latency == 1
    unit = FloatConverter(source=FP32, destination=CBFLOAT16, stages=3, flags=False)
    assert (unit.stages, unit.latency, unit.flags) == (3, 3, False)
    assert (unit.roundings, unit.overflow, unit.random_bits) == ((Rounding.NEAREST_EVEN,), "special", 16)
    unit = FloatConverter(source=FP32, destination=CBFLOAT16, roundings=("stochastic", Rounding.DOWN), random_bits=8)
    assert (unit.roundings, unit.random_bits) == ((Rounding.DOWN, Rounding.STOCHASTIC), 8)
    assert FloatConverter(source=FP32, destination=CBFLOAT16, roundings="up").roundings == (Rounding.UP,)


def test_ports_of_a_converter_are_what_its_modes_need():
    def widths(port):
        shape = port.payload.shape()
        return {name: field.width for name, field in shape} if hasattr(shape, "members") else shape.width

    for roundings, given, extra in (
        (("up",), 32, {}),
        (("stochastic",), {"bits": 32, "random": 16}, {}),
        (("up", "down"), {"bits": 32, "rounding": 3}, {"error": 1}),
        (("up", "stochastic"), {"bits": 32, "rounding": 3, "random": 16}, {"error": 1}),
    ):
        unit = FloatConverter(source=FP32, destination=CBFLOAT16, roundings=roundings)
        assert widths(unit.i) == given
        assert widths(unit.o) == {"bits": 16, "flags": 5} | extra


def test_attributes_of_a_multiply_accumulate_unit_are_its_parameters_and_its_latencies():
    unit = MultiplyAccumulate(operands=[CB16, FP16], levels=[2, 0], registers=4, stages=3, chunk_bits=5, flags=False)
    assert (unit.operands, unit.levels, unit.registers) == ((CB16, FP16), (0, 2), 4)
    assert (unit.stages, unit.chunk_bits, unit.flags) == (3, 5, False)
    assert (unit.latency, unit.accumulate_latency) == (4, 3)


def test_defaults_of_a_multiply_accumulate_unit_are_cbfloat16_at_all_levels_and_full_depth():
    unit = MultiplyAccumulate()
    assert (unit.operands, unit.levels, unit.registers) == ((CBFLOAT16,), (0, 1, 2), 16)
    assert (unit.stages, unit.chunk_bits, unit.flags) == (13, 16, True)
    assert unit.parameters.multiplier == "generic"
    assert MultiplyAccumulate(operands=(CBFLOAT16, FP16)).stages == 13


def test_one_format_and_one_level_need_no_sequence():
    unit = MultiplyAccumulate(operands=BF16, levels=2)
    assert (unit.operands, unit.levels) == ((BF16,), (2,))


def test_axi_stream_mac_holds_the_unit_that_it_wraps():
    assert AxiStreamMac(operands=(FP16,), stages=4).unit.latency == 5
