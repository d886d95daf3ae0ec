"""``python -m hdl``: Verilog of one unit with chosen parameters, or of every unit; registers of the matrix engine."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hdl.catalogue import Kind, released
from hdl.fusesoc import to_core
from hdl.matrix_engine.documents import filled, to_header, to_markdown
from hdl.verilog import to_verilog

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hdl",
        description="Generate the units as Verilog, and the registers of the matrix engine as a C header or a table.",
        epilog="examples:\n"
        "  %(prog)s verilog mac --operands cbfloat16 -o mac.v                # one unit\n"
        "  %(prog)s verilog convert --source float32 --destination cbfloat16 # on standard output\n"
        "  %(prog)s verilog mac --help                                       # parameters of a unit\n"
        "  %(prog)s verilog all                                              # every released unit, in build/verilog\n"
        "  %(prog)s header -o matrix_engine.h                                # registers of the matrix engine, for C",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    verilog = commands.add_parser("verilog", help="write plain Verilog")
    units = verilog.add_subparsers(required=True, metavar="UNIT")

    everything = units.add_parser("all", help="every released unit, each with a core file for FuseSoC")
    everything.add_argument(
        "-o", "--output", type=Path, default=Path("build/verilog"), metavar="FOLDER", help="default: %(default)s"
    )
    everything.set_defaults(run=_write_all)

    for kind in Kind:
        one = units.add_parser(kind.command, help=kind.about)
        for name, default in kind.parameters.defaults().items():
            option, arguments = kind.parameters.definitions()[name].option(name, default)
            one.add_argument(option, **arguments)
        one.add_argument("--name", help="name of the top module (default: that of the unit)")
        one.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
        one.set_defaults(run=_write_one, kind=kind)
    header = commands.add_parser("header", help="write the registers of the matrix engine as a C header")
    header.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    header.set_defaults(run=lambda given: _give(given.output, to_header()))
    registers = commands.add_parser("registers", help="write the registers of the matrix engine as a Markdown table")
    registers.add_argument("--page", dest="output", type=Path, metavar="FILE", help="renew the table in this page")
    registers.set_defaults(run=_write_registers)
    return parser


def _write_registers(given: argparse.Namespace) -> None:
    page = given.output
    if page is None:
        _give(None, to_markdown())
        return
    try:
        before = page.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"page: got {page}, which cannot be read: {error}") from None
    _give(page, filled(before))


def _write(path: Path, text: str) -> None:
    """Write a complete file, or leave the old one unchanged."""
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() and path.exists():  # a device, or a folder, where writing raises the error
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _write_one(given: argparse.Namespace) -> None:
    parameters = {
        name: definition.parse(name, value) if isinstance(value := getattr(given, name), str) else value
        for name, definition in given.kind.parameters.definitions().items()
    }
    name = given.kind.command.replace("-", "_") if given.name is None else given.name
    _give(given.output, to_verilog(given.kind.component(**parameters), name))


def _give(output: Path | None, text: str) -> None:
    """Write a text to a file, or to standard output, by whatever name."""
    if output in (None, Path("-"), Path("/dev/stdout")):
        sys.stdout.write(text)
        sys.stdout.flush()  # report a full disk here rather than at exit
        return
    _write(output, text)
    if output.is_file():  # and no device
        print(f"{output}: {text.count(chr(10))} lines")


def _write_all(given: argparse.Namespace) -> None:
    units = released()
    for number, unit in enumerate(units, start=1):
        path = given.output / f"{unit.name}.v"
        _write(path, to_verilog(unit.build(), unit.name))
        _write(path.with_suffix(".core"), to_core(unit))
        print(f"[{number}/{len(units)}] {path}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad parameters end it with one line and status 2, Ctrl-C with one line and status 130."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except OSError as error:
        place = given.output or "standard output"
        print(f"{parser.prog}: output: got {place}, which cannot be written: {error}", file=sys.stderr)
        return 2
    except (TypeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{parser.prog}: stopped by Ctrl-C; the files that are there are whole", file=sys.stderr)
        return 130
    return 0
