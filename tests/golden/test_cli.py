"""The command line: tables that are right to the bit, and errors that name the given value."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import golden
from golden import cli
from golden.cli import main

HEADER = ["format", "code", "sign", "exponent field", "fraction", "value", "error in ulp"]


def table(capsys, *arguments):
    """Rows by format name; columns are two spaces or more apart."""
    assert main(arguments) == 0
    header, *rows = ([cell for cell in line.split("  ") if cell] for line in capsys.readouterr().out.splitlines())
    cells = [[cell.strip() for cell in row] for row in rows]
    return [cell.strip() for cell in header], {row[0]: row[1:] for row in cells}


def shown(capsys, *arguments):
    header, rows = table(capsys, "show", *arguments)
    assert header == HEADER
    return rows


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_show_exact_value_has_every_formats_fields(capsys):
    assert shown(capsys, "1.5") == {
        "float32": ["0x3fc00000", "0", "01111111", "1" + "0" * 22, "1.5", "0"],
        "float16": ["0x3e00", "0", "01111", "1000000000", "1.5", "0"],
        "bfloat16": ["0x3fc0", "0", "01111111", "1000000", "1.5", "0"],
        "cbfloat16": ["0x3f00", "0", "011111", "100000000", "1.5", "0"],
        "cb16": ["0x5500", "0", "101010", "100000000", "1.5", "0"],
        "float8_e4m3fn": ["0x3c", "0", "0111", "100", "1.5", "0"],
        "float8_e5m2": ["0x3e", "0", "01111", "10", "1.5", "0"],
        "float8_e4m3fnuz": ["0x44", "0", "1000", "100", "1.5", "0"],
        "float8_e5m2fnuz": ["0x42", "0", "10000", "10", "1.5", "0"],
        "float6_e2m3fn": ["0x0c", "0", "01", "100", "1.5", "0"],
        "float6_e3m2fn": ["0x0e", "0", "011", "10", "1.5", "0"],
        "float4_e2m1fn": ["0x3", "0", "01", "1", "1.5", "0"],
        "dlfloat16": ["0x3f00", "0", "011111", "100000000", "1.5", "0"],
    }


def test_show_tenth_is_exactly_one_tenth_and_errors_are_in_ulp(capsys):
    # 0.1 is 1.6 * 2^-4, and 0.6 * 512 is 307.2: the fraction 307 of 1-6-9 is 0.2 ulp below.
    rows = shown(capsys, "0.1")
    assert rows["cbfloat16"] == ["0x3733", "0", "011011", "100110011", "0.0999755859375", "-0.2"]
    assert rows["float16"][-2:] == ["0.0999755859375", "-0.4"]
    assert rows["bfloat16"][-2:] == ["0.10009765625", "+0.2"]
    assert rows["float32"][-2:] == ["~0.10000000149011612", "+0.2"]


def test_show_value_above_a_midpoint_by_less_than_float64_sees_rounds_up(capsys):
    digits = "1.0009765625" + "0" * 40 + "1"  # 1 + 2^-10, a midpoint of 1-6-9, and a little more
    assert shown(capsys, digits, "--format", "cbfloat16")["cbfloat16"][0] == "0x3e01"
    assert shown(capsys, "1.0009765625", "--format", "cbfloat16")["cbfloat16"][0] == "0x3e00"


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        ("inf", "0x7e00", "inf"),
        ("-inf", "0xfe00", "-inf"),
        ("Infinity", "0x7e00", "inf"),
        ("nan", "0x7f00", "quiet NaN"),
        ("-NaN", "0x7f00", "quiet NaN"),
        ("0", "0x0000", "0"),
        ("-0.0", "0x8000", "-0"),
        ("-6", "0xc300", "-6"),
        ("+6", "0x4300", "6"),
        ("1/2", "0x3c00", "0.5"),
        ("4290772992", "0x7dff", "4290772992"),
    ],
)
def test_show_special_and_signed_values_have_their_codes(capsys, value, code, text):
    row = shown(capsys, value)["cbfloat16"]
    assert (row[0], row[4], row[5]) == (code, text, "0")


def test_show_value_out_of_range_is_overflow_or_a_subnormal(capsys):
    assert shown(capsys, "1e400")["float32"][-2:] == ["inf", "overflow"]
    rows = shown(capsys, "-1e-40")
    assert rows["float32"] == [
        "0x800116c2",
        "1",
        "0" * 8,
        "00000010001011011000010",
        "~-9.9999461011147596e-41",
        "+0.3846",
    ]
    assert rows["bfloat16"][0] == "0x8001"
    assert rows["cb16"] == ["0x8000", "1", "000000", "000000000", "-0", "+1.126e-25"]


def test_show_code_is_read_in_every_format_that_it_fits(capsys):
    rows = shown(capsys, "0x5900")
    assert [rows[name][4] for name in ("float16", "bfloat16", "cbfloat16", "cb16")] == [
        "160",
        "2251799813685248",
        "12288",
        "6",
    ]
    assert rows["float32"][:3] == ["0x00005900", "0", "00000000"]
    assert {row[-1] for row in rows.values()} == {"0"}
    assert list(shown(capsys, "0x7f800001")) == ["float32"]
    assert shown(capsys, "0x7f800001")["float32"][4] == "signalling NaN"


def test_show_code_with_a_format_gives_its_value_in_all(capsys):
    rows = shown(capsys, "0x5900", "--format", "cb16")
    assert {name: row[0] for name, row in rows.items()} == {
        "float32": "0x40c00000",
        "float16": "0x4600",
        "bfloat16": "0x40c0",
        "cbfloat16": "0x4300",
        "cb16": "0x5900",
        "float8_e4m3fn": "0x4c",
        "float8_e5m2": "0x46",
        "float8_e4m3fnuz": "0x54",
        "float8_e5m2fnuz": "0x4a",
        "float6_e2m3fn": "0x1c",
        "float6_e3m2fn": "0x16",
        "float4_e2m1fn": "0x7",
        "dlfloat16": "0x4300",
    }
    assert {row[4] for row in rows.values()} == {"6"}
    # A value that others do not hold: the error is against the code's value.
    assert shown(capsys, "0x3f801000", "--format", "fp32")["bfloat16"][-2:] == ["1", "-0.0625"]


def test_show_signalling_code_keeps_it_in_its_format_and_quiets_it_elsewhere(capsys):
    rows = shown(capsys, "0x7e01", "--format", "cbfloat16")
    assert rows["cbfloat16"][0] == "0x7e01"
    assert rows["cbfloat16"][4] == "signalling NaN"
    assert rows["float32"][0] == "0x7fc00000"


def test_show_value_with_a_format_gives_that_row_only(capsys):
    assert list(shown(capsys, "0.1", "--format", "bf16")) == ["bfloat16"]


def test_formats_prints_the_table_of_the_contract(capsys):
    header, rows = table(capsys, "formats")
    assert header == ["name", "alias", "s/e/f", "bias", "max finite", "min normal", "min subnormal", "inf", "nan"]
    assert rows == {
        "float32": ["fp32", "1/8/23", "127", "~3.4028234663852886e+38", "2^-126", "2^-149", "0x7f800000", "0x7fc00000"],
        "float16": ["fp16", "1/5/10", "15", "65504", "2^-14", "2^-24", "0x7c00", "0x7e00"],
        "bfloat16": ["bf16", "1/8/7", "127", "~3.3895313892515355e+38", "2^-126", "2^-133", "0x7f80", "0x7fc0"],
        "cbfloat16": ["-", "1/6/9", "31", "4290772992", "2^-30", "2^-39", "0x7e00", "0x7f00"],
        "cb16": ["-", "1/6/9", "42", "2095104", "2^-41", "2^-50", "0x7e00", "0x7f00"],
        "float8_e4m3fn": ["-", "1/4/3", "7", "448", "2^-6", "2^-9", "-", "0x7f"],
        "float8_e5m2": ["-", "1/5/2", "15", "57344", "2^-14", "2^-16", "0x7c", "0x7e"],
        "float8_e4m3fnuz": ["-", "1/4/3", "8", "240", "2^-7", "2^-10", "-", "0x80"],
        "float8_e5m2fnuz": ["-", "1/5/2", "16", "57344", "2^-15", "2^-17", "-", "0x80"],
        "float6_e2m3fn": ["-", "1/2/3", "1", "7.5", "2^0", "2^-3", "-", "-"],
        "float6_e3m2fn": ["-", "1/3/2", "3", "28", "2^-2", "2^-4", "-", "-"],
        "float4_e2m1fn": ["-", "1/2/1", "1", "6", "2^0", "2^-1", "-", "-"],
        "dlfloat16": ["-", "1/6/9", "31", "8573157376", "2^-31 + 2^-40", "-", "-", "0x7fff"],
    }


def test_show_of_what_a_format_has_not_says_so_in_the_place_of_an_error(capsys):
    def last(value):
        return {name: row[-2:] for name, row in shown(capsys, value).items() if name.startswith("float8_e4m3fn")}

    assert last("-inf") == {name: ["quiet NaN", "no infinity"] for name in ("float8_e4m3fn", "float8_e4m3fnuz")}
    assert last("-1e9") == {name: ["quiet NaN", "overflow"] for name in ("float8_e4m3fn", "float8_e4m3fnuz")}
    assert last("-0.0") == {"float8_e4m3fn": ["-0", "0"], "float8_e4m3fnuz": ["0", "0"]}
    assert shown(capsys, "-inf")["float4_e2m1fn"][-2:] == ["-6", "no infinity"]
    assert shown(capsys, "12")["float4_e2m1fn"][-2:] == ["6", "-3"]
    assert shown(capsys, "nan")["float4_e2m1fn"][-2:] == ["0", "no NaN"]
    assert shown(capsys, "0xf", "--format", "float4_e2m1fn")["cbfloat16"][0] == "0xc300"


@pytest.mark.parametrize("value", ["abc", "", "1.5.2", "1/0", "--5x", "0x", "0xg", "1_0", "1e9_999", "in f", "+-1"])
def test_show_of_no_number_names_argument_given_and_allowed(capsys, value):
    message = refused(capsys, "show", "--", value)
    assert f"argument value: got {value!r}, must be a decimal value (1.5, -0.0, 1e-40), a quotient (1/3)" in message


def test_show_of_values_and_codes_out_of_bounds_names_the_bounds(capsys):
    message = "argument value: got '1e99999', must have a power of ten from -9999 to 9999"
    assert message in refused(capsys, "show", "1e99999")
    message = "argument value: got code 0x100000000, must be 0x0 to 0xffffffff"
    assert message in refused(capsys, "show", "0x100000000")
    message = "argument value: got code 0x10000, must be 0x0 to 0xffff for cb16"
    assert message in refused(capsys, "show", "0x10000", "--format", "cb16")


def test_unknown_format_or_command_names_what_is_allowed(capsys):
    message = (
        "argument --format: got 'fp8', must be one of float32, float16, bfloat16, cbfloat16, cb16, float8_e4m3fn, "
        "float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float6_e2m3fn, float6_e3m2fn, float4_e2m1fn, dlfloat16, "
        "fp32, fp16, bf16"
    )
    assert message in refused(capsys, "show", "1", "--format", "fp8")
    assert "show" in refused(capsys, "hide")
    assert "{show,explain,identify,formats}" in refused(capsys)


@pytest.mark.parametrize(("argument", "status"), [("1.5", 0), ("six", 2)])
def test_imported_program_ends_with_the_status_of_the_command(monkeypatch, capsys, argument, status):
    monkeypatch.setattr(sys, "argv", ["golden", "show", argument])
    monkeypatch.delitem(sys.modules, "golden.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("golden.__main__")
    assert ended.value.code == status
    assert ("0x3fc00000" in capsys.readouterr().out) == (status == 0)


@pytest.mark.parametrize("count", ["0", "1000001", "many"])
def test_explain_of_a_value_too_many_times_names_the_bounds(capsys, count):
    said = refused(capsys, "explain", f"1,2x{count}", "1")
    assert f"got '2x{count}', must have a number from 1 to 1000000 behind the x" in said


def test_value_a_million_times_is_taken():
    assert len(cli._parse_values("1,2x1000000")) == 1_000_001


def test_module_runs_as_a_program_with_its_exit_status():
    root = Path(golden.__file__).resolve().parent.parent

    def run(*arguments):
        command = [sys.executable, "-m", "golden", *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)

    done = run("show", "-6", "--format", "cb16")
    assert done.returncode == 0
    assert "0xd900" in done.stdout
    wrong = run("show", "six")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "got 'six'" in wrong.stderr
    assert "Traceback" not in wrong.stderr
