"""Made-up runs: observations of a training run, with the faults that a test asks for."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from golden.formats import format_named
from golden.torch.instruments.report.reading import read_run
from golden.torch.instruments.report.records import COUNTED, PASSES, Run

SHAPES = {"attn.qkv": (512, 192, 64), "attn.scores": (32, 32, 16), "attn.proj": (512, 64, 64)}
SHAPES |= {"mlp.fc": (512, 256, 64), "mlp.out": (512, 64, 256)}


def events(steps: int, **shares: float) -> dict[str, int]:
    """Return counts of steps, from shares of them."""
    known = {"inexact": 0.9} | shares
    return {name: steps if name == "steps" else round(steps * known.get(name, 0.0)) for name in COUNTED}


def histogram(fmt: str, centre: float, width: float = 1.6, total: int = 32768, **specials: int) -> dict[str, Any]:
    """Return a bell of exponents around a centre, cut to the range of the format."""
    number_format = format_named(fmt)
    lowest = number_format.emin - number_format.fraction_bits
    exponents: dict[str, int] = {}
    zero = specials.get("zero", 0)
    for exponent in range(math.floor(centre - 5 * width), math.ceil(centre + 3 * width) + 1):
        count = round(total * math.exp(-(((exponent - centre) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi)))
        if exponent < lowest:
            zero += count
        elif count:
            place = str(min(exponent, number_format.emax))
            exponents[place] = exponents.get(place, 0) + count
    subnormal = sum(count for exponent, count in exponents.items() if int(exponent) < number_format.emin)
    finite = sum(exponents.values())
    infinite, nan = specials.get("infinite", 0), specials.get("nan", 0)
    return {
        "format": fmt, "total": finite + zero + infinite + nan, "zero": zero, "subnormal": subnormal,
        "infinite": infinite, "nan": nan, "exponents": exponents,
    }  # fmt: skip


def settings(**changes: Any) -> dict[str, Any]:
    """Return the first line."""
    return {
        "kind": "run", "version": 1, "model": "GPT", "half": "cbfloat16", "level": 1, "chunk": 32,
        "rounding": "nearest_even", "every": 20, "modules": [], "cbfloat": "0.1.0", "torch": "2.12.0",
        "started": "2026-01-02T03:04:05",
    } | changes  # fmt: skip


def step(number: int, **changes: Any) -> dict[str, Any]:
    """Return the line of a step."""
    return {
        "kind": "step", "step": number, "loss": 2.0, "loss_scale": 2.0**15, "skipped": False, "finite": True,
        "observed": True,
    } | changes  # fmt: skip


def product(number: int, module: str = "blocks.0.mlp.fc", direction: str = "forward", **changes: Any) -> dict[str, Any]:
    """Return a line about the products of a layer in a pass, in which nothing is wrong."""
    m, n, k = changes.pop("shape", (512, 64, 64))
    half, is_forward = changes.get("operand", "cbfloat16"), direction == "forward"
    return {
        "kind": "product", "step": number, "module": module, "pass": direction, "operation": "linear", "calls": 1,
        "level": 1, "operand": half, "shape": [m, n, k], "rows": m, "rows_counted": m,
        "products": events(m * n * k), "promotions": events(m * n * k // 32), "largest_exponent": 2,
        "distance": {"relative": 0.001, "ulp_mean": 0.3, "ulp_max": 4.0},
        "tensors": {
            "left": histogram(half, -1), "right": histogram(half, -4),
            "output": histogram(half, -1 if is_forward else 2),
        },
    } | changes  # fmt: skip


def write(folder: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write lines into the folder of a run, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "observations.jsonl").open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
    return folder


def run_of(folder: Path, lines: Iterable[Mapping[str, Any]], name: str = "run", **changes: Any) -> Run:
    """Return the run that some lines make, behind their settings."""
    return read_run(write(folder, [settings(**changes), *lines]), name)


def gpt(
    *, blocks: int = 4, steps: int = 600, every: int = 20, half: str = "cbfloat16", level: int = 1, seed: int = 1,
    scale: float = 2.0**31, wrong: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
) -> Iterable[dict[str, Any]]:  # fmt: skip
    """Give the lines of a small GPT's run, with a loss scale that finds its place.

    `wrong` has, for modules and passes, shares of the products' events, of the promotions' in ``promotions``,
    ``relative``, ``centre`` of the exponents, and the step ``since`` which it is so.
    """
    draw, wrong = random.Random(seed), wrong or {}
    modules = [f"blocks.{block}.{part}" for block in range(blocks) for part in SHAPES] + ["head"]
    yield settings(half=half, level=level, every=every, modules=modules)
    largest = 2.0 ** (format_named(half).emax - 4)  # of the scale: gradients of 2^-? fill the rest
    quiet, bad = 0, set()
    for number in range(1, steps + 1):
        skipped = scale > largest * 2.0 ** draw.choice((0, 0, 0, 1))
        observed = number % every == 0 or number == 1
        for module in modules if observed else ():
            shape = SHAPES.get(module.partition(".")[2].partition(".")[2], (512, 128, 64))
            for direction in PASSES:
                fault = wrong.get((module, direction), {})
                is_wrong = bool(fault) and number >= fault.get("since", 0)
                yield _gpt_product(
                    number, module, direction, shape, fault if is_wrong else {}, half, level, scale, draw
                )
                if is_wrong and (module, direction) not in bad:
                    bad.add((module, direction))
                    cause = fault.get("cause", "swamped beyond 10 %")
                    yield {
                        "kind": "first_bad", "step": number, "module": module, "pass": direction, "cause": cause,
                        "evidence": {"share": round(fault.get("swamped", 0.2), 3), "largest_exponent": 8},
                    }  # fmt: skip
        loss = 3.2 * math.exp(-number / 150) + 1.4 + draw.gauss(0, 0.04)
        yield step(number, loss=loss, loss_scale=scale, skipped=skipped, finite=not skipped, observed=observed)
        quiet = 0 if skipped else quiet + 1
        if skipped:
            scale /= 2
        elif quiet > 90:
            scale, quiet = scale * 2, 0


def _gpt_product(
    number: int, module: str, direction: str, shape: tuple[int, int, int], fault: Mapping[str, Any], half: str,
    level: int, scale: float, draw: random.Random,
) -> dict[str, Any]:  # fmt: skip
    m, n, k = shape
    is_forward, noise = direction == "forward", draw.uniform(0.5, 1.5)
    centre = fault.get("centre", -1.0 if is_forward else math.log2(scale) - 13 - 3 * noise)
    shares = {"inexact": 0.93, "swamped": 0.012 * noise, "underflow": 0.0 if is_forward else 4e-5 * noise} | {
        name: share * noise for name, share in fault.items() if name in COUNTED
    }
    promoted = {"swamped": 0.002 * noise} | {name: each * noise for name, each in fault.get("promotions", {}).items()}
    return product(
        number, module, direction, shape=shape, operand=half, level=level,
        operation="matmul" if module.endswith("scores") else "linear",
        products=events(m * n * k, **shares), promotions=events(m * n * k // 32, **promoted),
        largest_exponent=round(centre) + 6,
        distance={"relative": fault.get("relative", 0.0012) * noise, "ulp_mean": 0.31 * noise, "ulp_max": 7.5 * noise},
        tensors={
            "left": histogram(half, centre, zero=4000), "right": histogram(half, -4.2, 1.3),
            "output": histogram(half, centre + 1.5, 2.0, infinite=fault.get("infinite", 0)),
        },
    )  # fmt: skip


#: A run in which several things are wrong, for looking at the page.
WRONG = {
    ("blocks.1.attn.scores", "forward"): {"swamped": 0.19, "relative": 0.04, "since": 200},
    ("blocks.3.mlp.out", "forward"): {
        "promotions": {"overflow": 3e-4, "swamped": 0.21}, "infinite": 12, "since": 340,
        "cause": "a promotion overflowed", "centre": 12, "relative": 0.3,
    },
    ("blocks.2.mlp.fc", "gradient_of_weight"): {"underflow": 0.024, "since": 60, "cause": "underflow beyond 1 %"},
    ("head", "gradient_of_input"): {"relative": 0.08, "since": 400, "cause": "distance beyond 5 %"},
}  # fmt: skip
