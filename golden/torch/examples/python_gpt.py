"""GPT-2 in its small shape, trained on the sources of Python's standard library in five precisions, side by side.

``python -m golden.torch.examples.python_gpt`` is a run for a graphics card; ``--short`` takes about six minutes of a
core. Both end with a table and a page (`docs/report.md`) in which the runs stand beside each other.
"""

from __future__ import annotations

import argparse
import math
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

__all__ = ["PRECISIONS", "PythonGpt", "Sizes", "compare", "sources"]

_BYTES = 256
_VALIDATION = 1 << 16  # bytes, at the end of the text
_LAST = 20  # steps whose mean loss is told

#: The runs to compare: name, half type and level.
PRECISIONS = {
    "cbfloat16 level 0": ("cbfloat16", 0),
    "cbfloat16 level 1": ("cbfloat16", 1),
    "cbfloat16 level 2": ("cbfloat16", 2),
    "bfloat16 level 1": ("bfloat16", 1),
    "float16 level 1": ("float16", 1),
}


@dataclass(frozen=True)
class Sizes:
    """The shape of the model and of a run; GPT-2 small unless given, with bytes as letters."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    context: int = 1024
    batch: int = 8
    steps: int = 600
    observe: int = 50


#: A run of about six minutes of a processor core.
SHORT = Sizes(layers=2, width=128, heads=4, context=64, batch=8, steps=800, observe=40)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.before_attention(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, places, width of a head)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.before_mlp(x)), approximate="tanh"))


class PythonGpt(nn.Module):
    """The architecture of GPT-2 (Radford et al. 2019), of any size, for bytes or any number of letters."""

    def __init__(self, sizes: Sizes, letters: int = _BYTES) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, sizes.width), nn.Embedding(sizes.context, sizes.width)
        self.blocks = nn.Sequential(*(_Block(sizes.width, sizes.heads) for _ in range(sizes.layers)))
        self.norm = nn.LayerNorm(sizes.width)
        for name, each in self.named_parameters():
            if each.ndim == 2:
                into_the_sum = name.endswith(("out.weight", "narrow.weight"))
                nn.init.normal_(each, std=0.02 / (math.sqrt(2 * sizes.layers) if into_the_sum else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(each)

    def forward(self, codes: Tensor) -> Tensor:
        """Return the logits of the next letter at every place: (batch, places) to (batch, places, letters)."""
        places = torch.arange(codes.shape[-1], device=codes.device)
        x = self.norm(self.blocks(self.letters(codes) + self.places(places)))
        return nn.functional.linear(x, self.letters.weight)


def sources() -> Tensor:
    """Return the bytes of the standard library's modules, in the order of their paths, as a vector of uint8."""
    folder = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}
    files = [each for each in sorted(folder.rglob("*.py")) if not left_out & set(each.relative_to(folder).parts)]
    return torch.from_numpy(np.frombuffer(b"".join(each.read_bytes() for each in files), np.uint8).copy())


class _Batches:
    """Windows of the text at random places, the same in every run; the target of a byte is the next one."""

    def __init__(self, text: Tensor, sizes: Sizes) -> None:
        self.text, self.sizes = text, sizes

    def __len__(self) -> int:
        return self.sizes.steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        places = torch.Generator().manual_seed(1)
        for _ in range(len(self)):
            starts = torch.randint(len(self.text) - self.sizes.context, (self.sizes.batch,), generator=places)
            windows = torch.stack([self.text[start : start + self.sizes.context + 1] for start in starts]).long()
            yield windows[:, :-1], windows[:, 1:]


def _loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)


@dataclass(frozen=True)
class Outcome:
    """How a run ended: bits for a byte in its last steps and on unseen text, its loss scale, its time."""

    bits: float
    unseen: float
    scale: float
    skipped: int
    seconds: float


def train(folder: Path, half: str, level: int, text: Tensor, sizes: Sizes, device: str) -> Outcome:
    """Train in one precision, with a dynamic loss scale; observations go into the folder."""
    from golden.torch import MixedPrecision, Trainer

    begun = time.perf_counter()
    trainer = Trainer(
        lambda: PythonGpt(sizes),
        _optimizer,
        _loss,
        MixedPrecision(fp16_type=half, precision_opt_level=level, loss_scaling_factor="dynamic", max_gradient_norm=1.0),
        model_dir=folder,
        device=device,
        seed=1,
        observe={"every": sizes.observe, "rows": 8},
    )
    losses = trainer.fit(_Batches(text[:-_VALIDATION], sizes), steps=sizes.steps)
    rest = text[-_VALIDATION:][: sizes.batch * sizes.context * 4 + 1].long()
    pairs = ((rest[at : at + sizes.context + 1][None]) for at in range(0, len(rest) - sizes.context, sizes.context))
    unseen = trainer.evaluate([(each[:, :-1], each[:, 1:]) for each in pairs], _loss)
    last = [each for each in losses[-_LAST:] if math.isfinite(each)]
    bits = sum(last) / len(last) / math.log(2) if last else math.nan
    scaler = trainer.scaler
    seconds = time.perf_counter() - begun
    return Outcome(bits, unseen / math.log(2), scaler.get_scale(), scaler.get_num_skipped_steps(), seconds)


def compare(folder: Path, names: list[str], sizes: Sizes, device: str, console: Console) -> dict[str, Outcome]:
    """Train in the named precisions, one after the other, and write the page that compares them."""
    from golden.torch.instruments.report.page import write_report

    text, found = sources(), {}
    folders = {name: folder / name.replace(" ", "_") for name in names}
    for name in names:
        console.print(name)
        found[name] = train(folders[name], *PRECISIONS[name], text, sizes, device)
    write_report(list(folders.values()), folder / "report.html")
    return found


def _table(found: dict[str, Outcome]) -> Table:
    table = Table(title="GPT-2's shape on the sources of Python's standard library")
    table.add_column("run", no_wrap=True)
    for heading in ("bits a byte", "unseen text", "scale", "skipped", "seconds"):
        table.add_column(heading, justify="right")
    for name, each in found.items():
        numbers = f"{each.bits:.4f}", f"{each.unseen:.4f}", f"2^{math.log2(each.scale):g}"
        table.add_row(name, *numbers, str(each.skipped), f"{each.seconds:.0f}")
    return table


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m golden.torch.examples.python_gpt", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a small model: about six minutes of a core")
    parser.add_argument("--folder", type=Path, default=Path("build/python_gpt"), help="where runs and page are written")
    parser.add_argument("--device", default="GPU", choices=("CPU", "GPU"), help="GPU, if there is one, unless given")
    parser.add_argument("--only", nargs="+", choices=PRECISIONS, default=list(PRECISIONS), metavar="RUN")
    for name, kind in Sizes.__annotations__.items():
        assert kind == "int"
        parser.add_argument(f"--{name}", type=int, help=f"{getattr(Sizes, name)}, or {getattr(SHORT, name)} if short")
    given = parser.parse_args(arguments)
    chosen: dict[str, Any] = vars(SHORT if given.short else Sizes())
    own = {name: getattr(given, name) for name in chosen if getattr(given, name) is not None}
    sizes = Sizes(**(chosen | own))
    if min(vars(sizes).values()) < 1 or sizes.width % sizes.heads:
        parser.error("sizes must be at least 1, and width a multiple of heads")
    if given.folder.exists():
        parser.error(f"--folder: {given.folder} exists; delete it, or choose another, to run again")
    console = Console()
    console.print(_table(compare(given.folder, given.only, sizes, given.device, console)))
    console.print(f"{given.folder / 'report.html'}", soft_wrap=True)


if __name__ == "__main__":
    main()
