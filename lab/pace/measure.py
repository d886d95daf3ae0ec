"""Drive a unit at full rate, as machine code, and count."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tools.simulator import CompiledSimulator

__all__ = ["products_per_beat", "products_per_cycle"]


def products_per_beat(unit: Any, level: int) -> int:
    """Return the number of products in a beat: one for each lane; into fp32, half as many in a vector unit."""
    if hasattr(unit, "rows"):
        return int(unit.rows * unit.columns)
    lanes = getattr(unit, "lanes", None)
    if lanes is None:
        return 1
    return int(lanes // 2 if level == 0 else lanes)


def _accumulators(unit: Any, level: int) -> list[int]:
    """Return the registers to use in rotation: level 1, and level 0 of the scalar unit, take pairs; arrays never do."""
    takes_pairs = not hasattr(unit, "rows") and (level == 1 or (level == 0 and not hasattr(unit, "lanes")))
    return list(range(0, unit.registers, 2 if takes_pairs else 1))


def products_per_cycle(unit: Any, *, level: int, chunk: int = 32, chunks: int = 6) -> Fraction:
    """Measure the sustained pace, promotions included: reductions in every register, one product of each in turn.

    Parameters
    ----------
    unit : MultiplyAccumulate, VectorMac or MatrixMac
    level : int
        Precision level.
    chunk : int
        Products in a chunk.
    chunks : int
        Chunks of the reductions; the first and the last are not timed.

    Returns
    -------
    Fraction
        Products per cycle.

    Raises
    ------
    RuntimeError
        If the unit stops taking products.
    """
    registers = _accumulators(unit, level)
    length = chunk * chunks
    accepted_at: list[int] = []

    async def testbench(ctx: Any) -> None:
        ctx.set(unit.chunk, chunk)
        ctx.set(unit.o.ready, 1)
        ctx.set(unit.i.valid, 1)
        payload, cycle = unit.i.payload, 0
        ctx.set(payload.level, level)
        for k in range(length):
            ctx.set(payload.first, k == 0)
            ctx.set(payload.last, k == length - 1)
            for register in registers:
                ctx.set(payload.register, register)
                waited = 0
                while not ctx.get(unit.i.ready):
                    await ctx.tick()
                    cycle, waited = cycle + 1, waited + 1
                    if waited > 1000:
                        raise RuntimeError(f"level {level}: product {k} of register {register} waits for 1000 cycles")
                accepted_at.append(cycle)
                await ctx.tick()
                cycle += 1

    CompiledSimulator(unit).run(testbench)
    start, end = chunk * len(registers), (length - chunk) * len(registers)
    cycles = accepted_at[end] - accepted_at[start]
    return Fraction((end - start) * products_per_beat(unit, level), cycles)
