"""Probes written to a file, run elsewhere, and read again."""

import numpy as np
import pytest

import golden
from golden import BF16, FP32
from golden.cli import main
from golden.identification.files import write_results
from golden.identification.identify import all_probes


def as_the_device(asked):
    return [golden.matmul(each.a, each.b, operand=BF16, level=1, chunk=12) for each in asked]


@pytest.mark.turns
@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_identify_by_files_prints_the_model(tmp_path, capsys, kind):
    probes, results = tmp_path / f"probes.{kind}", tmp_path / f"results.{kind}"
    assert main(["identify", "--write", str(probes), "--operand", "bfloat16"]) == 0
    assert "a0 times b0" in capsys.readouterr().out
    asked = all_probes(BF16, 0)
    if kind == "npz":
        with np.load(probes) as stored:
            assert len(stored.files) == 2 * len(asked)
            np.testing.assert_array_equal(stored["b3"], asked[3].b)
    write_results(results, as_the_device(asked))
    assert main(["identify", "--read", str(results), "--operand", "bfloat16", "--result", "float32"]) == 0
    assert "inner=bfloat16 chunk=12 outer=float32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda results: results[:-1], "without r"),
        (lambda results: [results[0].T, *results[1:]] if results[0].shape[0] != 1 else results, "of shape"),
        (lambda results: [results[0].astype(np.uint64) << np.uint64(33), *results[1:]], "must be codes of float32"),
    ],
)
def test_identify_file_with_wrong_results_is_refused(tmp_path, capsys, change, match):
    asked = all_probes(BF16, 0)
    results = as_the_device(asked)
    results[0] = results[0] + 1
    broken = change([results[0][:3], *results[1:]] if match == "of shape" else results)
    path = tmp_path / "results.npz"
    write_results(path, broken)
    with pytest.raises(SystemExit):
        main(["identify", "--read", str(path), "--operand", "bfloat16", "--result", str(FP32)])
    assert match in capsys.readouterr().err


@pytest.mark.parametrize(
    ("operand", "finds"), [("cb16", True), pytest.param("cbfloat16", False, marks=pytest.mark.long)]
)
def test_identify_by_files_tells_bias_31_from_42(tmp_path, capsys, operand, finds):
    asked = all_probes(golden.format_named(operand), 0)
    path = tmp_path / "results.npz"
    write_results(path, [golden.matmul(each.a, each.b, operand="cb16", level=1, chunk=12) for each in asked])
    assert main(["identify", "--read", str(path), "--operand", operand, "--result", "float32"]) == 0
    assert ("inner=cb16 chunk=12" in capsys.readouterr().out) == finds


def test_identify_by_files_with_initial_values_says_where_they_join(tmp_path, capsys):
    probes, results = tmp_path / "probes.npz", tmp_path / "results.npz"
    given = ["--operand", "bfloat16", "--initial", "float32"]
    assert main(["identify", "--write", str(probes), *given]) == 0
    shown = capsys.readouterr().out
    asked = all_probes(BF16, 0, FP32)
    first = next(number for number, each in enumerate(asked) if each.initial is not None)
    assert f"start {first}-{len(asked) - 1}" in shown
    assert "otherwise to +0" in shown
    with np.load(probes) as stored:
        np.testing.assert_array_equal(stored[f"c{first}"], asked[first].initial)
    made = [golden.matmul(each.a, each.b, operand=BF16, level=1, initial=each.initial) for each in asked]
    write_results(results, made)
    assert main(["identify", "--read", str(results), "--result", "float32", *given]) == 0
    assert "The initial value is where the total starts." in capsys.readouterr().out
    made[first] = made[first] ^ np.uint32(1)
    write_results(results, made)
    assert main(["identify", "--read", str(results), "--result", "float32", *given]) == 0
    assert "No model was found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--operand", "bfloat16"], "must have --write FILE or --read FILE"),
        (["--operand", "bfloat16", "--write", "probes.txt"], "must be a file of type .npz or .csv"),
        (["--operand", "bfloat16", "--read", "missing.npz"], "argument --result: must be given"),
        (["--operand", "bfloat16", "--read", "missing.npz", "--result", "float32"], "missing.npz: No such file"),
    ],
)
def test_identify_command_with_wrong_arguments_says_what_to_give(capsys, arguments, match):
    with pytest.raises(SystemExit):
        main(["identify", *arguments])
    assert match in capsys.readouterr().err
