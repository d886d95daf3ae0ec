"""The Verilog of every released unit, byte for byte: new formats, modes or parameters leave it as it is."""

import hashlib
import json

import pytest

from golden import CBFLOAT16, FP32
from hdl import FloatConverter
from hdl.catalogue import released
from hdl.verilog import to_verilog
from tools.paths import ROOT

KEPT = ROOT / "hdl" / "released.json"


def digest(unit, name):
    return hashlib.sha256(to_verilog(unit, name).encode()).hexdigest()[:32]


def test_verilog_of_every_released_unit_is_what_was_released():
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    now = {unit.name: digest(unit.build(), unit.name) for unit in released()}
    changed = {name: value for name, value in now.items() if kept.get(name) != value}
    assert changed == {}, "lab.equivalence says what changes; if it is meant, run: python -m lab.fpga --sources"
    assert kept == now, "units are no longer released; if that is meant, run: python -m lab.fpga --sources"


@pytest.mark.parametrize(
    "given", [{"roundings": ("nearest_even", "up")}, {"overflow": "saturate"}, {"roundings": "up"}], ids=str
)
def test_verilog_of_a_converter_with_a_parameter_of_its_own_is_another(given):
    unit = FloatConverter(source=FP32, destination=CBFLOAT16, **given)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert digest(unit, "float32_to_cbfloat16") != kept["float32_to_cbfloat16"]
