"""The answer that the self-test on a board must give, by the golden model: the same stimulus, written in NumPy."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from lab.boards.plan import Plan

__all__ = ["Expectation", "expect", "operands"]

Codes = NDArray[Any]


@dataclass(frozen=True)
class Expectation:
    """The results of a round, arrays of shape (windows, lanes), and the signature of them all."""

    bits: Codes
    flags: Codes
    registers: Codes
    signature: int


def operands(plan: Plan) -> tuple[Codes, Codes]:
    """Return the factors of a round, arrays of shape (windows, length, lanes)."""
    shape = (plan.windows, plan.length, plan.lanes)
    noise = _noise(plan, plan.windows * plan.length * plan.lanes).reshape(shape)
    kind = (np.arange(plan.windows) % 4)[:, np.newaxis, np.newaxis]
    low, high = noise & 0xFFFF, noise >> 16
    return _shape(low, kind, is_a=True), _shape(high, kind, is_a=False)


def expect(plan: Plan) -> Expectation:
    """Compute the answers of a round with `golden`."""
    a, b = (np.moveaxis(codes, 1, -1) for codes in operands(plan))
    window, lane = np.arange(plan.windows)[:, np.newaxis], np.arange(plan.lanes)[np.newaxis, :]
    levels = (window + lane) % 3
    bits, flags = np.zeros(levels.shape, np.uint32), np.zeros(levels.shape, np.uint8)
    for level in plan.LEVELS:
        here = levels == level
        bits[here], flags[here] = golden.dot(
            a[here], b[here], operand=plan.OPERAND, level=level, chunk=plan.chunk, return_flags=True
        )
    registers = 2 * lane + ((levels == 2) & (window >> 2 & 1 == 1))
    # The byte order of a result; no error, which would be in the two top bits of the register's byte.
    beats = np.zeros(levels.shape, [("bits", "<u4"), ("flags", "u1"), ("register", "u1"), ("window", "<u2")])
    beats["bits"], beats["flags"], beats["register"], beats["window"] = bits, flags, registers, window
    signature = sum(zlib.crc32(beat) for beat in beats.ravel()) % (1 << 32)
    return Expectation(bits, flags, registers, signature)


def _noise(plan: Plan, count: int) -> Codes:
    """Return the states of the shift register, 32 steps from each to the next."""
    # The next state of each bit alone. The register is linear: the next state of a sum is the sum of the next states.
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    for _ in range(32):
        bits = bits << np.uint32(1) ^ np.where(bits >> np.uint32(31), np.uint32(plan.POLYNOMIAL), np.uint32(0))
    states = np.array([plan.SEED], np.uint32)
    while len(states) < count:
        states = np.concatenate([states, _moved(states, bits)])
        bits = _moved(bits, bits)
    return states[:count]


def _moved(states: Codes, bits: Codes) -> Codes:
    """Return the states after some steps; `bits` has the states of the single bits after the same steps."""
    moved = np.zeros_like(states)
    for place, bit in enumerate(bits):
        moved ^= (states >> np.uint32(place) & np.uint32(1)) * bit
    return moved


def _shape(noise: Codes, kind: Codes, *, is_a: bool) -> Codes:
    fmt = Plan.OPERAND
    fraction = noise & ((1 << fmt.fraction_bits) - 1)
    field = noise >> fmt.fraction_bits & fmt.exponent_field_max
    small = field % 4 if is_a else fmt.bias - 8 + field % 8
    field = np.choose(kind, [fmt.bias - 8 + field % 16, fmt.bias - 1 + field % 2, small, field])
    fraction = np.where(kind % 2 == 1, fraction & (3 << (fmt.fraction_bits - 2)), fraction)
    return ((noise & fmt.sign_mask) | field << fmt.fraction_bits | fraction).astype(np.uint16)
