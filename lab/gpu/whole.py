"""The whole comparison of a graphics card with the CPU: python -m lab.gpu.whole.

Each part takes minutes; --parts runs some of them alone:

- kernels: every variant is compiled for the card, on all processors.
- tests: the tests of the card: operators, training, streams, CUDA graphs, torch.compile, two ranks.
- layers: every layer of the zoo, forward and backward, in every half type at every level.
- models: every model of the zoo, likewise.
- products: 10^9 outputs over formats, levels, modes, shapes and specials.
- sanitizer: some of everything under compute-sanitizer, if it is installed.
- halves: the CPU's float16 steps, if the processor has AVX512-FP16; they need no card.

The findings are kept after every part, by default in docs/results/gpu-card.json. Without a card, it prints one line
that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from golden.cuda.variants import variants
from golden.kernels.library import paths
from lab.gpu import card, kernels
from lab.gpu.comparison import compare
from tools.interrupts import ending_on_interrupt
from tools.paths import ROOT
from tools.results import Table

__all__ = [
    "PARTS",
    "SUBJECT",
    "compiling",
    "conclusion",
    "halves",
    "main",
    "products",
    "pytest",
    "sanitizer",
    "source",
    "table",
]

TOOL, SUBJECT = "gpu-card", "graphics card"
_TESTS = "tests/cuda/device"
_APART = {"layers": "test_layers.py", "models": "test_models.py"}
_PATIENCE = 280  # seconds of a tool of compute-sanitizer: both end within ten minutes
_GRACE = 30.0  # seconds for interrupted tests to report their failures

Found = dict[str, Any]


def compiling(given: argparse.Namespace) -> Found:
    """Compile every variant for the card."""
    number = card.architecture()
    wanted = [(one, number) for one in variants(number)]
    processes = os.cpu_count() or 1
    print(f"compiling {len(wanted)} variants for sm_{number}, {processes} at once", flush=True)
    taken = dict(zip(wanted, kernels.compile_all(wanted, processes), strict=True))
    return {"passed": True, "cubins": len(taken), "spills": kernels.spills(taken)}


def pytest(*arguments: str, limit: float | None = None) -> Found:
    """Run tests in another process; return how many ran, failed and were skipped, and the names of failed tests.

    After `limit` seconds it interrupts them, and returns the failures until then.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # pytest-benchmark, where it is installed, warns of the processes of xdist, and a warning is an error here.
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:benchmark", *arguments, f"--junitxml={report}"]
        print("   ", *command, flush=True)
        status = _ended(subprocess.Popen(command, cwd=ROOT), limit)
        suite = Xml.parse(report).getroot().find("testsuite") if report.is_file() else None
    counts = {
        name: 0 if suite is None else int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
    }
    cases = () if suite is None else suite.iter("testcase")
    names = [f"{each.get('classname')}::{each.get('name')}" for each in cases if _has_failed(each)]
    late = {"error": f"not done after {limit:g} s"} if status is None else {}
    return {"passed": status == 0 and counts["tests"] > counts["skipped"], **counts, "wrong": names, **late}


