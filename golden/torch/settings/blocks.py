"""Blocks of narrow numbers as one value: what a tensor is rounded to, and the line of text that an operator takes.

An operator takes PyTorch's own few types. A line has no blanks but those between its words, and its random bits stand
at its end, as in the line of a `golden.Reduction`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from golden.formats import FloatFormat
from golden.lines import format_of, format_text, words_of
from golden.mx import BLOCK, NVFP4, BlockFormat
from golden.mx.blocks import as_block_format
from golden.mx.recipes import as_recipe
from golden.rounding import Randomness, Rounding, as_rounding
from golden.torch.common.arguments import check_count
from golden.torch.settings.reductions import random_in, random_text, without_random

__all__ = ["OCP_FLOOR", "Blocks", "spans_the_tensor"]

#: The recipe of scales unless another is named; NVFP4 has its own.
OCP_FLOOR = "ocp_floor"


@dataclass(frozen=True, init=False)
class Blocks:
    """Blocks of elements with one scale each, and how values become such blocks.

    Parameters
    ----------
    element : FloatFormat, str or BlockFormat
        Format of the elements, or ``golden.mx.NVFP4`` or its name.
    block : int, optional
        Values that share a scale, 32 unless given; NVFP4 has 16.
    scale : str, optional
        The recipe of the scales, one of `golden.mx.RECIPES`: ``"ocp_floor"`` unless given, or that of NVFP4.
    rounding : Rounding or str
        Of the elements, to nearest even unless given.
    random : Randomness, optional
        The random bits of a stochastic rounding.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, or names nothing that such blocks have.

    Examples
    --------
    >>> blocks = Blocks("nvfp4", rounding="stochastic", random=Randomness(seed=7))
    >>> str(blocks)
    'element=nvfp4 block=16 scale=nvidia_nvfp4 rounding=stochastic random_bits=16 seed=7 call=0'
    >>> Blocks.parse(str(blocks)) == blocks
    True
    """

    element: FloatFormat | BlockFormat
    block: int
    scale: str
    rounding: Rounding
    random: Randomness | None

    def __init__(
        self,
        element: FloatFormat | BlockFormat | str,
        block: int | None = None,
        scale: str | None = None,
        rounding: Rounding | str = Rounding.NEAREST_EVEN,
        random: Randomness | None = None,
    ) -> None:
        fmt, whole = as_block_format(element, "element")
        if whole is not None and block not in (None, whole.block):
            raise ValueError(f"block: got {block!r}, must be {whole.block} for {whole}, or left out")
        usual = (BLOCK, OCP_FLOOR) if whole is None else (whole.block, whole.recipe)
        mode = as_rounding(rounding, "rounding")
        if not isinstance(random, Randomness | None):
            raise TypeError(f"random: got {random!r}, must be a golden.Randomness or None")
        if random is not None and mode is not Rounding.STOCHASTIC:
            raise ValueError(f"random: got {random}, must be None: only rounding='stochastic' takes random bits")
        vars(self).update(
            element=fmt if whole is None else whole,
            block=check_count(usual[0] if block is None else block, "block"),
            scale=as_recipe(usual[1] if scale is None else scale, fmt, whole).name,
            rounding=mode,
            random=(random or Randomness()) if mode is Rounding.STOCHASTIC else None,
        )

    @property
    def is_usual(self) -> bool:
        """Whether it is the specification's conversion, which cards have a kernel for."""
        return self.scale == OCP_FLOOR and self.rounding is Rounding.NEAREST_EVEN

    def with_random(self, random: Randomness) -> Blocks:
        """Return these blocks with other random bits; themselves where nothing is rounded stochastically."""
        return self if self.random is None else replace(self, random=random)

    def __str__(self) -> str:
        element = self.element.name if isinstance(self.element, BlockFormat) else format_text(self.element)
        line = f"element={element} block={self.block} scale={self.scale}"
        if self.rounding is not Rounding.NEAREST_EVEN:
            line += f" rounding={self.rounding}"
        return line if self.random is None else line + random_text(self.random)

    @classmethod
    def parse(cls, text: str) -> Blocks:
        """Return the blocks that a line of text stands for, which ``str`` has written.

        Raises
        ------
        TypeError
            If `text` is not a string.
        ValueError
            If it is no such line.
        """
        if not isinstance(text, str):
            raise TypeError(f"text: got {text!r}, must be a string")
        random, found = random_in(text), _parsed(without_random(text))
        if random is None:
            return found
        if found.random is None:
            raise ValueError(f"text: got {text!r}, must have rounding=stochastic where it has random bits")
        return found.with_random(random)


#: How the words of a line are read.
_WORDS: dict[str, Any] = {
    "element": lambda word: NVFP4 if word == NVFP4.name else format_of(word),
    "block": int,
    "scale": str,
    "rounding": str,
}


@lru_cache(maxsize=256)
def _parsed(text: str) -> Blocks:
    given = {}
    for key, word in words_of(text).items():
        if key not in _WORDS:
            raise ValueError(f"text: got the key {key!r}, must be one of {', '.join(_WORDS)}")
        try:
            given[key] = _WORDS[key](word)
        except ValueError as error:
            raise ValueError(f"text: got {key}={word} ({error})") from None
    if "element" not in given:
        raise ValueError(f"text: got {text!r}, must have the word element=")
    return Blocks(**given)


def spans_the_tensor(text: str) -> bool:
    """Return whether blocks of this line have a scale that the whole tensor decides."""
    return isinstance(_parsed(without_random(text)).element, BlockFormat)
