"""The lab's runs on a card, in small."""

import re
import sys
import types

import pytest
import torch

from golden.torch.examples.python_gpt import Sizes
from golden.torch.products.gpu import devices
from lab.gpu import comparison, sanitized, speed, whole
from tests.cuda.device.card import IN_MEMORY, faulty

TINY = Sizes(layers=1, width=8, heads=2, context=4, batch=1)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(comparison, "SHAPES", ((7, 33, 12),))
    if IN_MEMORY:
        monkeypatch.setattr(comparison, "MODES", ("nearest_even",))
        monkeypatch.setattr(sanitized, "MODES", ("nearest_even",))
        monkeypatch.setattr(sanitized, "SHAPES", ((5, 33, 9), (9, 21, 6)))


@pytest.fixture(autouse=True)
def cuda_of_the_lab(monkeypatch):
    if IN_MEMORY:  # which has no streams to wait for, and no memory to give back
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


def test_whole_comparison_of_a_right_card_finds_nothing(small):
    found = comparison.compare(1500, visible=False)
    assert found.wrong == []
    assert found.outputs >= 1500
    assert found.products == len({case for case, _ in zip(comparison.cases(), range(found.products), strict=False)})


def test_whole_comparison_of_a_faulty_card_names_the_product(small):
    with faulty():
        found = comparison.compare(10**6, visible=False)
    assert len(found.wrong) == 40
    assert "half='cbfloat16', level=0" in found.wrong[0]
    assert "and must be 0x" in found.wrong[0]


def breaking(monkeypatch, times):
    """Make the next `times` launches fail."""
    card, left = devices.device_of(torch.device("cuda", 0)), iter(range(times))
    launch = card.launch

    def run(*given):
        if next(left, None) is not None:
            raise RuntimeError("an illegal memory access was encountered")
        launch(*given)

    monkeypatch.setattr(card, "launch", run)


def test_whole_comparison_notes_a_product_that_raises_and_goes_on(small, monkeypatch):
    breaking(monkeypatch, 1)
    found = comparison.compare(1500, visible=False)
    assert found.outputs >= 1500
    (told,) = found.wrong
    assert "half='cbfloat16', level=0" in told
    assert told.endswith("RuntimeError: an illegal memory access was encountered")


def test_what_a_sanitizer_runs_notes_every_operator_that_raises(small, capsys, monkeypatch):
    monkeypatch.setattr(sanitized, "skipped", lambda _: False)
    breaking(monkeypatch, 10**6)
    assert sanitized.main() == 1
    told = capsys.readouterr().out
    for name in ("Case(half='float8_e5m2'", "convolution", "transposed convolution", "softmax", "rounding"):
        assert re.search(rf"^{re.escape(name)}.*: RuntimeError: an illegal memory access", told, re.M)


def test_comparison_that_lasts_too_long_ends_with_what_it_has(small):
    assert comparison.compare(10**12, 0.0, visible=False).outputs == 0


def test_what_a_sanitizer_runs_has_the_bits_of_the_cpu_and_finds_a_fault(small, capsys, monkeypatch):
    monkeypatch.setattr(sanitized, "skipped", lambda _: False)
    assert sanitized.main() == 0
    assert " products compared, 0 differ" in capsys.readouterr().out
    with faulty():
        assert sanitized.main() == 1
    assert "convolution" in capsys.readouterr().out


def test_contests_time_every_contestant_as_often_as_asked():
    entries = [*speed.products(8, 3), *speed.rounding(64, 3), *speed.training(TINY, 10, 3)]
    assert [(entry.name, entry.error) for entry in entries if entry.error or len(entry.seconds) != 3] == []
    assert {"cuBLAS, fp32", *speed.CHAINS, "copy", "rounding to cbfloat16", "fp32"} <= {each.name for each in entries}
    assert sum(entry.goal is not None for entry in entries) == 4 + 3 + 3


def test_mptorch_is_timed_where_it_is_installed_and_left_out_where_not(monkeypatch, capsys):
    asked = []
    library, quant = types.ModuleType("mptorch"), types.ModuleType("mptorch.quant")
    library.BinaryK = lambda width, precision: (width, precision)
    quant.SplitMac, quant.FusedMac = (lambda *formats: ("split", *formats)), (lambda *formats: ("fused", *formats))
    quant.qmatmul = lambda a, b, formats: asked.append((a.device.type, formats))
    monkeypatch.setitem(sys.modules, "mptorch", library)
    monkeypatch.setitem(sys.modules, "mptorch.quant", quant)
    entries = speed.mptorch(8, 2)
    assert [(entry.name, len(entry.seconds), entry.goal) for entry in entries] == [
        ("MPTorch", 2, None), ("MPTorch, fused", 2, None), ("cbfloat16, level 1", 2, 30.0),
    ]  # fmt: skip
    assert set(asked) == {("cuda", ("split", (16, 10), (16, 10))), ("cuda", ("fused", (16, 10)))}
    monkeypatch.setitem(sys.modules, "mptorch", None)
    assert speed.mptorch(8, 2) == []
    assert "MPTorch is left out: ModuleNotFoundError" in capsys.readouterr().out


def test_bench_keeps_every_repetition_with_goals(monkeypatch, tmp_path):
    monkeypatch.setattr(speed.card, "skipped", lambda _: False)
    given = ["--size", "8", "--values", "64", "--repeats", "2", "--into", str(tmp_path)]
    assert speed.main([*given, "--contests", "products", "rounding"]) == 0
    found = speed.card.earlier("gpu-speed", tmp_path)["contests"]
    assert set(found) == {"products", "rounding"}
    rows = {row["name"]: row for row in found["products"]["rows"]}
    assert len(rows["float16, level 1"]["seconds"]) == 2
    assert rows["float16, level 1"]["goal"] == 1.3
    assert rows["float16, level 1"]["met"] in (True, False)


def test_part_of_the_whole_is_kept_beside_the_others(small, monkeypatch, tmp_path):
    monkeypatch.setattr(whole.card, "skipped", lambda _: False)
    assert whole.main(["--parts", "products", "--outputs", "500", "--into", str(tmp_path)]) == 0
    monkeypatch.setitem(whole.PARTS, "sanitizer", lambda _: {"passed": False, "memcheck": "exit status 3"})
    assert whole.main(["--parts", "sanitizer", "--into", str(tmp_path)]) == 1
    parts = whole.card.earlier("gpu-card", tmp_path)["parts"]
    assert {name: part["passed"] for name, part in parts.items()} == {"products": True, "sanitizer": False}
