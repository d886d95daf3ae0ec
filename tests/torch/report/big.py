"""A big run, to measure the report with: ``python -m tests.torch.report.big FOLDER [LAYERS [OBSERVED]]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from golden.torch.instruments.report.records import PASSES
from tests.torch.report.made_up import events, product, settings, step

EVERY = 20


def write_big(folder: Path, layers: int = 200, observed: int = 500) -> Path:
    """Write a run of `layers` layers, each with three passes in `observed` observed steps; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        f"blocks.{layer // 4}.{('attn.qkv', 'attn.proj', 'mlp.fc', 'mlp.out')[layer % 4]}" for layer in range(layers)
    ]
    lines = [
        json.dumps(product(0, name, direction, products=events(10**6, swamped=0.002 * (at % 60), underflow=1e-5)))
        for at, name in enumerate(names)
        for direction in PASSES
    ]
    # Everything behind the number of the step stays the same.
    tails = [line.partition('"step": 0')[2] for line in lines]
    with (folder / "observations.jsonl").open("w", encoding="utf-8") as file:
        file.write(json.dumps(settings(modules=names, every=EVERY)) + "\n")
        for number in range(1, observed * EVERY + 1):
            is_observed = (number - 1) % EVERY == 0
            if is_observed:
                file.writelines(f'{{"kind": "product", "step": {number}{tail}\n' for tail in tails)
            file.write(json.dumps(step(number, loss=2.0 + 1 / number, observed=is_observed)) + "\n")
    return folder


if __name__ == "__main__":
    place, *numbers = sys.argv[1:]
    print(write_big(Path(place), *map(int, numbers)))
