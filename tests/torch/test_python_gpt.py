"""The GPT-2 example: shapes, causality and initial values of its model, and the report on several precisions."""

import math

import pytest
import torch

from golden.torch.examples.python_gpt import PythonGpt, Sizes, main

SIZES = Sizes(layers=2, width=32, heads=4, context=6)


def test_model_gives_logits_of_letters_that_depend_on_no_later_one():
    torch.manual_seed(3)
    model = PythonGpt(SIZES, letters=50)
    codes = torch.randint(50, (2, 6))
    logits = model(codes)
    assert logits.shape == (2, 6, 50)
    changed = codes.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 50
    assert (model(changed)[:, :4] == logits[:, :4]).all()
    assert (model(changed)[:, 4:] != logits[:, 4:]).any()


def test_initial_weights_have_the_deviations_of_gpt_2():
    torch.manual_seed(3)
    named = dict(PythonGpt(SIZES).named_parameters())
    for name, each in named.items():
        if "norm" in name or "before" in name:
            assert (each == (0 if name.endswith("bias") else 1)).all(), name
        elif name.endswith("bias"):
            assert (each == 0).all(), name
        else:
            share = 1 / math.sqrt(4) if "out." in name or "narrow." in name else 1  # of two sums in each of two layers
            assert abs(each.std().item() / (0.02 * share) - 1) < 0.15, name
    assert {name.rpartition(".")[0].rpartition(".")[2] for name in named} >= {"wide", "narrow", "out", "qkv"}
    assert named["blocks.0.wide.weight"].shape == (128, 32)


def test_short_run_tells_of_each_precision_and_writes_the_page(tmp_path, capsys):
    sizes = {"layers": 1, "width": 16, "heads": 2, "context": 16, "batch": 2, "steps": 3, "observe": 2}
    given = [f"--{name}={size}" for name, size in sizes.items()]
    names = ["cbfloat16 level 0", "float16 level 1"]
    folder = tmp_path / "runs"
    main(["--short", "--device", "CPU", "--folder", str(folder), "--only", *names, *given])
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [row[0].strip() for row in rows] == names
    assert [row[3].strip() for row in rows] == ["2^31", "2^15"]
    assert all(7 < float(cell) < 9 for row in rows for cell in row[1:3])  # bits for one of 256 bytes, at first
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(name.replace(" ", "_") in page for name in names)


def test_folder_that_exists_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--folder", str(tmp_path)])
    assert f"--folder: {tmp_path} exists; delete it, or choose another, to run again" in capsys.readouterr().err
