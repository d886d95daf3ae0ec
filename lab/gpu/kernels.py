"""Compile every variant of the kernels for cards, and count registers, spills, shared memory and instructions.

``python -m lab.gpu.kernels`` compiles all variants for all architectures, in half an hour on one core. The compiled
kernels stay in the cache that programs use at run time. Instructions of a step: the difference between a kernel of 32
steps and one of 16, divided by 16.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

from rich.progress import track

from golden.cuda.compiling import ARCHITECTURES, Resources, assembled, compiled
from golden.cuda.scales import Steps
from golden.cuda.variants import KINDS, name_of, variants
from golden.rounding import Rounding, as_rounding
from tools.interrupts import end_with_parent, ended_by_interrupts, ending_on_interrupt, unheard_interrupts
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import Table, measured

__all__ = [
    "COUNTED",
    "compile_all",
    "count",
    "disassembler",
    "in_listing",
    "instructions",
    "main",
    "resources",
    "spills",
]

#: Architectures whose instructions of a step are counted.
_READ = (70, 80, 90)

Taken = dict[tuple[Steps | None, int], dict[str, Resources]]
Counts = dict[str, Fraction]
#: Mode, kind and form of the counted steps.
COUNTED = (
    ("nearest_even", "single", "Plain"),
    ("nearest_even", "scaled", "Plain"),
    ("nearest_even", "scaled", "Limited"),
    ("nearest_even", "float16", "Plain"),
    ("toward_zero", "scaled", "Plain"),
    ("up", "scaled", "Plain"),
    ("nearest_away", "single", "Plain"),
    ("nearest_away", "scaled", "Plain"),
    ("to_odd", "scaled", "Plain"),
    ("stochastic", "scaled", "Plain"),
    ("nearest_even", "generic", "Plain"),
)
_SHORT, _LONG = 16, 32
# The operands stay in registers, so that the difference consists of steps only.
_PROBE = """
#include "gemm.h"
using Step = StepsOf<static_cast<Mode>(CBFLOAT_MODE), static_cast<Kind>(CBFLOAT_CHAIN)>::CBFLOAT_FORM;
extern "C" __global__ void probe(Rule rule, const Step::Element *a, const Step::Element *b, Step::Element *acc,
                                 uint32_t word) {
    const Step step(rule);
    const Step::Vector factor = Step::load(a), column = Step::load(b);
    Step::Vector sum = Step::load(acc);
#pragma unroll
    for (int k = 0; k < CBFLOAT_STEPS; k++) sum = step(factor, column, sum, word);
    Step::store(acc, sum);
}
"""


@ending_on_interrupt("lab.gpu.kernels", "what it has compiled is kept, the next run goes on")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.kernels", description=__doc__)
    parser.add_argument("--architectures", type=int, nargs="+", choices=ARCHITECTURES, default=ARCHITECTURES,
                        metavar="SM", help="such as 90 for sm_90 (default: all)")  # fmt: skip
    parser.add_argument("--modes", nargs="+", choices=list(map(str, Rounding)), default=list(map(str, Rounding)),
                        metavar="MODE", help="of rounding, such as nearest_even (default: all)")  # fmt: skip
    parser.add_argument("--processes", type=at_least_one, default=2, help="how many compile at once (%(default)s)")
    add_update_docs(parser, "gpu-kernels", "put the tables into docs/results/gpu.md")
    given = parser.parse_args(arguments)
    tables = []
    tool = disassembler()
    if tool:
        shown = [number for number in _READ if number in given.architectures]
        tables.append(
            instructions({number: {step: count(*step, number, tool) for step in COUNTED} for number in shown})
        )
    else:
        print("no nvdisasm is on the path or with Triton: instructions are not counted", file=sys.stderr)
    asked = [(one, number) for number in given.architectures for one in variants(number)]
    wanted = [(one, number) for one, number in asked if one is None or str(one.mode) in given.modes]
    taken = dict(zip(wanted, compile_all(wanted, given.processes), strict=True))
    tables.append(resources(taken))
    for table in tables:
        print(table.markdown())
    print(conclusion(taken))
    if given.update_docs:
        publish(measured("gpu-kernels", ["lab.gpu.kernels"], note=conclusion(taken), tables=tables))
    return 0


def compile_all(wanted: Sequence[tuple[Steps | None, int]], processes: int) -> Iterable[dict[str, Resources]]:
    """Yield the resources of each variant's kernels, in order."""
    with ProcessPoolExecutor(processes, initializer=end_with_parent) as pool, ended_by_interrupts(pool):
        with unheard_interrupts():
            done = pool.map(_kernels, wanted)
        yield from track(done, "compiling", total=len(wanted), disable=not sys.stderr.isatty())


