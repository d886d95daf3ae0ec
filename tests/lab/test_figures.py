"""The pictures show the measurements: the known effects are in the numbers, and every picture is drawn."""

import numpy as np
import pytest

from lab.figures import blocks, gradient_exponents, loss_scale_window, product_error, swamping, weight_updates
from lab.figures.__main__ import NAMES, main

# Used by every test here: other tests of the same process have other settings.
from tests.torch.conftest import defaults_of_the_process, seed, threads_as_before  # noqa: F401


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    monkeypatch.setattr(swamping, "_LENGTHS", (16, 8192))
    monkeypatch.setattr(product_error, "_LENGTHS", (64, 512))
    monkeypatch.setattr(gradient_exponents, "_STEPS", 2)
    monkeypatch.setattr(weight_updates, "_STEPS", 400)
    monkeypatch.setattr(loss_scale_window, "_STEPS", 20)
    monkeypatch.setattr(loss_scale_window, "SEEDS", 1)
    monkeypatch.setattr(loss_scale_window, "EXPONENTS", (-28, 4, 36))


def test_swamping_long_chain_stalls_and_chunks_prevent_it():
    found = swamping.measure()["cbfloat16"]
    chain, short, total = (np.median(found[name], axis=1) for name in found)
    # 1-6-9 stalls at 4096: half of a sum of 8192.
    assert chain[1] == pytest.approx(0.5, abs=0.02)
    assert [short[1], total[1]] == pytest.approx([1, 1], abs=0.02)


def test_product_error_grows_with_the_level():
    for errors in product_error.measure().values():
        level_0, level_1, level_2 = (np.median(errors[level][1]) for level in range(3))
        assert 100 * level_0 < level_1 < level_2


def test_loss_scale_window_fp16_is_the_narrow_one():
    found = loss_scale_window.measure()
    untrained = np.log(10)
    assert found["float16"]["4"][0] < 0.8 * untrained
    assert min(found["float16"]["-28"][0], found["float16"]["36"][0]) > 0.95 * untrained
    assert max(each[0] for each in found["bfloat16"].values()) < 0.8 * untrained


def test_gradient_exponents_all_are_counted():
    found = gradient_exponents.measure()
    weights = 2 * (64 * 64 + 64 + 64 * 10 + 10)
    assert sum(found["weights"]) + found["zeros"][0] == weights


def test_weight_updates_are_lost_to_nearest_and_kept_stochastically():
    found = weight_updates.measure()
    gained = found["float32"]["nearest_even"][-1][0] - 1
    assert gained == pytest.approx(400 * 2.0**-13)
    for name in ("cbfloat16", "bfloat16"):
        assert set(found[name]["nearest_even"][-1]) == {1.0}
        assert np.mean(found[name]["stochastic"][-1]) - 1 == pytest.approx(gained, rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_figures_command_draws(name, tmp_path):
    assert main([name, "-o", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert (tmp_path / f"{name}.json").stat().st_size > 100


def test_figures_command_unknown_picture_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["swamp"])
    assert "NAME: got 'swamp', must be one of swamping" in capsys.readouterr().err


@pytest.mark.usefixtures("threads_as_before")
def test_blocks_command_measures_every_case(monkeypatch, capsys):
    monkeypatch.setattr(blocks, "_SEEDS", (1,))
    monkeypatch.setattr(blocks, "CASES", {name: blocks.CASES[name] for name in list(blocks.CASES)[-2:]})
    assert blocks.main(["--steps", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [*blocks.CASES]
    with pytest.raises(SystemExit):
        blocks.main(["--steps", "1", "--update-docs"])
    assert "--update-docs: must be given without --steps" in capsys.readouterr().err
