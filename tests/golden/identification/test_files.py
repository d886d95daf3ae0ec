"""Probes written to a file, run elsewhere, and read again."""

import csv
import io

import numpy as np
import pytest

import golden
from golden import BF16, FP16, FP32
from golden.cli import main
from golden.identification.files import read_results, write_probes, write_results
from golden.identification.identify import all_probes
from golden.identification.probes import Probe


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
        (lambda results: [results[0].astype(np.uint64) << np.uint64(33), *results[1:]], "r0: got code 0x"),
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
        (["--operand", "bfloat16", "--write", "x.npz", "--result", "float32"], "--result: got float32 beside --write"),
        (["--operand", "bfloat16", "--write", "x.npz", "--seed", "-1"], "argument --seed: got -1, must be 0 or more"),
    ],
)
def test_identify_command_with_wrong_arguments_says_what_to_give(capsys, arguments, match):
    with pytest.raises(SystemExit):
        main(["identify", *arguments])
    assert match in capsys.readouterr().err


# Results of two products, of shapes (1, 2) and (1, 1).
FEW = [Probe("few", np.zeros((1, 3), np.uint16), np.zeros((3, columns), np.uint16)) for columns in (2, 1)]
HEADER = 'matrix,rows,columns,"codes in hexadecimal, row by row"'


def packed(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def single(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def flipped(content):
    """Return a file with another byte in the data of its first array."""
    at = content.index(b"r0.npy") + 40
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


TWO = packed(r0=np.ones((1, 2), np.uint32), r1=np.ones((1, 1), np.uint32))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "which is no .npz file, or only a part of one"),
        (TWO[: len(TWO) // 2], "which is no .npz file, or only a part of one"),
        (single(np.ones((1, 2), np.uint32)), "which is no .npz file, or only a part of one"),
        (b"junk" + TWO, "cannot be read"),
        (flipped(TWO), "results.npz, r0: cannot be read"),
        (packed(r0=np.array([[None, 1]]), r1=np.ones((1, 1), np.uint32)), "r0: cannot be read (Object arrays"),
        (packed(a0=np.ones((1, 2), np.uint32)), "without r0, must have r0 to r1; the file begins with a0"),
        (packed(r0=np.ones((1, 2), np.float32)), "r0: got results in float32, must be unsigned codes of float32"),
        (packed(r0=np.ones((2, 1), np.uint32)), "r0: got codes of shape (2, 1), must be (1, 2): a0 times b0"),
    ],
    ids=["empty", "cut", "npy", "junk", "flipped byte", "objects", "another file", "values", "shape"],
)
def test_identify_bad_npz_is_refused_with_its_array(tmp_path, capsys, monkeypatch, content, found):
    assert found in refusal(tmp_path / "results.npz", content, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], "without r0, must have r0 to r1; the file begins with nothing"),
        (
            [HEADER, "r0 1 2 3f800000 0"],
            "without r0, must have r0 to r1; the file begins with matrix, r0 1 2 3f800000 0",
        ),
        ([HEADER, "r0,1,2,3f800000 -1"], "row 2, r0: got the code '-1', must be in hexadecimal without a sign, 0 to"),
        ([HEADER, "r0,1,2,3f800000 1ffffffff"], "row 2, r0: got the code '1ffffffff'"),
        ([HEADER, "", "r0,1,2,0 0", "r1,1,1,3.00E+10"], "row 4, r1: got the code '3.00E+10'"),
        ([HEADER, "r0,1,2,3f800000"], "row 2, r0: got 1 codes, must be 1 x 2"),
        ([HEADER, "r0"], "row 2, r0: got [] behind the name, must be the numbers of rows and of columns"),
        ([HEADER, "r0,1,two,0 0"], "row 2, r0: got ['1', 'two'] behind the name"),
        ([HEADER, "r0,1,2,0 0", "r0,1,2,0 0"], "row 3, r0: got r0 for the second time"),
        ([HEADER, "r0,1,2,0", "r0,1,3,0"], "row 3, r0: got ['1', '3'] behind the name, must be ['1', '2'] as in"),
        ([HEADER, "r0,1,2,0 -0"], "row 2, r0: got the code '-0', must be in hexadecimal without a sign"),
        ([HEADER, "r0,1,2,0 3_f8"], "row 2, r0: got the code '3_f8'"),
        ([HEADER, "r0,1,2,0 \u0663f"], "row 2, r0: got the code '\u0663f'"),
        ([HEADER, "r0,2,1,0 0", "r1,1,1,0"], "r0: got codes of shape (2, 1), must be (1, 2)"),
    ],
)
def test_identify_bad_csv_is_refused_with_its_row(tmp_path, capsys, monkeypatch, lines, found):
    assert found in refusal(tmp_path / "results.csv", "\n".join(lines).encode(), capsys, monkeypatch)


def test_identify_csv_in_utf_16_is_refused(tmp_path, capsys, monkeypatch):
    text = f"{HEADER}\nr0,1,2,0 0\n".encode("utf-16")
    assert "no text in UTF-8" in refusal(tmp_path / "results.csv", text, capsys, monkeypatch)