def _kernels(wanted: tuple[Steps | None, int]) -> dict[str, Resources]:
    return compiled(*wanted).kernels


def spills(taken: Taken) -> list[str]:
    """Return the kernels that keep registers in memory, by name and bytes."""
    return [
        f"{name} of {name_of(variant)} for sm_{number} ({kernel.spilled} bytes)"
        for (variant, number), kernels in taken.items()
        for name, kernel in kernels.items()
        if kernel.spilled
    ]


def conclusion(taken: Taken) -> str:
    """Return one sentence or two: the number of kernels, and the kernels that spill."""
    kernels = sum(map(len, taken.values()))
    spilled = spills(taken)
    told = f"{kernels} kernels in {len(taken)} cubins; {len(spilled) or 'none'} of them keep registers in memory"
    return f"{told}: {'; '.join(spilled[:8])}{' ...' if spilled[8:] else ''}." if spilled else f"{told}."


def resources(taken: Taken) -> Table:
    """Return the table of registers and spills: a row for each variant, a column for each architecture."""
    numbers = sorted({number for _, number in taken})
    rows = []
    for variant in dict.fromkeys(variant for variant, _ in taken):
        found = [taken.get((variant, number), {}) for number in numbers]
        names = max(found, key=len)
        shared = " · ".join(str(kernel.shared) for kernel in names.values())
        rows.append((f"`{name_of(variant)}`", ", ".join(f"`{name}`" for name in names), shared, *map(_cell, found)))
    return Table(
        ("variant", "kernels", "bytes shared", *(f"sm_{number}" for number in numbers)), rows, left=2, title="Registers"
    )


def _cell(kernels: dict[str, Resources]) -> str:
    """Return the registers of each kernel, and in brackets the bytes that it spills."""
    return " · ".join(
        f"{one.registers} ({one.spilled})" if one.spilled else f"{one.registers}" for one in kernels.values()
    )


def instructions(counts: dict[int, dict[tuple[str, str, str], Counts]]) -> Table:
    """Return the table of instructions of a step, with their names on the last architecture."""
    rows = []
    for mode, kind, form in COUNTED:
        found = [of[mode, kind, form] for of in counts.values()]
        names = ", ".join(f"{number} {name}" for name, number in sorted(found[-1].items()))
        rows.append((mode, kind, form, *(str(sum(one.values())) for one in found), names))
    last = f"instructions on sm_{max(counts)}"
    return Table(
        ("mode", "step", "form", *(f"sm_{number}" for number in counts), last),
        rows,
        left=3,
        title="Instructions of a step",
    )


def disassembler() -> str | None:
    """Return the path of nvdisasm, from CUDA or from Triton; None if there is none."""
    found = shutil.which("nvdisasm")
    triton = importlib.util.find_spec("triton")
    if found or triton is None or triton.origin is None:
        return found
    tool = Path(triton.origin).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    return str(tool) if tool.is_file() else None


def in_listing(text: str) -> Counter[str]:
    """Count the instructions of a listing by name, without fillers and the end of the kernel."""
    names = re.findall(r"^\s+(?:/\*[0-9a-f]+\*/\s+)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]+)(?=[.\s;])[^\n]*;", text, re.M)
    return Counter(name for name in names if name not in ("NOP", "EXIT", "BRA"))


def count(mode: str, kind: str, form: str, architecture: int, tool: str) -> Counts:
    """Return the instructions of a step, by name; one step on two values at once counts as one step."""
    found = []
    for steps in (_SHORT, _LONG):
        options = [
            f"-DCBFLOAT_MODE={as_rounding(mode, 'mode').value}",
            f"-DCBFLOAT_CHAIN={KINDS.index(kind)}",
            f"-DCBFLOAT_FORM={form}",
            f"-DCBFLOAT_STEPS={steps}",
        ]
        image = assembled(_PROBE, architecture, options)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(image)
            file.flush()
            done = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True, timeout=60)
        found.append(in_listing(done.stdout))
    short, long = found
    by = _LONG - _SHORT
    return {name: Fraction(long[name] - short[name], by) for name in long if long[name] != short[name]}


if __name__ == "__main__":
    sys.exit(main())
