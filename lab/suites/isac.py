"""Write operands from riscv-isac's models B1 to B29 as lines in TestFloat's format, with our results.

The models are Python generators of cover points: they have operands and no results. `golden.reference` computes the
results. The lines have two uses: TestFloat's testfloat_ver judges the reference, and ``python -m lab.suites`` compares
the array functions and the netlists with it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from golden.arrays.checks import code_dtype
from golden.rounding import Rounding
from lab.suites.designs import run_reference
from lab.suites.functions import FUNCTIONS, Function
from tools.interrupts import ending_on_interrupt

__all__ = ["main", "operands_of_points", "write_lines"]

#: Instruction of each function, as the generator names it.
INSTRUCTIONS = {
    "f16_mulAdd": "fmadd.h",
    "f16_add": "fadd.h",
    "f16_sub": "fsub.h",
    "f16_mul": "fmul.h",
    "f32_mulAdd": "fmadd.s",
    "f32_add": "fadd.s",
    "f32_sub": "fsub.s",
    "f32_mul": "fmul.s",
    "f32_to_f16": "fcvt.h.s",
    "f16_to_f32": "fcvt.s.h",
}
MODELS = range(1, 30)


@ending_on_interrupt("lab.suites.isac", "the lines are not whole")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if no model gave a point, or 2 if riscv-isac is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.suites.isac", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operation", choices=INSTRUCTIONS, metavar="NAME", help=", ".join(INSTRUCTIONS))
    function = FUNCTIONS[parser.parse_args(arguments).operation]
    try:
        generator = importlib.import_module("riscv_isac.fp_dataset")
    except ModuleNotFoundError as missing:
        print(f"lab.suites.isac: {missing.name} is missing: install riscv-isac with 16-bit models", file=sys.stderr)
        return 2
    operands: set[tuple[int, ...]] = set()
    for model in MODELS:
        points, trouble = _points(generator, model, function)
        found = set(operands_of_points(points, function))
        operands |= found
        print(f"B{model}: {trouble or f'{len(points)} points, {len(found)} operands'}", file=sys.stderr)
    print(f"{function.name}: {len(operands)} distinct operands", file=sys.stderr)
    if not operands:
        return 1
    sys.stdout.writelines(write_lines(sorted(operands), function))
    return 0


def _points(generator: Any, model: int, function: Function) -> tuple[list[str], str]:
    """Return a model's points, or the reason why it has none: most models raise for instructions they do not know."""
    width = function.given[0].width
    widths = (32,) if model == 26 else (width, width)
    # The generator prints its intermediate results.
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            made = getattr(generator, f"ibm_b{model}")(*widths, INSTRUCTIONS[function.name], len(function.given))
        except (Exception, SystemExit) as error:
            return [], f"not for this instruction ({type(error).__name__})"
    return [str(point) for point in made], ""


def operands_of_points(points: Iterable[str], function: Function) -> Iterator[tuple[int, ...]]:
    """Yield the operands of points such as ``fs1 == 0 and fe1 == 0x1e and fm1 == 0x2c0 and fs2 == ...``.

    Points about integers are left out, and so are points whose number of operands differs from the function's.
    """
    for point in points:
        parts: dict[tuple[str, int], int] = {
            (part, int(number)): int(value, 0)
            for part, number, value in re.findall(r"\bf([sem])(\d) == (0x[0-9a-f]+|\d+)", point.lower())
        }
        wanted = {(part, number) for part in "sem" for number in range(1, len(function.given) + 1)}
        if parts.keys() != wanted:
            continue
        yield tuple(
            (parts["s", number] << fmt.exponent_bits | parts["e", number]) << fmt.fraction_bits | parts["m", number]
            for number, fmt in enumerate(function.given, 1)
        )


def write_lines(operands: Sequence[tuple[int, ...]], function: Function) -> Iterator[str]:
    """Yield a line for each tuple of operands, with the result and the flags of the reference."""
    columns = zip(*operands, strict=True)
    given = [np.array(column, code_dtype(fmt)) for column, fmt in zip(columns, function.given, strict=True)]
    results, flags = run_reference(function.unit, function.arguments(*given), Rounding.NEAREST_EVEN)
    digits = [fmt.width // 4 for fmt in (*function.given, function.unit.result)]
    for codes, result, raised in zip(operands, results.tolist(), flags.tolist(), strict=True):
        words = [f"{code:0{width}X}" for code, width in zip((*codes, result), digits, strict=True)]
        yield f"{' '.join(words)} {raised:02X}\n"


if __name__ == "__main__":
    sys.exit(main())
