"""The parts of the site that are drawn from the code: ports, timing diagrams, citations of the contract."""

import os
from dataclasses import replace

import numpy as np
import pytest

import golden
from docs.pages import api, citations, ports, results, scenes, units
from docs.pages.waves import Wave, Waveform, simulate
from golden import CBFLOAT16, FP32
from hdl import FloatConverter
from hdl.catalogue import UNITS, Kind, released
from lab.fpga.report import published
from tools.results import read
from tools.sources import hash_of


@pytest.mark.parametrize("unit", released(), ids=lambda unit: unit.name)
def test_every_port_and_field_of_a_released_unit_has_a_meaning(unit):
    rows = ports.rows(unit.kind, unit.build())
    assert [row for row in rows if row.meaning.startswith(ports.UNKNOWN)] == []
    whole = [row for row in rows if row.direction]
    assert {row.direction for row in whole} == {"in", "out"}
    assert sum(row.width for row in rows if row.field) == sum(row.width for row in whole if not row.meaning)


def test_ports_of_a_field_without_documentation_show_that():
    unit = UNITS["mac"]
    known = ports.meanings(unit.kind, unit.build(), "in")
    assert set(known) >= {"a", "b", "format", "level", "register", "first", "last"}
    assert "strange" not in known


def test_waveform_of_a_converter_shows_what_enters_waits_and_leaves():
    unit = FloatConverter(source=FP32, destination=CBFLOAT16)
    codes = [0x3F800000, 0x3DCCCCCD]
    waveform = simulate(unit, [{"i__payload": code} for code in codes], results=2, stalls=[3])
    assert [answer["bits"] for answer in waveform.answers] == [0x3E00, 0x3733]
    drawn = {signal["name"]: signal for signal in waveform.to_wavedrom()["signal"]}
    assert drawn["i__payload"] == {"name": "i__payload", "wave": "x34x....", "data": ["3f800000", "3dcccccd"]}
    assert drawn["o__payload.bits"] == {"name": "o__payload.bits", "wave": "x..3.4x.", "data": ["3e00", "3733"]}
    assert drawn["o__ready"]["wave"] == "1..01..."


def test_waveform_without_its_results_is_refused():
    unit = FloatConverter(source=FP32, destination=CBFLOAT16)
    with pytest.raises(RuntimeError, match="results: got 2, but 1 came"):
        simulate(unit, [{"i__payload": 0}], results=2)


def test_long_wait_is_cut_and_the_numbers_of_the_cycles_stay_right():
    values = tuple((int(cycle == 9), 0, 0) for cycle in range(12))
    waveform = Waveform((Wave("valid", 1, values),), ())
    assert waveform.shortened() == ([0, 1, 9, 10, 11], [1])
    assert [signal["wave"] for signal in waveform.to_wavedrom()["signal"]] == ["p|...", "0|10."]
    svg = waveform.to_svg()
    assert [f">{number}<" in svg for number in (0, 1, 2, 8, 9, 11)] == [True, True, False, False, True, True]


def test_scene_that_differs_from_golden_is_refused(monkeypatch):
    wrong = (np.array([0x3F00, 0x3733, 0x7E00, 0xC001]), np.zeros(4, int))
    monkeypatch.setattr(golden, "convert", lambda *arguments, **options: wrong)
    with pytest.raises(RuntimeError, match="Four conversions: result 1"):
        scenes.scenes(Kind.CONVERTER, FloatConverter(source=FP32, destination=CBFLOAT16))


def test_pages_of_units_are_written_anew_only_when_a_source_has_changed(tmp_path, monkeypatch):
    chosen = [UNITS[name] for name in ("float32_to_cbfloat16", "mac_cbfloat16", "mac_axi_stream")]
    monkeypatch.setattr(units, "released", lambda: chosen)
    source = tmp_path / "source.py"
    source.touch()
    monkeypatch.setattr(units, "SOURCES", [source])
    folder = tmp_path / "units"
    units.write(folder)
    assert {path.name for path in folder.iterdir()} == {"index.rst", *(f"{unit.name}.rst" for unit in chosen)}
    (folder / "gone.rst").touch()
    units.write(folder)
    assert (folder / "gone.rst").exists()
    os.utime(source, (2**31, 2**31))
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*_*.rst")}
    units.write(folder)
    assert not (folder / "gone.rst").exists()
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("*_*.rst")} == before


def test_citation_of_the_contract_is_cut_out_of_its_sentence():
    text = "Convert codes (NUMERICS section 3), as NUMERICS sections 4 and 5 say."
    assert citations.parts(text) == [
        ("Convert codes (", ""), ("NUMERICS section 3", "3"), ("), as ", ""), ("NUMERICS sections 4", "4"),
        (" and 5 say.", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("golden.convert", "golden.convert"),
        ("golden.torch.amp.set_half_dtype", "golden.torch.set_half_dtype"),
        ("golden.torch.amp.grad_scaler.GradScaler.update", "golden.torch.amp.GradScaler.update"),
        ("hdl.mac.multiply_accumulate.MultiplyAccumulate", "hdl.MultiplyAccumulate"),
    ],
)
def test_name_is_led_to_where_it_is_documented(name, place):
    found, rest = api.find(name)
    assert ".".join([api.home(found), *rest]) == place


@pytest.mark.parametrize("name", ["golden.no_such_name", "golden.no.such.module", "numpy.array"])
def test_name_that_the_code_does_not_have_is_not_found(name):
    assert api.find(name) == (None, [])


@pytest.mark.parametrize(("source", "is_older"), [("0" * 16, True), (hash_of("hdl"), False)])
def test_page_of_a_unit_has_its_measurement_and_says_if_it_is_older(monkeypatch, source, is_older):
    monkeypatch.setattr(results, "read", lambda tool: replace(read(tool), sources={"hdl": source}))
    told = " ".join(results.measurement(UNITS["mac"].build()))
    (measured,) = [each for each in published().results if each.name == "mac"]
    assert f"{measured.area['COMB']} LUTs" in told
    assert f"{measured.megahertz:.0f} MHz" in told
    assert (results.OLDER in told) is is_older


def test_page_of_a_unit_that_was_not_measured_says_nothing():
    assert list(results.measurement(UNITS["mac_cb16"].build())) == []


def test_page_of_results_shows_what_their_file_says_today():
    page = ["# Speed\n\n<!-- results speed:begin -->\nof yesterday\n<!-- results speed:end -->\n"]
    results.refresh(None, "results/speed", page)
    assert "of yesterday" not in page[0]
    assert read("speed").provenance in page[0]
