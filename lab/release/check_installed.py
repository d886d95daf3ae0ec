"""Compare the kernels of an installed wheel with the contract; a script, so that Python finds nothing of the tree.

Like the wheel, it needs only NumPy. With ``--hdl`` it also generates Verilog.
"""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np

import golden
from golden import reference

TREE = Path(__file__).resolve().parents[2]
FORMATS = ("cbfloat16", "cb16", "float16", "bfloat16")
SAMPLED = 257  # the contract also converts one code in 257
SPECIALS = 8  # of 40 factors: zeros, subnormals, infinities and NaNs


def codes(generator: np.random.Generator, fmt: str, *shape: int) -> np.ndarray:
    """Return codes of values about one, with some arbitrary codes among them."""
    anything = generator.integers(0, 1 << 16, shape, dtype=np.uint16)
    return np.where(
        generator.integers(0, 40, shape) < SPECIALS, anything, golden.encode(generator.normal(size=shape), fmt)
    )


def wrong_outputs() -> int:
    """Return how many results of the compiled kernels differ from `golden.reference`."""
    generator, wrong = np.random.default_rng(1), 0
    every = np.arange(1 << 16, dtype=np.uint16)
    for fmt, other in itertools.pairwise((*FORMATS, FORMATS[0])):
        converted = [reference.convert(code, fmt, other)[0] for code in every[::SAMPLED].tolist()]
        wrong += int((golden.convert(every, fmt, other)[::SAMPLED] != np.array(converted)).sum())
        for level in golden.LEVELS:
            a, b = codes(generator, fmt, 3, 70), codes(generator, fmt, 70, 3)
            exact = reference.matmul(a.tolist(), b.tolist(), operand=fmt, level=level)
            wrong += int((golden.matmul(a, b, operand=fmt, level=level) != np.array(exact)).sum())
    return wrong


def main(arguments: list[str]) -> int:
    """Check, and print the findings."""
    place, path = Path(golden.__file__), golden.kernel_info()["path"]
    if TREE in place.resolve().parents and "site-packages" not in place.parts:
        raise SystemExit(f"golden: got {place} of the tree, must be the installed one; run this from another folder")
    if path == "numpy":
        raise SystemExit(f"kernels: none compiled beside {place}")
    if importlib.import_module("cbfloat.golden") is not golden:
        raise SystemExit("cbfloat.golden: is another module than golden")
    if unexpected := {"torch", "amaranth", "hdl"} & set(sys.modules):
        raise SystemExit(f"import golden: brings {', '.join(sorted(unexpected))}, must need NumPy only")
    if wrong := wrong_outputs():
        raise SystemExit(f"kernels: {wrong} outputs differ from golden.reference on path {path}")
    print(f"{place.parent}: kernels of path {path} give the bits of the contract")
    if "--hdl" in arguments:
        command = [sys.executable, "-m", "cbfloat.hdl", "verilog", "convert"]
        command += ["--source", "float32", "--destination", "cbfloat16"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if "\nmodule convert(" not in text:
            raise SystemExit(f"hdl: got no module convert, but {text[:200]!r}")
        print(f"{place.parent.parent / 'hdl'}: writes Verilog of {text.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
