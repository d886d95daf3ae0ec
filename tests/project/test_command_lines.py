"""Bad input on the command lines: one line of ours and status 2, no traceback, and no half of a file left behind."""

import contextlib
import errno
import importlib
import io
import os
from pathlib import Path

import pytest

import golden.cli
import hdl.cli

CONVERT = ("verilog", "convert", "--source", "float32", "--destination", "cbfloat16", "-o")


@pytest.fixture
def quick_verilog(monkeypatch):
    monkeypatch.setattr(hdl.cli, "to_verilog", lambda unit, name: f"module {name};\n")


def refused(main, *arguments):
    """Run a command line that must end with status 2; return its output."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            status = main([str(each) for each in arguments])
        except SystemExit as stopped:
            status = stopped.code
    assert status == 2
    assert "Traceback" not in said.getvalue()
    return said.getvalue()


def everything_below(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("output", ["folder", "file/below.v", "/dev/full", "/proc/nothing/here.v"])
def test_hdl_output_that_cannot_be_written_is_named_and_nothing_left(quick_verilog, tmp_path, output):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("what was there")
    before = everything_below(tmp_path)
    said = refused(hdl.cli.main, *CONVERT, tmp_path / output)
    assert f"output: got {tmp_path / output}, which cannot be written: " in said
    assert everything_below(tmp_path) == before
    assert "output: got" in refused(hdl.cli.main, "verilog", "all", "-o", tmp_path / "file")


def test_hdl_disk_that_fills_up_leaves_the_file_that_was_there(quick_verilog, tmp_path, monkeypatch):
    (tmp_path / "unit.v").write_text("what was there")
    before, write_text = everything_below(tmp_path), Path.write_text

    def half_of_it(path, text, encoding):
        write_text(path, text[: len(text) // 2], encoding)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", half_of_it)
    assert "No space left on device" in refused(hdl.cli.main, *CONVERT, tmp_path / "unit.v")
    assert everything_below(tmp_path) == before
    monkeypatch.setattr(Path, "write_text", write_text)
    assert hdl.cli.main([*CONVERT, str(tmp_path / "unit.v")]) == 0
    assert (tmp_path / "unit.v").read_text() == "module convert;\n"


def test_hdl_output_through_a_link_keeps_the_link(quick_verilog, tmp_path):
    (tmp_path / "link.v").symlink_to(tmp_path / "unit.v")
    for _ in range(2):
        assert hdl.cli.main([*CONVERT, str(tmp_path / "link.v")]) == 0
        assert (tmp_path / "link.v").is_symlink()
        assert (tmp_path / "unit.v").read_text() == "module convert;\n"


@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
def test_hdl_standard_output_by_name_has_the_verilog_alone(quick_verilog, output, capfd):
    assert hdl.cli.main([*CONVERT, output]) == 0
    assert capfd.readouterr().out == "module convert;\n"


def test_hdl_page_that_cannot_be_read_is_named(tmp_path):
    said = refused(hdl.cli.main, "registers", "--page", tmp_path / "none.md")
    assert f"page: got {tmp_path / 'none.md'}, which cannot be read: " in said


@pytest.mark.parametrize(
    ("main", "arguments"), [(golden.cli.main, ["formats"]), (hdl.cli.main, CONVERT[:-1])], ids=["golden", "hdl"]
)
def test_standard_output_on_a_full_disk_is_told(quick_verilog, main, arguments):
    with open("/dev/full", "w") as full, contextlib.redirect_stdout(full):
        said = refused(main, *arguments)
        assert "standard output" in said
        assert "No space left on device" in said
        with contextlib.suppress(OSError):
            full.close()


#: The arguments of each tool before its option for a folder or a file to write.
OUTPUTS = {
    "sim": ("--folder",),
    "lab.boards": ("ulx3s", "-o"),
    "lab.evidence": ("-o",),
    "lab.figures": ("-o",),
    "lab.fpga": ("-o",),
    "lab.mutants": ("--folder",),
    "lab.proofs": ("--folder",),
    "lab.replay": ("-o",),
    "lab.speed": ("-o",),
}


def main_of(tool):
    return importlib.import_module(f"{tool}.__main__").main


@pytest.mark.parametrize("tool", OUTPUTS)
def test_tool_whose_output_cannot_be_written_names_it_and_writes_nothing(tool, tmp_path):
    (tmp_path / "file").write_text("what was there")
    before = everything_below(tmp_path)
    for output in (tmp_path / "file" / "below", "/dev/full/below", "", "a\0b", "a\nb"):
        said = refused(main_of(tool), *OUTPUTS[tool], output)
        assert f"got {output}" in said or f"got {output!r}" in said
    assert everything_below(tmp_path) == before


@pytest.mark.parametrize(
    "tool", [*OUTPUTS, "lab.equivalence", "lab.exhaustive", "lab.faults", "lab.pace", "lab.suites"]
)
@pytest.mark.parametrize(
    "option", ["--no-such-thing", "--jobs=a", "--seed=a", "--chunk=0", "--count=0", "--products=-1"]
)
def test_tool_given_a_bad_option_says_so_in_one_line(tool, option, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = refused(main_of(tool), option)
    assert said.count("error: ") == 1
    assert said.rstrip().rsplit("\n", 1)[-1].startswith(f"python -m {tool}: error: ")


@pytest.mark.parametrize("text", [None, "", "[]", "{}", b"\xff"])
def test_pace_of_a_file_that_is_no_report_names_it(tmp_path, text):
    report = tmp_path / "report.json"
    if text is not None:
        report.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert f"--measured: got {report}" in refused(main_of("lab.pace"), "--measured", report)
