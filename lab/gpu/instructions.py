"""Machine instructions of one step: those of a kernel with 32 steps less those of one with 16, by 16."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

from golden.cuda.compiling import assembled
from golden.cuda.variants import KINDS
from golden.rounding import as_rounding

__all__ = ["COUNTED", "Counts", "count", "disassembler", "in_listing"]

#: Mode, kind and form of the steps that are counted.
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
# The operands stay in registers, so that nothing but steps is in the difference.
_PROBE = """
#include "gemm.h"
using Step = StepsOf<static_cast<Mode>(CBFLOAT_MODE), static_cast<Kind>(CBFLOAT_CHAIN)>::CBFLOAT_FORM;
extern "C" __global__ void probe(Rule rule, const Step::Element *a, const Step::Element *b, Step::Element *acc,
                                 uint32_t word) {
    const Step step(rule);
    const Step::Vector factor = Step::all(*a), column = Step::load(b);
    Step::Vector sum = Step::load(acc);
#pragma unroll
    for (int k = 0; k < CBFLOAT_STEPS; k++) sum = step(factor, column, sum, word);
    Step::store(acc, sum);
}
"""

Counts = dict[str, Fraction]


def disassembler() -> str | None:
    """Return the path of nvdisasm: of CUDA's, or of the one that comes with Triton; None if there is none."""
    found = shutil.which("nvdisasm")
    triton = importlib.util.find_spec("triton")
    if found or triton is None or triton.origin is None:
        return found
    tool = Path(triton.origin).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    return str(tool) if tool.is_file() else None


def in_listing(text: str) -> Counter[str]:
    """Count the instructions of a listing by name; those that only fill up, or end the kernel, do not count."""
    names = re.findall(r"^\s+(?:/\*[0-9a-f]+\*/\s+)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]+)(?=[.\s;])[^\n]*;", text, re.M)
    return Counter(name for name in names if name not in ("NOP", "EXIT", "BRA"))


def count(mode: str, kind: str, form: str, architecture: int, tool: str) -> Counts:
    """Return the instructions of a step, by name; a step of two values at once counts as one."""
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
