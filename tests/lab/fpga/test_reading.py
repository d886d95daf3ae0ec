"""Reading what the tools write."""

from copy import deepcopy

import pytest

from lab.fpga.placement import CriticalPath, Target, read_report
from lab.fpga.synthesis import area, count_cells, ports_of
from lab.fpga.wrapper import Port
from tests.lab.fpga.samples import NEXTPNR_REPORT

MODULE = {
    "ports": {
        "clk": {"direction": "input", "bits": [2]},
        "i": {"direction": "input", "bits": [3, 4]},
        "none": {"direction": "input", "bits": []},
        "o": {"direction": "output", "bits": [5]},
    },
    "cells": {
        **{f"lut{number}": {"type": "LUT4"} for number in range(5)},
        "carry0": {"type": "CCU2C"},
        "carry1": {"type": "CCU2C"},
        "ff": {"type": "TRELLIS_FF"},
        "memory": {"type": "TRELLIS_DPR16X4"},
        "multiplier": {"type": "MULT18X18D"},
        "scope": {"type": "$scopeinfo"},
    },
}


def test_cells_are_counted_by_type() -> None:
    assert count_cells(MODULE) == {"CCU2C": 2, "LUT4": 5, "MULT18X18D": 1, "TRELLIS_DPR16X4": 1, "TRELLIS_FF": 1}


def test_area_names_every_type() -> None:
    assert area(count_cells(MODULE)) == {
        "LUT4": 5, "CCU2C": 2, "COMB": 9, "FF": 1, "DSP": 1, "TRELLIS_DPR16X4": 1,
    }  # fmt: skip
    assert area({}) == {"LUT4": 0, "CCU2C": 0, "COMB": 0, "FF": 0, "DSP": 0}


def test_ports_without_bits_are_left_out() -> None:
    assert ports_of(MODULE) == [Port("clk", 1, True), Port("i", 2, True), Port("o", 1, False)]


def test_critical_path_is_the_slowest_between_registers() -> None:
    placement = read_report(NEXTPNR_REPORT)
    assert placement.megahertz == 123.5
    assert placement.path == CriticalPath("align.code", "output_register", 1.3, 4.5, 2, ["add.total"])
    assert str(placement.path) == (
        "align.code -> output_register: logic 1.3 ns, routing 4.5 ns, 2 levels, via add.total"
    )


@pytest.mark.parametrize("missing", ["fmax", "critical_paths"])
def test_report_without_a_clocked_path_is_refused(missing: str) -> None:
    report = deepcopy(NEXTPNR_REPORT)
    report[missing] = type(report[missing])()
    with pytest.raises(ValueError, match="no path between two registers"):
        read_report(report)


def test_target_gives_the_options_of_nextpnr() -> None:
    target = Target(speed=8)
    assert " ".join(target.options).startswith("--85k --package CABGA756 --speed 8 --freq 400 ")
    assert str(target) == "Lattice LFE5U-85F, CABGA756, speed grade 8"
    with pytest.raises(ValueError, match="speed: got 5, must be one of"):
        Target(speed=5)
