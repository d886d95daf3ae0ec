"""``python -m hdl``: Verilog of one unit with chosen parameters, or of every unit."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from amaranth.lib import wiring

from golden.formats import BF16, CBFLOAT16, FORMATS, FP16, FloatFormat, format_named
from hdl.axi_stream import AxiStreamMac
from hdl.converter import FloatConverter
from hdl.cores.multiplier import MULTIPLIERS
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.vector.vector_mac import VectorMac
from hdl.verilog import to_verilog

__all__ = ["all_units", "main"]


def all_units() -> dict[str, Callable[[], wiring.Component]]:
    """Return a builder for every released unit, by the name of its module and file."""
    units: dict[str, Callable[[], wiring.Component]] = {}
    for source, destination in itertools.permutations(FORMATS, 2):
        units[f"{source}_to_{destination}"] = partial(FloatConverter, source=source, destination=destination)
    for fmt in FORMATS[1:]:
        units[f"mac_{fmt}"] = partial(MultiplyAccumulate, operands=(fmt,))
    units["mac"] = partial(MultiplyAccumulate, operands=(CBFLOAT16, FP16, BF16))
    units["mac_axi_stream"] = partial(AxiStreamMac, operands=(CBFLOAT16, FP16, BF16))
    units["vector_mac"] = partial(VectorMac, operands=(CBFLOAT16, FP16, BF16))
    return units


def _format(argument: str, name: str) -> FloatFormat:
    try:
        return format_named(name.strip())
    except ValueError as error:
        raise ValueError(str(error).replace("name:", f"{argument}:", 1)) from None


def _formats(names: str) -> tuple[FloatFormat, ...]:
    return tuple(_format("operands", name) for name in names.split(","))


def _levels(numbers: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in numbers.split(","))
    except ValueError:
        raise ValueError(f"levels: got {numbers!r}, must be numbers such as 0,1,2") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hdl", description="Generate the hardware.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    verilog = commands.add_parser("verilog", help="write plain Verilog")
    units = verilog.add_subparsers(required=True, metavar="UNIT")

    everything = units.add_parser("all", help="every released unit, one file each")
    everything.add_argument("-o", "--output", type=Path, default=Path("build/verilog"), metavar="FOLDER")
    everything.set_defaults(run=_write_all)

    convert = units.add_parser("convert", help="a format converter")
    convert.add_argument("--source", required=True, help="format name, such as float32")
    convert.add_argument("--destination", required=True, help="format name, such as cbfloat16")
    convert.set_defaults(
        build=lambda given: FloatConverter(
            source=_format("source", given.source),
            destination=_format("destination", given.destination),
            stages=given.stages,
            flags=not given.no_flags,
        ),
        default_name="convert",
    )

    for command, unit, about in (
        ("mac", MultiplyAccumulate, "the multiply-accumulate unit"),
        ("mac-axi-stream", AxiStreamMac, "the multiply-accumulate unit behind AXI4-Stream ports"),
        ("vector-mac", VectorMac, "the SIMD multiply-accumulate unit"),
    ):
        mac = units.add_parser(command, help=about)
        mac.add_argument("--operands", default="cbfloat16", help="format names, comma-separated (default %(default)s)")
        mac.add_argument("--levels", default="0,1,2", help="precision levels, comma-separated (default %(default)s)")
        registers = "rows of 16-bit accumulators" if unit is VectorMac else "16-bit accumulators"
        mac.add_argument("--registers", type=int, default=16, help=f"{registers} (default %(default)s)")
        mac.add_argument("--chunk-bits", type=int, default=16, help="bits of the chunk length (default %(default)s)")
        mac.add_argument("--multiplier", choices=MULTIPLIERS, default="generic", help="ecp5: its primitive, registered")
        if unit is VectorMac:
            mac.add_argument("--lanes", type=int, default=4, help="an even number of lanes (default %(default)s)")
        mac.set_defaults(
            build=lambda given, unit=unit: unit(
                **({"lanes": given.lanes} if unit is VectorMac else {}),
                operands=_formats(given.operands),
                levels=_levels(given.levels),
                registers=given.registers,
                stages=given.stages,
                chunk_bits=given.chunk_bits,
                flags=not given.no_flags,
                multiplier=given.multiplier,
            ),
            default_name=command.replace("-", "_"),
        )

    for one in (units.choices[name] for name in ("convert", "mac", "mac-axi-stream", "vector-mac")):
        one.add_argument("--stages", type=int, default=None, help="register ranks (default: the recommended depth)")
        one.add_argument("--no-flags", action="store_true", help="build the exception flags out")
        one.add_argument("--name", help="name of the top module (default: that of the unit)")
        one.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
        one.set_defaults(run=_write_one)
    return parser


def _write(path: Path, text: str) -> None:
    """Write a file as a whole, or leave what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() and path.exists():  # a device, or a folder, which says what is wrong
        path.write_text(text)
        return
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _write_one(given: argparse.Namespace) -> None:
    text = to_verilog(given.build(given), given.name or given.default_name)
    if given.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()  # a full disk is told here, and not when Python ends
        return
    _write(given.output, text)
    print(f"{given.output}: {text.count(chr(10))} lines")


def _write_all(given: argparse.Namespace) -> None:
    units = all_units()
    for number, (name, build) in enumerate(units.items(), start=1):
        path = given.output / f"{name}.v"
        _write(path, to_verilog(build(), name))
        print(f"[{number}/{len(units)}] {path}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad parameters end it with one line and status 2."""
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
    return 0
