"""The judge of the kernels' faults: the units it compiles, the questions it asks, and the moment it stops."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ..golden.kernels.build import SOURCE, UNITS, files_of
from . import battery
from .cpp_judge import CppJudge, is_compiled, stages_of
from .fault import CAUGHT, NO_BUILD, SAME_CODE, SURVIVED, fault_at

PATHS = ("avx512fp16", "avx512", "avx2", "portable")
FILES = sorted(path.name for path in SOURCE.iterdir())


@pytest.mark.parametrize("file", FILES)
def test_every_unit_of_a_file_is_compiled_once_and_asked_on_its_paths(file):
    stages = stages_of(file, PATHS)
    compiled = [unit for stage in stages for unit in stage.units]
    assert sorted(compiled) == [unit for unit in UNITS if file in files_of(unit)]
    asked = {path for stage in stages for path in stage.paths}
    shared = {unit.removeprefix("accumulate_").removesuffix(".cpp") for unit in compiled} - {*PATHS}
    assert asked >= ({*PATHS} if shared else {path for path in PATHS if f"{path}.cpp" in compiled})


def test_header_of_the_paths_alone_is_asked_path_by_path_portable_first():
    stages = stages_of("generic_steps.h", PATHS)
    assert [stage.units for stage in stages] == [("portable.cpp",), ("avx2.cpp",), ("avx512.cpp",)]
    assert [stage.paths for stage in stages] == [("portable",), ("avx2",), ("avx512", "avx512fp16")]


@pytest.mark.parametrize("file", ["rule.h", "kernels.h", "product.cpp", "plan.h"])
def test_file_that_others_than_paths_include_is_asked_everything_at_once(file):
    (stage,) = stages_of(file, PATHS)
    assert stage.paths == PATHS
    assert set(stage.parts) == set(battery.PARTS)


@pytest.mark.parametrize("file", ["accumulate.cpp", "accumulate_lanes.h"])
def test_accumulators_of_other_machines_are_asked_their_products_alone(file):
    assert {stage.parts for stage in stages_of(file, PATHS)} == {(battery.other_machines, battery.members)}


def test_windows_are_asked_about_planes_first_and_the_rest_too():
    (stage,) = stages_of("windows.cpp", PATHS)
    assert stage.parts[0] is battery.planes
    assert {*stage.parts} == {*battery.PARTS}


@pytest.mark.parametrize("file", ["generic_counts.h", "counting_steps.h"])
def test_counting_header_is_asked_counts_first_and_the_rest_too(file):
    for stage in stages_of(file, PATHS):
        assert stage.parts[0] is battery.counted
        assert {*stage.parts} == {*battery.PARTS} - {battery.other_machines, battery.members}


def test_path_that_the_machine_lacks_has_no_stage():
    assert [stage.units for stage in stages_of("steps.h", ("avx2", "portable"))] == [("avx2.cpp",)]
    assert stages_of("half_counts.h", ("avx2", "portable")) == []


def test_files_that_the_machine_compiles_into_no_path_are_those_of_float16_steps():
    of_halves = {"avx512fp16.cpp", "half_codes.h", "half_counts.h", "halves512.h"}
    assert {file for file in FILES if not is_compiled(f"golden/kernels/source/{file}", PATHS[1:])} == of_halves
    assert all(is_compiled(f"golden/kernels/source/{file}", PATHS) for file in FILES)


def judged(tmp_path, changes, fails=""):
    """Judge a fault in generic_steps.h: the paths whose code it changes, and what becomes of each; no compiler runs."""
    (plain := tmp_path / "plain").write_bytes(b"plain")
    asked = []

    def compiled(source, units, into):
        assert "double x) const {  " in (source / "generic_steps.h").read_text(encoding="utf-8")
        (unit,) = units
        assert unit != fails, "it does not compile"
        made = Path(into.parent, unit)
        made.write_bytes(b"changed" if unit in changes else b"plain")
        return {unit: made}

    def ask(library, paths, parts):
        asked.append(library)
        return changes[library], "battery"

    judge = object.__new__(CppJudge)
    judge.folder, judge.paths, judge.ask = tmp_path, PATHS, ask
    plains = dict.fromkeys(UNITS, plain)
    judge.builder = SimpleNamespace(compiled=compiled, plain=plains, link=lambda folder, objects: next(iter(objects)))
    text = (SOURCE / "generic_steps.h").read_text(encoding="utf-8")
    at = text.index("double x) const {") + len("double x) const {")
    ruling = judge.judge(fault_at("golden/kernels/source/generic_steps.h", text, at, at, "constant", "  "))
    return ruling.result, asked


def test_first_path_that_tells_a_fault_ends_it(tmp_path):
    assert judged(tmp_path, {"portable.cpp": CAUGHT, "avx2.cpp": CAUGHT}) == (CAUGHT, ["portable.cpp"])
    assert judged(tmp_path, {"portable.cpp": SURVIVED, "avx512.cpp": CAUGHT}) == (
        CAUGHT,
        ["portable.cpp", "avx512.cpp"],
    )


def test_fault_survives_where_any_code_changed_and_no_path_tells(tmp_path):
    assert judged(tmp_path, {"avx2.cpp": SURVIVED}) == (SURVIVED, ["avx2.cpp"])
    assert judged(tmp_path, {}) == (SAME_CODE, [])


def test_fault_that_a_later_unit_does_not_compile_with_is_none(tmp_path):
    assert judged(tmp_path, {"portable.cpp": SURVIVED}, fails="avx512.cpp") == (NO_BUILD, ["portable.cpp"])
