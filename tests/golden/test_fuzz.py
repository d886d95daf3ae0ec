"""Every public function of `golden` with bad arguments."""

import warnings
from contextlib import chdir

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from golden import FP32, FusedSum, mx

from ..fuzz import callables_of, check_call, wrong_arguments

NAME = "cbfloat16"
CODES, VALUES, TOTAL = np.full((2, 2), 0x3C00, np.uint16), np.ones((2, 2), np.float32), np.zeros((2, 2), np.uint32)
ROUNDED = {"rounding": "up", "overflow": "special", "random": None, "random_bits": 16}
REDUCED = {"operand": NAME, "level": 1, "chunk": 32, "reduction": None, "initial": None, "out": FP32}
SEEDED = {"rounding": "stochastic", "out_rounding": "up", "seed": 0, "call": 0, "random_bits": 16, "counts": False}
BLOCKS = (np.full((2, 1), 127, np.uint8), np.zeros((2, 32), np.uint8))
EXPLAINED = golden.explain([1, 2], [1, 2], operand=NAME)
GOOD = {
    "FloatFormat": {"name": "x", "exponent_bits": 5, "fraction_bits": 3, "bias": None, "specials": "ieee"},
    "Reduction": {"inner": FP32, "chunk": 4, "outer": FP32},
    "Reduction.for_level": {"level": 1, "operand": golden.CB16, "chunk": 4, "inner": None},
    "FusedSum": {"terms": 5, "fraction_bits": 24, "cut": "down", "rounding": "nearest_even", "result": FP32},
    "Accumulator": {"operand_bits": 16, "block": 4, "join": FusedSum(5, 24)},
    "format_named": {"name": NAME},
    "encode": {"values": VALUES, "fmt": NAME, **ROUNDED},
    "quantize": {"values": VALUES, "fmt": NAME, **ROUNDED},
    "decode": {"codes": CODES, "fmt": NAME},
    "convert": {"codes": CODES, "source": NAME, "destination": "fp16", "return_flags": True, **ROUNDED},
    "multiply_accumulate": {"a": CODES, "b": CODES, "acc": TOTAL, "operand": NAME, "accumulator": FP32},
    "dot": {"a": CODES, "b": CODES, "return_flags": False, **REDUCED, **SEEDED},
    "matmul": {"a": CODES, "b": CODES, **REDUCED, **SEEDED},
    "matmul_values": {"a": VALUES, "b": VALUES, "operand": NAME, "level": 1, "chunk": 32},
    "softmax": {"codes": CODES, "fmt": NAME, "axis": -1},
    "explain": {"a": [1], "b": [1], "operand": NAME, "initial": 0, "seed": 0, "call": 0, "index": 0},
    "mx.quantize": {"values": np.ones((2, 32)), "element": "float8_e4m3fn", "block": 32},
    "mx.dequantize": {"scales": BLOCKS[0], "codes": BLOCKS[1], "element": "float8_e4m3fn"},
    "mx.dot": {"a": BLOCKS, "b": BLOCKS, "element": "float8_e4m3fn", "level": 1, "initial": None, "out": None},
    "EXPLAINED.table": {"rows": 3, "codes": False},
    "EXPLAINED.plot": {"file": "sum.svg"},
}
#: Records that functions return, and functions without arguments.
LEFT_OUT = {"Counts", "Events", "Flag", "Provenance", "Rounding", "kernel_info"}


def test_bad_arguments_are_tried_on_every_public_function():
    assert callables_of(golden) == {name for name in GOOD if "." not in name} | LEFT_OUT
    assert {f"mx.{name}" for name in callables_of(mx)} <= set(GOOD)


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=50)
@given(data=st.data())
def test_function_with_a_bad_argument_names_it(name, data, tmp_path_factory):
    call = golden if not name.startswith("EXPLAINED") else EXPLAINED
    for part in name.removeprefix("EXPLAINED.").split("."):
        call = getattr(call, part)
    with chdir(tmp_path_factory.getbasetemp()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of arrays as truth values
        check_call(call, GOOD[name], data.draw(wrong_arguments(GOOD[name])))