def refusal(path, content, capsys, monkeypatch):
    """Return the message with which the program ends with 2."""
    path.write_bytes(content)
    monkeypatch.setattr("golden.cli.all_probes", lambda *_: FEW)
    with pytest.raises(SystemExit) as ended:
        main(["identify", "--read", str(path), "--operand", "bfloat16", "--result", "float32"])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert f"error: argument --read: {path}" in shown.replace("--read: got", "--read:")
    return shown


def test_identify_csv_of_probes_is_read_by_other_programs(tmp_path):
    """A cell of a spreadsheet has at most 32,767 characters, a line 16,384 cells, a field of csv 131,072 characters."""
    path, limit = tmp_path / "probes.csv", csv.field_size_limit()
    asked = all_probes(golden.FLOAT8_E4M3FN, 0)
    write_probes(path, asked)
    found = {}
    with path.open(newline="") as file:
        for name, rows, columns, *codes in list(csv.reader(file))[1:]:
            found.setdefault(name, (int(rows), int(columns), []))[2].extend(int(code, 16) for code in codes)
            assert len(codes) < 16_384
    for number, each in enumerate(asked):
        rows, columns, codes = found[f"a{number}"]
        np.testing.assert_array_equal(np.reshape(codes, (rows, columns)), each.a)
    write_results(tmp_path / "results.csv", [each.a for each in asked])
    as_results = [Probe("", each.a, np.zeros((each.a.shape[1], each.a.shape[1]), np.uint8)) for each in asked]
    read = read_results(tmp_path / "results.csv", as_results, golden.FLOAT8_E4M3FN)
    assert all((given == each.a).all() for given, each in zip(read, asked, strict=True))
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEADER}\r\nr0,1,2,3f800000 BF800000\r\nr1,1,1,0\r\n",
        "matrix;rows;columns;codes in hexadecimal, row by row\r\nr0;1;2;3f800000 bf800000\r\nr1;1;1;00000000;;\r\n",
        'r1\t"1"\t1\t0\t\t\n\n"r0"\t"1"\t"2"\t"3f800000\nbf800000"\n\t\t\t\n',
        "matrix,rows,columns,codes,,,\nr0,1,2,0x3f800000,0xbf800000,,\nr1,1,1,0,,,",
        "matrix,rows,columns,codes\nr0,1,2,3f800000\nr1,1,1,0\nr0,1,2,bf800000\n",
    ],
    ids=["byte order mark", "semicolons", "tabs and quotes", "cells", "several lines"],
)
def test_identify_csv_from_a_spreadsheet_is_read(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_bytes(text.encode())
    given = read_results(path, FEW, FP32)
    np.testing.assert_array_equal(given[0], np.array([[0x3F800000, 0xBF800000]], np.uint32))
    np.testing.assert_array_equal(given[1], np.zeros((1, 1), np.uint32))


@pytest.mark.parametrize(("out", "dtype"), [(FP32, ">i4"), (FP32, np.int32), (FP16, np.int16)])
def test_identify_signed_codes_in_a_file_are_the_same_bits(tmp_path, out, dtype):
    path = tmp_path / "results.npz"
    wanted = [golden.encode(values, out) for values in ([[1.0, -2.0]], [[-1.5]])]
    write_results(path, [codes.view(f"i{codes.itemsize}").astype(dtype) for codes in wanted])
    for given, codes in zip(read_results(path, FEW, out), wanted, strict=True):
        np.testing.assert_array_equal(given, codes, strict=True)


@pytest.mark.parametrize(("out", "dtype"), [(FP32, np.int64), (FP16, np.int32), (FP32, np.int16)])
def test_identify_signed_codes_of_another_width_in_a_file_are_refused(tmp_path, out, dtype):
    path = tmp_path / "results.npz"
    write_results(path, [np.ones((1, 2), dtype), np.ones((1, 1), dtype)])
    match = (
        f"r0: got results in {np.dtype(dtype)}, must be unsigned codes of {out} in uint{out.width}, or the same bits"
    )
    with pytest.raises(TypeError, match=match):
        read_results(path, FEW, out)


@pytest.mark.parametrize("route", ["--write", "--read"])
def test_identify_files_with_a_wide_operand_are_refused_as_by_the_function(tmp_path, capsys, route):
    with pytest.raises(ValueError, match="must have at most 19 bits") as refused:
        golden.identify(np.matmul, operand="float32")
    path = tmp_path / "probes.npz"
    with pytest.raises(SystemExit):
        main(["identify", route, str(path), "--operand", "float32", *(["--result", "float32"] * (route == "--read"))])
    assert str(refused.value) in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize("operand", ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])
def test_identify_files_with_operands_of_few_bits_print_a_model(tmp_path, capsys, operand):
    path, fmt = tmp_path / "results.npz", golden.format_named(operand)
    assert main(["identify", "--write", str(tmp_path / "probes.npz"), "--operand", operand]) == 0
    asked = all_probes(fmt, 0)
    rule = golden.accumulators["nvidia_hopper_fp8"]
    write_results(path, [golden.matmul(each.a, each.b, operand=fmt, reduction=rule) for each in asked])
    assert main(["identify", "--read", str(path), "--operand", operand, "--result", "float32"]) == 0
    assert "The device computes (nvidia_hopper_fp8)" in capsys.readouterr().out
