"""Proof about the generator of random numbers: its round is Random123's, for every counter and key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hdl.cores.philox_round import WORD_BITS, PhiloxRound
from lab.netlists.yosys import netlist_of
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, equal, refute, slice_of, widened

__all__ = ["philox_proofs"]

#: Written out once more: the factors of words 0 and 2, and the increments of the key's words.
_MULTIPLIERS = {0: 0xD2511F53, 2: 0xCD9E8D57}
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def philox_proofs() -> Iterator[Proof]:
    """Yield the proofs of the round; ten of them, with registers in between, are the unit."""
    for engine in (BITWUZLA, Z3_CADICAL):
        yield Proof("philox/round", "philox", "one round", "its definition", engine, _build, timeout=60, fast=True)


def _build(folder: Path) -> str:
    unit = netlist_of(PhiloxRound(), folder).instance()

    def word(port: str, number: int) -> str:
        return slice_of(unit.port(port), WORD_BITS * (number + 1) - 1, WORD_BITS * number)

    def product(number: int) -> str:
        factor = bits(_MULTIPLIERS[number], 2 * WORD_BITS)
        return f"(bvmul {widened(word('i', number), WORD_BITS, 2 * WORD_BITS)} {factor})"

    def half(number: int, upper: int) -> str:
        return slice_of(product(number), WORD_BITS * (upper + 1) - 1, WORD_BITS * upper)

    key = [word("i", 4), word("i", 5)]
    wanted = [
        f"(bvxor {half(2, 1)} {word('i', 1)} {key[0]})",
        half(2, 0),
        f"(bvxor {half(0, 1)} {word('i', 3)} {key[1]})",
        half(0, 0),
        *(f"(bvadd {each} {bits(step, WORD_BITS)})" for each, step in zip(key, _KEY_STEPS, strict=True)),
    ]
    text = unit.text + unit.shown
    return text + refute(both(*(equal(word("o", number), each) for number, each in enumerate(wanted))))
