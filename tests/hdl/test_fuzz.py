"""Every public unit of `hdl` with bad parameters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hdl
import hdl.verilog
from golden import CB16, FLOAT8_E4M3FN, FP32
from hdl import FloatConverter

from ..fuzz import callables_of, check_call, wrong_arguments

MAC = hdl.MultiplyAccumulate(levels=(2,)).parameters.arguments()
GOOD = {
    "FloatConverter": FloatConverter(source=FP32, destination=CB16).parameters.arguments(),
    "FloatShape": {"fmt": FP32},
    "MultiplyAccumulate": MAC,
    "MxQuantizer": {"element": FLOAT8_E4M3FN, "source": FP32, "block": 32, "lanes": 2, "rounding": "up"},
    "Philox4x32": {"stages": 3},
    "VectorMac": {**MAC, "lanes": 4},
    "verilog.to_verilog": {"unit": FloatConverter(source=CB16, destination=FP32), "name": "unit"},
}
#: What units return and take.
LEFT_OUT = {"Error", "FloatView"}


def test_bad_parameters_are_tried_on_every_public_unit():
    assert callables_of(hdl) == {name for name in GOOD if "." not in name} | LEFT_OUT


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=50)
@given(data=st.data())
def test_unit_with_a_bad_parameter_names_it(name, data):
    call = hdl.verilog.to_verilog if "." in name else getattr(hdl, name)
    check_call(call, GOOD[name], data.draw(wrong_arguments(GOOD[name])))