def _has_failed(case: Xml.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _ended(process: subprocess.Popen[bytes], limit: float | None) -> int | None:
    """Wait for a process; return its status, None after the limit. Then interrupt it first, so that pytest reports."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        return None
    finally:
        process.kill()
        process.wait()


def products(given: argparse.Namespace) -> Found:
    """Compare products."""
    outcome = compare(given.outputs, given.seconds)
    print(f"{outcome.outputs:,} outputs compared, {len(outcome.wrong)} products differ")
    print("\n".join(outcome.wrong))
    passed = not outcome.wrong and outcome.outputs >= given.outputs
    return {"passed": passed, "outputs": outcome.outputs, "products": outcome.products, "wrong": outcome.wrong}


def sanitizer(given: argparse.Namespace) -> Found:
    """Run the tools of compute-sanitizer, if it is installed."""
    path = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if path is None:
        print("compute-sanitizer is not on the path: skipped")
        return {"passed": True, "memcheck": "not installed", "racecheck": "not installed"}
    # PyTorch allocates memory in blocks, within which an address beyond a tensor is no error.
    surroundings = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    found: Found = {}
    for tool in ("memcheck", "racecheck"):
        # Importing PyTorch takes longer than the sanitizer waits for a first call of the driver; 0 waits for ever.
        # Errors of the driver's functions are no findings: the bindings ask for functions that older drivers lack.
        options = ["--error-exitcode", "3", "--launch-timeout", "0", "--target-processes", "all"]
        options += ["--report-api-errors", "no"]
        command = [path, "--tool", tool, *options, sys.executable, "-m", "lab.gpu.sanitized"]
        print("   ", *command, flush=True)
        try:
            done = subprocess.run(command, env=surroundings, check=False, cwd=ROOT, timeout=given.patience)
            status = done.returncode
            found[tool] = "no error" if status == 0 else f"exit status {status}"
        except subprocess.TimeoutExpired:
            found[tool] = f"not done after {given.patience} s"
    return {"passed": set(found.values()) == {"no error"}, **found}


def halves(given: argparse.Namespace) -> Found:
    """Test the CPU's steps in float16, if the processor has any."""
    if "avx512fp16" not in paths():
        told = f"the processor has no AVX512-FP16; golden runs on its path {paths()[0]}"
        print(f"{told}: skipped")
        return {"passed": True, "processor": told}
    return pytest(
        "tests/golden/kernels/test_native_half.py", "tests/golden/kernels/test_products.py", limit=given.limit
    )


PARTS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "kernels": compiling,
    "tests": lambda given: pytest(
        _TESTS, *(f"--ignore={_TESTS}/{file}" for file in _APART.values()), limit=given.limit
    ),
    "layers": lambda given: pytest(f"{_TESTS}/{_APART['layers']}", limit=given.limit),
    "models": lambda given: pytest(f"{_TESTS}/{_APART['models']}", limit=given.limit),
    "products": products,
    "sanitizer": sanitizer,
    "halves": halves,
}


def source(parts: Iterable[str]) -> str:
    """Return the source of a result with some of the parts: tests reach everything, other parts what they import."""
    return "golden.torch.*" if {"tests", *_APART} & set(parts) else "lab.gpu.whole"


def conclusion(parts: dict[str, Found], name: str) -> str:
    """Return how many products were compared on the card, and how many differ; empty before they have run."""
    found = parts.get("products", {})
    if not found.get("outputs"):
        return ""
    outputs, products = (f"{found[each]:,} {each}" for each in ("outputs", "products"))
    return f"{outputs} of {products} on {name}: {len(found['wrong'])} differ from the CPU's"


def table(parts: dict[str, Found]) -> Table:
    """Return the findings, a row for each part."""
    rows = []
    for name, found in parts.items():
        told = [f"{value:,} {key}" for key, value in found.items() if type(value) is int]
        told += [f"{key}: {value}" for key, value in found.items() if isinstance(value, str) and key != "error"]
        told += [f"{len(found[key])} {key}" for key in ("wrong", "spills") if key in found]
        told += [found["error"]] if "error" in found else []
        rows.append((name, "yes" if found["passed"] else "**no**", ", ".join(told), f"{found['seconds']:.0f}"))
    return Table(("part", "passed", "found", "seconds"), rows, left=3)


@ending_on_interrupt("lab.gpu.whole", "the parts that have ended are kept")
def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    described = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.whole", description=__doc__, formatter_class=described)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="which to run (all)")
    parser.add_argument("--outputs", type=int, default=10**9, help="how many to compare at least (10^9)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end the comparison after these (never)")
    parser.add_argument("--limit", type=float, help="seconds after which a part of tests has failed (never)")
    parser.add_argument("--patience", type=float, default=_PATIENCE, help="seconds of a sanitizer's tool (%(default)s)")
    parser.add_argument("--into", type=Path, help="folder of the result (docs/results)")
    given = parser.parse_args(arguments)
    if card.skipped("test-gpu"):
        return 0
    if paths()[0] == "numpy":
        parser.error("golden's kernels for the CPU are not compiled, and NumPy would take days: pip install -e . first")
    parts = card.earlier(TOOL, given.into).get("parts", {})
    for name in given.parts:
        print(f"==> {name}", flush=True)
        begun = time.perf_counter()
        try:
            found = PARTS[name](given)
        except Exception as error:  # the other parts may show more
            found = {"passed": False, "error": f"{type(error).__name__}: {error}"}
        parts[name] = {**found, "seconds": round(time.perf_counter() - begun, 1)}
        parts = {each: parts[each] for each in PARTS if each in parts}
        told = conclusion(parts, card.name_of(card.about()))
        said = {"subject": SUBJECT if told else "", "conclusion": told}
        card.keep(TOOL, source(parts), {"parts": parts}, [table(parts)], given.into, **said)
    print(table(parts).markdown())
    return int(not all(parts[name]["passed"] for name in given.parts))


if __name__ == "__main__":
    sys.exit(main())
