"""The comparison with other libraries judges as it says: every wrong bit counts, and golden is judged itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import golden
from golden import BF16, CBFLOAT16
from golden.formats import HALF_FORMATS
from lab.speed import command, counting, libraries, measure, modes, observing, observing_libraries, quantise, small
from lab.speed.__main__ import main
from lab.speed.contestants import contestants

ALL = {(each.name, each.operand): each for each in contestants(threads=2)}
GFLOAT = "gfloat.round_ndarray, a loop"


@pytest.fixture(autouse=True)
def small_products(monkeypatch):
    monkeypatch.setattr(measure, "_JUDGED", (8, 300, 8))
    monkeypatch.setattr(measure, "_LARGEST", (16, 256, 16))
    monkeypatch.setattr(quantise, "VALUES", 10_000)


@pytest.mark.parametrize("key", [key for key in ALL if key[0].startswith("golden")], ids=str)
def test_count_wrong_golden_has_none(key):
    assert measure.count_wrong(ALL[key]) == (0, 64)
    measure.same_as_reference(ALL[key], count=2)


@pytest.mark.parametrize("fmt", HALF_FORMATS, ids=str)
def test_count_wrong_library_with_one_rounding_per_step_has_none(fmt):
    assert measure.count_wrong(ALL[GFLOAT, fmt]) == (0, 64)


def test_count_wrong_library_that_rounds_products_has_many():
    assert measure.count_wrong(ALL["bfloat16 of ml_dtypes, a loop", BF16])[0] > 32


def test_count_wrong_every_spoiled_bit_counts():
    honest = ALL["golden, level 2", CBFLOAT16]

    def spoiled(result):
        values = honest.values(result).copy()
        values[1, 2] = np.nextafter(values[1, 2], np.float32(np.inf))
        values[3, 4] = -values[3, 4]
        return values

    assert measure.count_wrong(replace(honest, values=spoiled)) == (2, 64)


def test_same_as_reference_wrong_golden_is_an_error(monkeypatch):
    honest = golden.matmul
    monkeypatch.setattr(golden, "matmul", lambda *given, **named: honest(*given, **named) ^ 1)
    with pytest.raises(AssertionError, match="output 0 of golden, level 1: 0x"):
        measure.same_as_reference(ALL["golden, level 1", CBFLOAT16], count=2)


def test_speed_command_writes_tables_and_picture(tmp_path, capsys):
    assert main(["--repetitions", "1", "-o", str(tmp_path)]) == 0
    table = capsys.readouterr().out
    for fmt in HALF_FORMATS:
        assert f"| **golden.quantize** | {fmt} |" in table
    assert "| **golden, level 2, 2 threads** | bfloat16 | sums in bfloat16, chunks of 32 |" in table
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.md", "speed.svg"]


def test_speed_command_no_repetitions_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["--repetitions", "0"])
    assert "--repetitions: got 0, must be at least 1" in capsys.readouterr().err


@pytest.fixture
def short_modes(monkeypatch):
    monkeypatch.setattr(modes, "_TIMED", (8, 16, 8))
    monkeypatch.setattr(modes, "_JUDGED", (2, 40, 3))
    monkeypatch.setattr(command, "HALF_FORMATS", (CBFLOAT16,))
    if not {"avx512", "avx2"} & set(golden.kernels.paths()):
        pytest.skip("this machine runs no vector path")


@pytest.mark.usefixtures("short_modes")
def test_speed_of_modes_command_shows_a_ratio_for_every_mode(capsys):
    assert modes.main(["--repetitions", "1"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert all(f"× {mode} |" in first for mode in golden.Rounding if str(mode) != "nearest_even")


@pytest.mark.usefixtures("short_modes")
def test_speed_of_modes_command_wrong_bit_in_one_mode_is_an_error(monkeypatch, capsys):
    honest = golden.matmul

    def spoiled(*given, **named):
        codes = honest(*given, **named)
        is_numpys = golden.kernel_info()["path"] == "numpy"
        return codes if is_numpys or named["rounding"] is not golden.Rounding.UP else codes ^ 1

    monkeypatch.setattr(golden, "matmul", spoiled)
    assert modes.main(["--repetitions", "1"]) == 1
    assert "| 6 of 42 |" in capsys.readouterr().out


@pytest.fixture
def one_small_model(monkeypatch):
    monkeypatch.setattr(observing, "MODELS", {"small": (1, 8, 2, 8, 2)})
    monkeypatch.setattr(observing, "_EVERY", 3)


def test_observing_command_times_a_training_whose_weights_are_the_same(one_small_model, capsys):
    assert observing.main(["--repetitions", "1"]) == 0
    assert "weights that differ none" in capsys.readouterr().err


def test_observing_that_changes_a_weight_is_noticed(one_small_model, monkeypatch):
    honest = observing.cstorch.observe

    def changing(model, every):
        next(model.parameters()).data[0, 0] += 1.0
        return honest(model, every)

    monkeypatch.setattr(observing.cstorch, "observe", changing)
    assert observing.main(["--repetitions", "1"]) == 1


def test_observing_row_tells_the_share_that_observing_adds():
    plain, observed = torch.nn.Linear(40, 25, bias=False), torch.nn.Linear(40, 25, bias=False)
    observed.load_state_dict(plain.state_dict())
    assert observing.row("m", plain, observed, ("40.0",), 1.05).cells == ("m", "1,000", "40.0", "5.0 %", "none")
    observed.weight.data[3, 4] *= -1
    assert observing.row("m", plain, observed, ("40.0",), 1.05).cells[-1] == "1 of 1,000"


@pytest.fixture
def one_small_library(monkeypatch, tmp_path):
    class Linear(torch.nn.Linear):
        def forward(self):
            return super().forward(torch.randn(2, 4)).square().mean()

    monkeypatch.setattr(libraries, "MODELS", {"small, 2 rows": lambda: Linear(4, 3)})
    monkeypatch.setattr(observing_libraries, "_FOLDER", tmp_path)
    return tmp_path


def test_observing_libraries_times_a_model_and_leaves_its_observations(one_small_library, capsys):
    assert observing_libraries.main(["--repetitions", "1"]) == 0
    told = capsys.readouterr()
    assert "weights that differ none" in told.err
    assert f"python -m golden.torch report {one_small_library / 'small'}" in told.err
    assert told.out.splitlines()[-1].startswith("| small, 2 rows | 15 |")
    assert len((one_small_library / "small" / "observations.jsonl").read_text().splitlines()) > 3


def test_observing_libraries_that_changes_a_weight_is_noticed(one_small_library, monkeypatch):
    honest = observing_libraries.cstorch.observe

    def changing(model, *given, **named):
        next(model.parameters()).data[0, 0] += 1.0
        return honest(model, *given, **named)

    monkeypatch.setattr(observing_libraries.cstorch, "observe", changing)
    assert observing_libraries.main(["--repetitions", "1"]) == 1


@pytest.fixture
def short_counting(monkeypatch):
    monkeypatch.setattr(counting, "_TIMED", (64, 16, 8))
    monkeypatch.setattr(counting, "_JUDGED", (33, 40, 3))
    monkeypatch.setattr(command, "HALF_FORMATS", (CBFLOAT16,))
    if not {"avx512", "avx2"} & set(golden.kernels.paths()):
        pytest.skip("this machine runs no vector path")


@pytest.mark.usefixtures("short_counting")
def test_speed_of_counting_command_shows_a_ratio_for_every_request(capsys):
    assert counting.main(["--repetitions", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(f"× {name} |" in lines[0] for name in counting.REQUESTS)
    assert all(line.endswith("| none |") for line in lines[2:])


@pytest.mark.usefixtures("short_counting")
def test_speed_of_counting_command_wrong_count_is_an_error(monkeypatch, capsys):
    honest = golden.matmul_values

    def spoiled(*given, **named):
        found = honest(*given, **named)
        if golden.kernel_info()["path"] == "numpy" or "counts" not in named:
            return found
        values, counts = found
        return values, replace(counts, promotions=counts.products)

    monkeypatch.setattr(golden, "matmul_values", spoiled)
    assert counting.main(["--repetitions", "1"]) == 1
    assert "| none |" not in capsys.readouterr().out


def test_measure_small_counts_every_wrong_number_of_a_call(monkeypatch):
    monkeypatch.setattr(small, "_LONG_ENOUGH", 1e-4)
    monkeypatch.setattr(small, "CALLS", {"linear": small.CALLS["linear, 1 x 8 by 8"]})
    rows = list(small.measure_small(1))
    assert [(row.names[1], row.wrong, row.judged) for row in rows] == [("0", 0, 8), ("1", 0, 8)]
    assert all(float(figure) > 0 for row in rows for figure in row.figures)

    def different():
        found = torch.ones(4, 2)
        found[1, 1:] = len(golden.kernel_info()["path"])  # another on NumPy
        return [found]

    monkeypatch.setattr(small, "CALLS", {"different": lambda: different})
    assert [(row.wrong, row.judged) for row in small.measure_small(1)] == [(1, 8)] * 2
