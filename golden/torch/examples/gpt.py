"""A small GPT that writes Python, letter by letter: its text is source code of Python's standard library."""

from __future__ import annotations

import hashlib
import math
import string
import sysconfig
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor, nn
from torch.utils.data import Dataset

from golden.torch.common.section import Section
from golden.torch.examples.blocks import Blocks
from golden.torch.examples.task import Task

__all__ = ["CharacterGpt"]

# Half a megabyte of pure Python that has hardly changed between the patch releases of 3.11.
_FILES = (
    *("argparse", "bisect", "calendar", "contextlib", "csv", "dataclasses", "datetime", "fractions", "functools"),
    *("heapq", "json/decoder", "json/encoder", "statistics", "string", "textwrap"),
)
# Of Python 3.11.2, which Debian 12 carries.
_SHA256 = "6bf39c447db09c7e85cf2328e697c1aebb844128419c48932319964b8697ed99"
_LETTERS = string.printable
_VALIDATION = 8192  # letters, at the end of the text


class CharacterGpt(Section):
    """Transformer blocks with causal attention, layer normalisation before each part, and GELU.

    `context` is the number of letters that the model sees at once, `width` the length of a letter's vector. On request
    the linear layers are of blocks of narrow numbers.
    """

    name: Literal["character_gpt"]
    layers: PositiveInt = 2
    width: PositiveInt = 64
    heads: PositiveInt = 4
    context: PositiveInt = 32
    blocks: Blocks | None = None

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, and {self.width} is none of {self.heads}")
        return self

    def task(self) -> Task:
        """Return the model with the data."""
        text = "".join(_source(name) for name in _FILES)
        digest = hashlib.sha256(text.encode()).hexdigest()
        notes = [f"text: {len(text):,} letters, SHA-256 {digest}"]
        if digest != _SHA256:
            notes.append("the text is not that of Python 3.11.2: figures of other runs compare in kind, not in digits")
        place = torch.zeros(256, dtype=torch.long)
        place[list(_LETTERS.encode())] = torch.arange(len(_LETTERS))
        # The few letters that are not ASCII become question marks.
        codes = place[torch.tensor(np.frombuffer(text.encode("ascii", "replace"), np.uint8), dtype=torch.long)]
        split = len(codes) - _VALIDATION
        train, validation = _Windows(codes[:split], self.context), _Windows(codes[split:], self.context)
        model = _Gpt(self.layers, self.width, self.heads, self.context)
        notes += () if self.blocks is None else self.blocks.put_into(model)
        return Task(model, _loss, train, validation, "bits per letter", _bits, tuple(notes))


def _source(name: str) -> str:
    return (Path(sysconfig.get_path("stdlib")) / f"{name}.py").read_text(encoding="utf-8")


class _Windows(Dataset[tuple[Tensor, Tensor]]):
    """The text in pieces of `context` letters; the target of a letter is the next one."""

    def __init__(self, codes: Tensor, context: int) -> None:
        self._codes, self._context = codes, context

    def __len__(self) -> int:
        return (len(self._codes) - 1) // self._context

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        window = self._codes[index * self._context : (index + 1) * self._context + 1]
        return window[:-1], window[1:]


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.before_attention(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, letters, width of a head)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.before_mlp(x))


class _Gpt(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(len(_LETTERS), width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(_Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(_LETTERS))

    def forward(self, codes: Tensor) -> Tensor:
        places = torch.arange(codes.shape[-1], device=codes.device)
        return self.head(self.norm(self.blocks(self.letters(codes) + self.places(places))))


def _loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def _bits(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none") / math.log(2)
